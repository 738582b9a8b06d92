"""Devices, compilation, launches, and device code that every kernel shares."""
