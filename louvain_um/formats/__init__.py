"""One module a file format, and adapters for other libraries' objects."""
