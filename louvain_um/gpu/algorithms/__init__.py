"""The algorithms' CUDA twins: a cooperative kernel each, and what launches them."""
