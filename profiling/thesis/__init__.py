"""Reproduction of Dinçer's thesis: its program, graphs, published numbers and tables."""
