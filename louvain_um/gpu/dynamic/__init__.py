"""Changing graphs on the device: searching rows, merging batches into them."""
