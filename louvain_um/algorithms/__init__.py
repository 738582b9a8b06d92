"""Graph algorithms beside communities: one module each, the same answers on CPU and GPU."""
