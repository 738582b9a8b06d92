"""Record and place CUDA programs that nobody changed: `louvain-um attach`."""
