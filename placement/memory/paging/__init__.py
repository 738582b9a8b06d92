"""Pages of one run that are on the device or on the host, and may change sides."""
