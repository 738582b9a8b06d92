"""The algorithms' CUDA counterparts: a cooperative kernel each, and what launches them."""
