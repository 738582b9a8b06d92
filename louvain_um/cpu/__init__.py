"""The Numba engine: the algorithm on every core of a machine without a GPU."""
