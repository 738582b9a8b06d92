"""Memory itself: arenas, advice, budgets and vertex blocks."""
