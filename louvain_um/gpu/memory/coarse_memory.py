"""What later levels are given before anybody knows what they need: their homes.

The graph of a level is made while that of the level before is there, and no others are. So
levels take turns in two homes: levels 1, 3, 5 … in the first, levels 2, 4 … in the second. Where
level 1 keeps nearly all arcs, level 2 is made in its place (`again.py`), and level 3 is the first
in the second home. What a level does not need it gives back; one that needs more than its home
grows, outside of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from louvain_um.gpu.aggregate.limits import LIMITS
from louvain_um.options import Method


@dataclass(frozen=True, slots=True)
class Coarse:
    """How much of a graph later levels keep, rounded up from what was measured.

    Parameters
    ----------
    kept, vertices : float
        Arcs and vertices of level 1, by those of the input.
    again, left : float
        Arcs of level 2, by those of level 1; vertices of level 2 and on, by those of the input.
    deep : int
        Levels behind the first that keep about so many vertices.
    meshed : float
        Arcs and vertices of level 1, as vertices merge in groups whatever their degree: at least
        so many times the input's vertices for each arc of it.
    third : float
        Arcs of level 3, by those of level 1, where level 2 takes the place of level 1; else 0.
    """

    kept: float
    vertices: float
    again: float
    left: float
    deep: int = 1
    meshed: float = 0.0
    third: float = 0.0

    def at_degree(self, degree: float) -> Coarse:
        """Return the same for a mean degree: the fewer arcs a mesh has, the more it keeps."""
        least = self.meshed / max(degree, 1e-9)
        return replace(self, kept=max(self.kept, least), vertices=max(self.vertices, least))


SKEWED: Final = Coarse(0.37, 0.6, 1 / 4, 0.5, deep=6)
SKEWED_LEIDEN: Final = Coarse(1.0, 0.61, 0.8, 0.5, deep=5, third=0.2)

COARSE: Final[Mapping[tuple[Method, str], Coarse]] = {
    ("louvain", "even"): Coarse(0.05, 0.05, 0.3, 0.03, meshed=1.2),
    ("louvain", "communities"): Coarse(0.2, 0.2, 0.35, 0.08),
    ("louvain", "skewed"): SKEWED,
    ("louvain", "unknown"): SKEWED,
    ("leiden", "even"): Coarse(0.1, 0.13, 0.4, 0.09, meshed=3.2),
    ("leiden", "communities"): Coarse(0.5, 0.4, 0.5, 0.15),
    ("leiden", "skewed"): SKEWED_LEIDEN,
    ("leiden", "unknown"): SKEWED_LEIDEN,
}
"""By method and kind of graph (`louvain_um.placement.model.graph_kinds`).

Measured on R-MAT, LFR, lattices and a dozen real graphs. A graph of as many arcs everywhere
that lie anywhere, as a planted partition, is no mesh: Leiden keeps nearly all of it, and level 1
outgrows its home.
"""

THIN: Final = 6.5
"""Mean degree below which a mesh may have no triangles: as good as nothing merges at first."""

THIN_COARSE: Final[Mapping[Method, Coarse]] = {
    "louvain": Coarse(0.7, 0.5, 0.4, 0.17, deep=2),
    "leiden": Coarse(0.8, 0.6, 0.5, 0.25, deep=2),
}


def coarse_of(method: Method, kind: str, degree: float) -> Coarse:
    """Return how much of a graph later levels keep.

    Examples
    --------
    >>> from louvain_um.gpu.memory.coarse_memory import coarse_of
    >>> coarse_of("louvain", "even", 26).kept, coarse_of("louvain", "even", 4).kept
    (0.05, 0.7)
    """
    if kind == "even" and degree < THIN:
        return THIN_COARSE[method]
    return COARSE[method, kind].at_degree(degree)


@dataclass(frozen=True, slots=True)
class Home:
    """Room for the graph of every second level.

    Parameters
    ----------
    vertices, arcs : int
    wide : int
        Arcs whose weights may take the bytes of a sum, not one: those of small levels.
    """

    vertices: int
    arcs: int
    wide: int


def homes(vertices: int, arcs: int, coarse: Coarse, *, paged: bool = False) -> tuple[Home, Home]:
    """Return the homes of levels.

    A small level is aggregated at once, into arrays as long as its own. In a `paged` run no
    level is made in place of another.
    """
    n, kept = max(1, int(coarse.vertices * vertices)), int(coarse.kept * arcs)
    share = coarse.again if paged or not coarse.third else coarse.third
    left, again = max(1, int(coarse.left * vertices)), int(share * kept)
    if max(vertices, arcs) <= LIMITS.small:
        whole = Home(vertices, arcs, arcs)
        return whole, whole
    few, little = min(n, LIMITS.small), min(kept, LIMITS.small)
    second = Home(max(left, few), max(again, little), little)
    last = min(little, second.arcs)
    return Home(max(n, few), max(kept, last), last), second
