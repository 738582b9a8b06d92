"""Commands for changing graphs."""
