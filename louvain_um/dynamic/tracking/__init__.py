"""Communities that follow a changing graph: the tracker, its steps, identities and files."""
