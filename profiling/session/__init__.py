"""A recorded run as plain data: events, arrays, phases; validated, saved, summarised."""

from louvain_um.profiling.session.data import SessionData
from louvain_um.profiling.session.events import Lifetime, PageMap, PhaseSpan

__all__ = ["Lifetime", "PageMap", "PhaseSpan", "SessionData"]
