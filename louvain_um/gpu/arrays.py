"""The arrays of a GPU run, declared once: what the engine asks for, when, and how it is used.

Sizes of level 0 are exact. What later levels need is known only when they are there: they get
a reserve, and what exceeds it finds room outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from louvain_um.arrays import STAGES, Declared, Stage, Use
from louvain_um.gpu import narrow
from louvain_um.gpu.job import LIMITS, TIGHT, chunk_for, reserved, slots_for_wide
from louvain_um.gpu.launch import CONTROL, DRAIN_SLOTS, giant_tables
from louvain_um.ledger import GROUPS, Group
from louvain_um.options import Method

VISITED = 5.0
"""Arcs that moving visits on level 0, all cycles together, by arcs of the graph; typically."""

COARSE_VERTICES = 1.0
"""Reserve for coarse levels, by vertices of the input."""

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
    tight: bool = False


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
    14.3
    """
    rows = [*_graph(shape, visited), *_community(shape, visited), *_scratch(shape, visited)]
    small = (_array(f"small {group}", group, 1, SMALL, ALWAYS) for group in GROUPS)
    return (*rows, *_tables(shape, visited), *small)


def _graph(shape: Shape, visited: float) -> Iterator[Declared]:
    """Yield the graphs of level 0 and of later levels."""
    n, arcs = shape.vertices, shape.arcs
    seen = visited * arcs
    passes: dict[tuple[Stage, Use], float] = {
        ("move", "stream"): seen,
        ("aggregate", "stream"): arcs,
    }
    if shape.method == "leiden":
        passes["refine", "stream"] = 2 * arcs
    yield _array("offsets.0", "graph", 8, n + 1, ALWAYS, {("move", "gather"): visited * n})
    yield _array("targets.0", "graph", 4, arcs, ALWAYS, passes)
    if shape.weight_bytes:
        yield _array("weights.0", "graph", shape.weight_bytes, arcs, ALWAYS, passes)
    if shape.loops:
        yield _array("loops.0", "graph", shape.sum_bytes, n, ALWAYS)
    kept = reserved(arcs, 0, leiden=shape.method == "leiden")
    # Unweighted arcs weigh as many as they are; how much others weigh is not known here.
    slots = 0 if shape.weight_bytes else slots_for_wide(arcs, kept, shape.sum_bytes, LIMITS)
    width, head = (1, narrow.head_bytes(slots)) if slots else (shape.sum_bytes, 0)
    rows = int(COARSE_VERTICES * n)
    later: dict[tuple[Stage, Use], float] = {("coarse", "stream"): visited * kept / 2}
    yield _array("offsets.1", "graph", 8, rows + 1, LATER, {("coarse", "gather"): rows})
    yield _array("targets.1", "graph", 4, kept, LATER, later)
    yield _array("weights.1", "graph", width, head + kept, LATER, later)
    yield _array("loops.1", "graph", shape.sum_bytes, rows, LATER)


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
    rows = int(COARSE_VERTICES * n)
    yield _array("degrees.1", "community", sums, rows, LATER)
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
    for name in ("members", "starts", "low", "rooms"):
        yield _array(f"aggregate {name}", "scratch", 4, n + 1, ("aggregate",))
    limits = TIGHT if shape.tight else LIMITS
    room = min(chunk_for(shape.arcs, limits, leiden=shape.method == "leiden"), shape.arcs)
    yield _array("aggregate room_targets", "scratch", 4, room, ("aggregate",))
    yield _array("aggregate room_weights", "scratch", sums, room, ("aggregate",))
    yield _array("numbering", "scratch", 12, n, ("fetch",))
    yield _array("community keys", "scratch", 8, n // 2, ("fetch",))


def _tables(shape: Shape, visited: float) -> Iterator[Declared]:
    """Yield hash tables in global memory: those of giants."""
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
