"""What moves bytes during a run: pages that change sides, rows that grow, vertex blocks."""
