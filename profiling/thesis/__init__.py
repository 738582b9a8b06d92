"""Dinçer's thesis again: its program, its graphs, its published numbers, its tables."""
