"""The simulated driver itself, compiled: faults, prefetch, residency, eviction."""
