"""What a comparison of stores can measure beside plain batches; each on request."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from louvain_um.algorithms.pagerank import pagerank
from louvain_um.algorithms.triangles import triangles
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.scenarios import random_ends

TRIALS: Final = {
    "sorted": "batches that come sorted by row, and the same ones shuffled",
    "skew": "batches of which every edge has an end among a thousandth of the vertices",
    "algorithms": "PageRank and triangles, on a copy of the rows where these are chained",
    "vertices": "vertices added, and removed with all their edges",
}
"""Trials by name; those that change a graph most come last."""

RUNS: Final = 3

Seconds = dict[str, list[float]]


def placed(store: Any, columns: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """Return columns where the graph is: on the store's device, if there is one."""
    if store is None or columns is None:
        return columns
    ends = tuple(store.xp.asarray(column, np.uint32) for column in columns[:2])
    return *ends, *(store.xp.asarray(column) for column in columns[2:])


def wait(store: Any) -> None:
    """Wait for the store's device."""
    if store is not None:
        store.read_counts()


class Trials:
    """Trials on a graph, with batches of one size."""

    def __init__(
        self, graph: DynamicGraph, batch: int, device: str, seed: int, runs: int = RUNS
    ) -> None:
        self.graph, self.batch, self.device, self.runs = graph, batch, device, runs
        self.store = graph.device_store
        self.rng = np.random.default_rng([seed, batch])
        self.seconds: Seconds = {}

    def run(self, chosen: tuple[str, ...]) -> dict[str, float | int]:
        """Carry out trials; return milliseconds, and the number of triangles."""
        found: dict[str, float | int] = {}
        for name in TRIALS:
            if name in chosen and self.graph.n_vertices > 1:
                self.seconds = {}
                found |= getattr(self, f"_{name}")() or {}
                found |= {f"{what}_ms": 1e3 * min(t) for what, t in self.seconds.items()}
        return found

    def _sorted(self) -> None:
        """Insert a batch sorted by row, delete it, insert it shuffled; next time the reverse."""
        for run in range(self.runs + 1):
            u, v = random_ends(self.rng, self.graph.n_vertices, self.batch)
            ways = [
                ("sorted_insert", np.lexsort((v, u))),
                ("shuffled_insert", self.rng.permutation(len(u))),
            ]
            for what, places in ways if run % 2 else reversed(ways):
                ends = placed(self.store, (u[places], v[places]))
                change = self._timed(what, run, self.graph.apply, insert=ends)
                self.graph.apply(delete=(change.u, change.v))

    def _skew(self) -> None:
        """Insert and delete edges that meet at few vertices."""
        n = self.graph.n_vertices
        hubs = self.rng.choice(n, max(1, n // 1000), replace=False).astype(np.uint32)
        for run in range(self.runs + 1):
            _, v = random_ends(self.rng, n, self.batch)
            u = self.rng.choice(hubs, len(v))
            ends = placed(self.store, (u[u != v], v[u != v]))
            change = self._timed("skewed_insert", run, self.graph.apply, insert=ends)
            new = change.u, change.v
            self._timed("skewed_delete", run, self.graph.apply, delete=new)

    def _algorithms(self) -> dict[str, int]:
        """Rank the vertices and count triangles."""
        counts: Any = ()
        for run in range(self.runs + 1):
            self._timed(
                "pagerank", run, lambda: pagerank(self.graph, tolerance=1e-4, device=self.device)
            )
            counts = self._timed(
                "triangles", run, lambda: triangles(self.graph, device=self.device)
            )
        return {"triangles": int(np.asarray(counts).sum()) // 3}

    def _vertices(self) -> None:
        """Add vertices, and remove others with their edges."""
        count = max(1, min(self.batch, self.graph.n_vertices // 16))
        for run in range(self.runs + 1):
            self._timed("add_vertices", run, self.graph.add_vertices, count)
            alive = np.flatnonzero(self.graph.alive)
            gone = self.rng.choice(alive, min(count, len(alive)), replace=False)
            self._timed("remove_vertices", run, self.graph.remove_vertices, gone)

    def _timed(
        self, what: str, run: int, call: Callable[..., Any], *args: Any, **options: Any
    ) -> Any:
        """Call, and count the time unless this is the first run, which compiles."""
        since = time.perf_counter()
        result = call(*args, **options)
        wait(self.store)
        if run:
            self.seconds.setdefault(what, []).append(time.perf_counter() - since)
        return result
