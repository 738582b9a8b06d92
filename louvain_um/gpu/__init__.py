"""The CUDA engine: the counterpart of louvain_um.cpu on NVIDIA GPUs."""
