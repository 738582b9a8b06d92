"""Edge lists: separators, headers, names and numbers, read by compiled code."""
