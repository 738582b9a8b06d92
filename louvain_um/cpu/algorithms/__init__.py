"""The algorithms' compiled CPU twins."""
