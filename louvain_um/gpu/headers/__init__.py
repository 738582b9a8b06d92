"""Headers that kernels of several steps include."""
