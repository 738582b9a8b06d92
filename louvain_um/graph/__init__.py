"""The graph: compressed sparse rows with integer weights, and how it is built."""

from louvain_um.graph.graph import Graph

__all__ = ["Graph"]
