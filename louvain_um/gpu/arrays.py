"""The arrays of a GPU run, declared once: what the engine asks for, when, and how it is used.

Sizes of level 0 are exact. What later levels need is known only when they are there: they get
a reserve, and what exceeds it finds room outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from louvain_um.arrays import STAGES, Declared, Stage, Use
from louvain_um.gpu import narrow
from louvain_um.gpu.job import LIMITS, TIGHT, chunk_for, reserved, slots_for_wide, tables
from louvain_um.gpu.launch import CONTROL, DRAIN_SLOTS, giant_tables
from louvain_um.ledger import GROUPS, Group
from louvain_um.options import Method
from louvain_um.rules import CYCLES

READ_AGAIN = 1.3
"""How often moving reads an arc that it visits: rows of the moved are read again."""

VISITED = 5.0
"""Arcs that moving visits on level 0, all cycles together, by arcs of the graph; typically."""


@dataclass(frozen=True, slots=True)
class Coarse:
    """What later levels get, until it is known what they need.

    Parameters
    ----------
    kept : float
        Arcs of level 1, by those of the input.
    communities : float
        Vertices of level 1, by those of the input.
    vertices : float
        Vertices of two levels in succession above level 0, likewise.
    """

    kept: float
    communities: float
    vertices: float


COARSE = {
    "even": Coarse(0.05, 0.05, 0.1),
    "communities": Coarse(0.2, 0.1, 0.2),
    "skewed": Coarse(1 / 3, 0.6, 1.1),
    "unknown": Coarse(1 / 3, 0.6, 1.1),
}
"""By kind of graph (`louvain_um.placement.kinds`), for Louvain; measured, and rounded up."""

LEIDEN = Coarse(1.0, 0.6, 1.1)

SMALL = 1 << 18
"""Bytes of each group for what is small: tiny levels, partial sums, the rounding of addresses."""

ALWAYS: tuple[Stage, ...] = STAGES
LATER: tuple[Stage, ...] = ("aggregate", "coarse")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the sizes of all arrays follow from.

    Parameters
    ----------
    vertices, arcs : int
    weight_bytes : {0, 4, 8}
        Bytes of an arc's weight; 0 where all are 1.
    sum_bytes : {4, 8}
        Bytes of a sum of weights.
    loops : bool
        Some vertex has a loop.
    widest : int, optional
        Most arcs of a vertex, if known.
    method : {"louvain", "leiden"}
    kind : str
        Kind of graph: how much of it later levels are expected to keep.
    tight : bool
        Scratch as small as it works with, for runs that do not fit otherwise.
    """

    vertices: int
    arcs: int
    weight_bytes: int = 0
    sum_bytes: int = 4
    loops: bool = False
    widest: int | None = None
    method: Method = "louvain"
    kind: str = "unknown"
    tight: bool = False

    @property
    def coarse(self) -> Coarse:
        """What later levels get."""
        return LEIDEN if self.method == "leiden" else COARSE[self.kind]

    @property
    def communities(self) -> int:
        """Vertices that level 1 is expected to have at most."""
        return max(1, int(self.coarse.communities * self.vertices))


def declare(shape: Shape, visited: float = VISITED) -> tuple[Declared, ...]:
    """Return every array that a run asks for.

    Parameters
    ----------
    shape : Shape
    visited : float
        Arcs that moving visits on level 0, by arcs of the graph.

    Examples
    --------
    >>> from louvain_um.arrays import peak_bytes
    >>> from louvain_um.gpu.arrays import Shape, declare
    >>> peak = peak_bytes(declare(Shape(vertices=1 << 20, arcs=1 << 24)))
    >>> round(sum(peak.values()) / (1 << 24), 1)
    14.6
    """
    rows = [*_graph(shape, visited), *_community(shape, visited), *_scratch(shape, visited)]
    small = (_array(f"small {group}", group, 1, SMALL, ALWAYS) for group in GROUPS)
    return (*rows, *_tables(shape, visited), *small)


def _graph(shape: Shape, visited: float) -> Iterator[Declared]:
    """Yield the graphs of level 0 and of later levels."""
    n, arcs = shape.vertices, shape.arcs
    seen = visited * arcs
    passes: dict[tuple[Stage, Use], float] = {
        ("move", "stream"): READ_AGAIN * seen,
        ("aggregate", "stream"): CYCLES[shape.method] * arcs,
    }
    if shape.method == "leiden":
        passes["refine", "stream"] = 2 * arcs
    yield _array("offsets.0", "graph", 8, n + 1, ALWAYS, {("move", "gather"): visited * n})
    yield _array("targets.0", "graph", 4, arcs, ALWAYS, passes)
    if shape.weight_bytes:
        yield _array("weights.0", "graph", shape.weight_bytes, arcs, ALWAYS, passes)
    if shape.loops:
        yield _array("loops.0", "graph", shape.sum_bytes, n, ALWAYS)
    kept = reserved(arcs, 0, leiden=shape.method == "leiden", kept=shape.coarse.kept)
    # Unweighted arcs weigh as many as they are; how much others weigh is not known here.
    slots = 0 if shape.weight_bytes else slots_for_wide(arcs, kept, shape.sum_bytes, LIMITS)
    width, head = (1, narrow.head_bytes(slots)) if slots else (shape.sum_bytes, 0)
    rows = int(shape.coarse.vertices * n)
    later: dict[tuple[Stage, Use], float] = {
        ("aggregate", "stream"): kept,
        ("coarse", "stream"): visited * kept,
    }
    # Every stretch of arcs that is written looks for its row.
    searched: dict[tuple[Stage, Use], float] = {
        ("aggregate", "gather"): kept,
        ("coarse", "gather"): visited * rows,
    }
    yield _array("offsets.1", "graph", 8, rows + 1, LATER, searched)
    yield _array("targets.1", "graph", 4, kept, LATER, later)
    yield _array("weights.1", "graph", width, head + kept, LATER, later)
    added: dict[tuple[Stage, Use], float] = {("aggregate", "atomic"): n}
    yield _array("loops.1", "graph", shape.sum_bytes, rows, LATER, added)


def _community(shape: Shape, visited: float) -> Iterator[Declared]:
    """Yield what is known of vertices and communities."""
    n, sums = shape.vertices, shape.sum_bytes
    seen = visited * shape.arcs
    leiden = shape.method == "leiden"
    moving: tuple[Stage, ...] = ("move", "refine", "aggregate", "coarse")
    yield _array("degrees.0", "community", sums, n, ALWAYS, {("move", "gather"): visited * n})
    labels: dict[tuple[Stage, Use], float] = {("move", "gather"): seen}
    if leiden:
        labels["refine", "gather"] = 2 * shape.arcs
    yield _array("labels", "community", 4, n, moving, labels)
    yield _array("start", "community", 4, n, ("move", "refine", "aggregate", "coarse", "fetch"))
    totals: dict[tuple[Stage, Use], float] = {("move", "gather"): seen / 2, ("move", "atomic"): n}
    yield _array("totals", "community", sums, n, ("move", "refine"), totals)
    yield _array("sizes", "community", 4, n, ("move",), {("move", "atomic"): n})
    if leiden:
        joined: dict[tuple[Stage, Use], float] = {("refine", "gather"): shape.arcs}
        yield _array("parts", "community", 4, n, ("refine", "aggregate", "coarse"), joined)
        yield _array("part totals", "community", sums, n, ("refine",), joined)
        yield _array("part sizes", "community", 4, n, ("refine",), joined)
        yield _array("cuts", "community", sums, n, ("refine",), joined)
    rows = int(shape.coarse.vertices * n)
    added: dict[tuple[Stage, Use], float] = {("aggregate", "atomic"): n}
    yield _array("degrees.1", "community", sums, rows, LATER, added)
    # Labels, totals, sizes and maps of later levels.
    yield _array("later", "community", 4 if not leiden else 12, rows, ("coarse",))
    yield _array("labels of the input", "community", 4, n, ("fetch",))


def _scratch(shape: Shape, visited: float) -> Iterator[Declared]:
    """Yield what lives no longer than a step."""
    n, sums = shape.vertices, shape.sum_bytes
    queued: dict[tuple[Stage, Use], float] = {("move", "gather"): visited * n}
    yield _array("queue", "scratch", 4, n, ("move", "refine"), queued)
    yield _array("goals", "scratch", 4, n, ("move", "refine"), queued)
    yield _array("awake", "scratch", 1, n, ("move",), {("move", "stream"): visited * n})
    yield _array("woken", "scratch", 1, n, ("move",), {("move", "gather"): visited * n})
    if shape.method == "leiden":
        yield _array("ties", "scratch", sums, n, ("refine",))
    yield _array("control", "scratch", 1, CONTROL.itemsize, ("move", "refine"), small=True)
    k = shape.communities
    ranked: dict[tuple[Stage, Use], float] = {("aggregate", "gather"): 2 * n}
    for name, size in (("members", n), ("low", n), ("starts", k), ("rooms", k)):
        yield _array(f"aggregate {name}", "scratch", 4, size + 1, ("aggregate",), ranked)
    limits = TIGHT if shape.tight else LIMITS
    room = chunk_for(shape.arcs, limits, leiden=shape.method == "leiden")
    # The last community of a chunk may have as many neighbours as there are others.
    room = min(room + k, shape.arcs)
    written: dict[tuple[Stage, Use], float] = {("aggregate", "stream"): shape.arcs}
    for name, width in (("targets", 4), ("weights", sums)):
        yield _array(f"aggregate room_{name}", "scratch", width, room, ("aggregate",), written)
    yield _array("numbering", "scratch", 12, n, ("fetch",))
    yield _array("community keys", "scratch", 8, n // 2, ("fetch",))


def _tables(shape: Shape, visited: float) -> Iterator[Declared]:
    """Yield hash tables in global memory: those of giants, vertices and communities."""
    widest = shape.arcs if shape.widest is None else shape.widest
    if shape.widest is None:
        widest = min(widest, max(1, shape.vertices // 4))
    count, slots = giant_tables(
        shape.vertices, shape.arcs, widest, shape.sum_bytes, tight=shape.tight
    )
    used: dict[tuple[Stage, Use], float] = {("move", "atomic"): visited * shape.arcs / 8}
    stages: tuple[Stage, ...] = ("move", "refine")
    yield _array("giant keys", "hash", 4, slots, stages, used)
    yield _array("giant sums", "hash", shape.sum_bytes, slots, stages, used)
    units = slots // DRAIN_SLOTS + count
    yield _array("giant slots", "hash", 16 + shape.sum_bytes, count + 1, stages)
    yield _array("giant choices", "hash", 16, units, stages)
    limits = TIGHT if shape.tight else LIMITS
    middles, giants, slots = tables(
        shape.sum_bytes, shape.communities, shape.communities, shape.arcs, shape.arcs
    )
    slots = max(slots, shape.arcs // limits.arcs_a_slot) if slots else 0
    filled: dict[tuple[Stage, Use], float] = {("aggregate", "atomic"): shape.arcs / 4}
    yield _array("aggregate keys", "hash", 4, slots, ("aggregate",), filled)
    yield _array("aggregate sums", "hash", shape.sum_bytes, slots, ("aggregate",), filled)
    yield _array("aggregate middles", "scratch", 4, middles + giants, ("aggregate",))


def _array(
    name: str,
    group: Group,
    itemsize: int,
    size: int,
    stages: tuple[Stage, ...],
    touches: dict[tuple[Stage, Use], float] | None = None,
    *,
    small: bool = False,
) -> Declared:
    return Declared(
        name=name,
        group=group,
        itemsize=itemsize,
        size=size,
        stages=stages,
        touches=touches or {},
        device_only=small,
    )
