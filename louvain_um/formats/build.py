"""The last step of every reader: edges, weights and names become a graph with its notes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import GraphError, Taken
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph import rows
from louvain_um.graph.graph import Graph


def make_graph(
    u: NDArray[Any],
    v: NDArray[Any],
    w: Any,
    names: NDArray[Any] | None,
    options: ReadOptions,
    *,
    n: int | None = None,
    notes: Iterable[str] = (),
    owned: bool = False,
) -> Graph:
    """Build the graph of a list of edges; `n` is the number of vertices if no names give it."""
    # Of edges that are `owned`, which nobody needs afterwards, the values may be lost.
    found = [*notes]
    if w is None and options.weighted and len(u):
        raise GraphError("has no weights; drop weighted=True (--weighted)")
    if options.signed and len(u) and (w is None or bool((np.asarray(w) == 1).all())):
        what = "has no weights" if w is None else "has only weights of 1"
        raise GraphError(
            f"{what}, and without negative ones signed communities mean nothing; name their "
            "column with weight=… (--weight), or drop signed=True (--signed) and objective='signed'"
        )
    if options.loops == "drop" and len(u) == len(v):
        kept = np.asarray(u) != np.asarray(v)
        dropped = len(kept) - int(np.count_nonzero(kept))
        if dropped:
            u, v = np.asarray(u)[kept], np.asarray(v)[kept]
            w = None if w is None else np.asarray(w)[kept]
            found.append("1 loop is dropped" if dropped == 1 else f"{dropped:,} loops are dropped")
    if names is not None:
        n = len(names)
        if names.dtype.kind in "iu" and np.array_equal(names, np.arange(n)):
            names = None
    before = rows.SPENT.set(owned and options.kind == "undirected")
    try:
        graph = Graph.from_edges(
            u,
            v,
            w,
            n_vertices=n,
            duplicates=options.duplicates,
            names=names,
            allow_rounding=options.allow_rounding,
            kind=options.kind,
        )
    finally:
        rows.SPENT.reset(before)
    return noted(graph, found)


def noted(graph: Graph, notes: Iterable[str]) -> Graph:
    """Put notes in front of those of a graph that its caller has just made."""
    object.__setattr__(graph, "notes", in_order((*notes, *graph.notes)))
    return graph


def in_order(notes: Iterable[str]) -> tuple[str, ...]:
    """Return notes, those on a weight of unknown name last."""
    listed = [*notes]
    return (
        *(note for note in listed if not isinstance(note, Taken)),
        *(note for note in listed if isinstance(note, Taken)),
    )
