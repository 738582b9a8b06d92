"""The access tracer: the engine's own kernels, rewritten so that they count what they touch."""

from louvain_um.profiling.sources.tracer.trace import Trace, Uses
from louvain_um.profiling.sources.tracer.tracer import Tracer

__all__ = ["Trace", "Tracer", "Uses"]
