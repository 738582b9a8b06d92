"""Graphs built on the device that holds their edges."""
