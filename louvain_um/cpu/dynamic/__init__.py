"""Batches on the CPU: their net, searching and merging rows."""
