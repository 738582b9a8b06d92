"""Ranks of a cluster that have a GPU each: which one, and what runs there."""
