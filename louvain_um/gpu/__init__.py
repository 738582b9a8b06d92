"""The CUDA engine: the twin of louvain_um.cpu on one NVIDIA GPU."""
