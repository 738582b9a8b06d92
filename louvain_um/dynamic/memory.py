"""The bytes of a changing graph, and the budget that they are held to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from louvain_um.core.headroom import check_host_memory
from louvain_um.dynamic.stores.store import ROW_BYTES
from louvain_um.errors import MemoryBudgetError

VERTEX_BYTES: Final = 17
"""Bytes of a vertex's loop, degree, and whether it is alive."""


def refuse_many_vertices(count: int) -> None:
    """Raise if the host has no memory for so many more vertices."""
    check_host_memory(
        count * (VERTEX_BYTES + ROW_BYTES),
        f"a changing graph of {count:,} more vertices",
        "check the number of vertices, or use a machine with more memory",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreMemory:
    """Bytes of a changing graph.

    Parameters
    ----------
    live_bytes : int
        Targets and weights of the arcs.
    held_bytes : int
        Places that arcs occupy or left: live ones, room in pages, free pages.
    row_bytes, vertex_bytes : int
        What finds the rows; loops, degrees and which vertices are alive.
    moved_bytes : int
        Bytes of rows that batches copied from one place to another so far.
    bytes_per_arc : float
        `held_bytes` over the number of arcs; 0 without arcs.
    host_bytes : int
        Of a graph on a device: bytes of its arcs that lie on the host, past the budget.
    """

    live_bytes: int
    held_bytes: int
    row_bytes: int
    vertex_bytes: int
    moved_bytes: int
    bytes_per_arc: float
    host_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """Bytes held in all."""
        return self.held_bytes + self.row_bytes + self.vertex_bytes

    @property
    def device_bytes(self) -> int:
        """Bytes that count against the budget: all but those on the host past it."""
        return max(0, self.held_bytes - self.host_bytes) + self.row_bytes + self.vertex_bytes


@dataclass(frozen=True, slots=True)
class GraphBudget:
    """Bytes that a changing graph may hold; its store gets what the vertices leave."""

    nbytes: int | None

    def of_arcs(self, vertices: int) -> int | None:
        """Return what the budget leaves to the store after so many vertices."""
        return None if self.nbytes is None else max(0, self.nbytes - VERTEX_BYTES * vertices)

    @contextmanager
    def counting(self, vertices: int) -> Iterator[None]:
        """Let errors of the store report the budget of the whole graph, vertices included."""
        try:
            yield
        except MemoryBudgetError as error:
            if self.nbytes is None or error.budget != self.of_arcs(vertices):
                raise
            held = VERTEX_BYTES * vertices
            raise MemoryBudgetError(
                error.needed + held, self.nbytes, [*error.largest, ("vertices", held)],
                error.remedy,
            ) from None  # fmt: skip

    def exceeded(self, memory: StoreMemory, more: int) -> bool:
        """Whether so many bytes more would be beyond the budget."""
        return self.nbytes is not None and memory.device_bytes + more > self.nbytes

    def refuse_vertices(self, memory: StoreMemory, more: int, vertices: int) -> None:
        """Raise if so many bytes more, with which there are `vertices`, are beyond the budget."""
        if self.nbytes is not None and self.exceeded(memory, more):
            held = vertices * (VERTEX_BYTES + ROW_BYTES)
            raise MemoryBudgetError(
                memory.device_bytes + more, self.nbytes, [("vertices", held)], "raise device_budget"
            )
