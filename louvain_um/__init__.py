"""Community detection in large graphs on a CPU or a GPU, with the same labels on both."""

from louvain_um.graph import Graph

__all__ = ["Graph"]
__version__ = "0.1.0"
