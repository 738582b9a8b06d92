"""What a run maximises, and under which constraints."""
