"""Graph algorithms: one module each, the same answers on CPU and GPU."""
