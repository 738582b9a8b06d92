"""Kernels of changing graphs whose rows are in linked blocks: chains and trees."""
