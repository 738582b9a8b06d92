"""Stores in the memory of a device."""
