"""What a sweep shows: charts, cost breakdowns, and the model next to measurements."""
