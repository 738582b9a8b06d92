"""From what users pass to what changes: reading a batch, its net, its names."""
