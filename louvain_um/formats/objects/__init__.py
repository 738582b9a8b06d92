"""Adapters: graphs from networkx, igraph, SciPy, CuPy, pandas, Arrow and Polars objects."""
