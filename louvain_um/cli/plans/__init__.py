"""Plans on the command line: their tables, and plans of several ranks or devices."""
