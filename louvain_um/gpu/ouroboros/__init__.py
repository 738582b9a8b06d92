"""Ouroboros on the device: `ouroboros.cuh` gives kernels `malloc` and `free`, in six variants."""
