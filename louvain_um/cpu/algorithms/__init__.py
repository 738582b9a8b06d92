"""The algorithms' CPU kernels."""
