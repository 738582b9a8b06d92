"""The functions that users call: `louvain` and `leiden`."""
