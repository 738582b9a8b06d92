"""Operators of users on the device: kernels that an expression is written into."""
