"""Arrays of a GPU run: specifications, sizes, compact formats, loading, plans."""
