"""Stores of changing graphs compared: batches, and what else can be measured on them."""
