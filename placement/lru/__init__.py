"""Which vertex blocks are on the device: the least recently used leave first."""
