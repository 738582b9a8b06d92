"""A recorded run as plain data: events, arrays, phases; validated, saved, summarised."""

from louvain_um.deprecated import getattr_of
from louvain_um.profiling.session.data import SessionData
from louvain_um.profiling.session.timeline import Lifetime, PageMap, PhaseSpan

__all__ = ["Lifetime", "PageMap", "PhaseSpan", "SessionData"]

__getattr__ = getattr_of(__name__)
