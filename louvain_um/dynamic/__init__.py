"""Graphs that change: batches of edges, and the stores that keep rows ready to be read."""
