"""What a page is made of: parts with figures, cards and tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from markupsafe import Markup

from louvain_um.profiling.views.session.verdict import Verdict
from louvain_um.profiling.views.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A drawing with its title and the evidence for its numbers."""

    name: str
    title: str
    svg: Markup
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One figure that matters; `evident` where its evidence is that of the whole page."""

    what: str
    text: str
    evidence: str
    evident: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One section of a page; `multiples` puts its figures side by side."""

    anchor: str
    title: str
    multiples: bool = False
    verdict: Verdict | None = None
    cards: tuple[Card, ...] = ()
    texts: tuple[str, ...] = ()
    map: str = ""
    items: list[Table | Figure] = field(default_factory=list)
    notes: tuple[str, ...] = ()


def non_empty(*tables: Table) -> list[Table | Figure]:
    """Return the tables that have rows."""
    return [table for table in tables if table.rows]
