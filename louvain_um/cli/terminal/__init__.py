"""What the command line shares with the terminal: signals, and text that is safe to show."""
