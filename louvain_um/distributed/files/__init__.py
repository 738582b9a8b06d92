"""Graphs and communities in files that ranks share: reading, pieces of edge lists, writing."""
