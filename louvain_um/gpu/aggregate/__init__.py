"""Aggregation on the device: communities become the vertices of the next level."""
