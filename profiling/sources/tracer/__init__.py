"""The access tracer: the engine's own kernels, rewritten so that they count what they touch."""

from louvain_um.profiling.sources.tracer.tracer import AccessCounts, TracedAccesses, Tracer

__all__ = ["AccessCounts", "TracedAccesses", "Tracer"]
