"""What a placement cost: sessions, sources, simulator, report."""
