"""Where the bytes of a run live: groups, policies, plan, arenas, budget, cost model."""
