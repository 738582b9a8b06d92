"""Algorithms beside communities: how a subcommand runs, and what it answers."""
