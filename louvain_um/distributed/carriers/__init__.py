"""Carriers: how ranks exchange arrays."""
