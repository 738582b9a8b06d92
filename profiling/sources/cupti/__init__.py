"""CUPTI as a source of events: its library, its buffers, its records."""
