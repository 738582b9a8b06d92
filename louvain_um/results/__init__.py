"""Results: communities, quality, comparison, saving and display."""
