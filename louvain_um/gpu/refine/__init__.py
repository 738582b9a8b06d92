"""Leiden's refinement on the device."""
