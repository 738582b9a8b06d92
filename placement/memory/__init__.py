"""Memory itself: arenas, advice, budgets, and the blocks that come and go."""
