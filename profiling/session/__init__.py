"""A recorded run as plain data: events, arrays, phases; validated, saved, summarised."""

from louvain_um.profiling.session.session import Lifetime, PageMap, PhaseSpan, Session, load

__all__ = ["Lifetime", "PageMap", "PhaseSpan", "Session", "load"]
