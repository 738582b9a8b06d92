"""What a session shows: tables, page × time maps, verdict."""
