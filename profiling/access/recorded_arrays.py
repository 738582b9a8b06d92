"""Arrays that the GPU engine would have for a graph and its levels, as recorded steps see them."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from louvain_um.core.ledger import Group
from louvain_um.gpu.memory.degree_stats import graph_stats
from louvain_um.gpu.runtime.launch import BLOCK_MAX, hub_table_sizes
from louvain_um.graph.graph import Graph
from louvain_um.profiling.access.program import Program, Slots
from louvain_um.profiling.simulator.touches import Access

STRETCH: Final = 1 << 15
"""Approximate arcs whose accesses are unordered: as many as a small GPU processes at a time."""

MOST_STRETCHES: Final = 256
"""Most chunks of a pass over a graph; those of large graphs are longer."""


def numbered(name: str, level: int) -> str:
    """Return an array's name; those of level 0 carry no number unless the graph's."""
    return name if level == 0 else f"{name}.{level}"


class RecordedArrays:
    """A program and its arrays, with the names, groups and element sizes of the GPU engine."""

    def __init__(self, graph: Graph) -> None:
        self.program = Program()
        self.vertices, self.arcs = graph.n_vertices, graph.n_arcs
        self.weight = 0 if graph.weights is None else graph.weights.dtype.itemsize
        self.sums = 4 if graph.total_weight < 2**32 else 8
        self.has_loops = graph.has_loops
        self.degrees = graph_stats(graph)
        self.stretch = max(STRETCH, self.arcs // MOST_STRETCHES)
        self.hubs = (0, 0)
        self.labels = np.empty(0, np.uint32)
        self.level = (-1, -1)
        given = self.program.given
        given("offsets.0", "graph", 8, self.vertices + 1)
        given("targets.0", "graph", 4, self.arcs)
        if self.weight:
            given("weights.0", "graph", self.weight, self.arcs)
        if self.has_loops:
            given("loops.0", "graph", self.sums, self.vertices)
        # They come with the graph, so the host wrote them.
        given("degrees.0", "community", self.sums, self.vertices)

    def facts(self) -> dict[str, Any]:
        """Return what a plan of the run follows from."""
        return {
            "vertices": self.vertices,
            "arcs": self.arcs,
            "weight_bytes": self.weight,
            "sum_bytes": self.sums,
            "loops": self.has_loops,
            "max_degree": self.degrees.max_degree,
            "isolated": self.degrees.isolated,
            "hub_arcs": self.degrees.hub_arcs,
            "skew": self.degrees.degree_squares / max(self.arcs, 1),
            "clustering": self.degrees.clustering,
        }

    def begin(self, group: Group, level: int, size: int, **widths: int) -> None:
        """Note that a level's arrays of a group are made; `widths` are bytes by name."""
        for name, width in widths.items():
            self.program.begin(numbered(name, level), group, width, size)

    def drop_coarser(self, level: int) -> None:
        """Free the arrays of finished levels."""
        for name in sorted(self.program.alive):
            stem, _, number = name.rpartition(".")
            if not number.isdecimal() or stem in ("labels", "start"):
                continue
            over = int(number) > level or (0 < int(number) < level)
            if over:
                self.program.end(name)
        if level == 0:
            kept = [name for name in self.program.alive if name.startswith(("labels.", "start."))]
            self.program.end(*sorted(kept))

    def make_hub_tables(self, work: Any, level: int) -> tuple[int, int]:
        """Make the tables of hubs; return the largest degree of other vertices, and the slots."""
        n, arcs = len(work["offsets"]) - 1, len(work["targets"])
        wide = self.degrees.hub_arcs if level == 0 else None  # as in the engine
        count, slots = hub_table_sizes(n, arcs, work["max_degree"], self.sums, hub_arcs=wide)
        self.begin("hash", level, slots, **{"hub_keys": 4, "hub_sums": self.sums})
        self.begin("hash", level, count, **{"hub_slots": 8})
        return BLOCK_MAX[self.sums], slots

    def slots_of(self, level: int, labels: str = "labels") -> Slots:
        """Return the slots of moving, in the order of `counting`."""
        name = partial(numbered, level=level)
        return Slots(
            self.program,
            [
                (name("queue"), Access.READ),
                (f"offsets.{level}", Access.GATHER),
                (f"degrees.{level}", Access.GATHER),
                (name(labels), Access.GATHER),
                (f"targets.{level}", Access.READ),
                (f"weights.{level}", Access.READ),
                (name(labels), Access.GATHER),
                (name("totals"), Access.GATHER),
                (name("hub_keys"), Access.ATOMIC),
                (name("hub_sums"), Access.ATOMIC),
                (name("proposed"), Access.WRITE),
                (name("proposed"), Access.READ),
                (name(labels), Access.SCATTER),
                (name("totals"), Access.ATOMIC),
                (name("sizes"), Access.ATOMIC),
                (name("next_active"), Access.SCATTER),
            ],
        )

    def widths(self, level: int) -> tuple[int, int]:
        """Return bytes of a weight and of a sum on a level."""
        return (self.weight if level == 0 else self.sums), self.sums
