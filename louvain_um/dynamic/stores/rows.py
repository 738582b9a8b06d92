"""Contiguous rows in pages of size classes, by prefix sum: the default store; and `csr`.

A batch merges into the rows it touches. A row that no longer fits its page, or fills less than
half of it, moves to a page of another class: from that class's stack of free pages, or else from
the end of the pool. Rows take pages, and give theirs back, in the order of their vertices, so that
the layout follows from the batches alone. Batches that touch much of the graph, and batches
that leave too many pages free, rebuild the pool in the order of the vertices instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.cpu.dynamic.contiguous import CAPACITIES, Places, capacities_for, classes_for
from louvain_um.dynamic.stores.contiguous import PagedRows
from louvain_um.dynamic.stores.store import (
    EMPTY_I64,
    I64,
    NO_CHANGES,
    ROW_BYTES,
    ArcChanges,
    Compressed,
    Growing,
    RowLengths,
    Weights,
    afford,
    longer,
    offsets_of,
)

REBUILD_SHARE: Final = 0.75
"""Share of the rows from which on a batch that touches them rebuilds.

Merging them where they lie takes less time until nearly all rows are touched, but leaves free pages
behind. With three quarters of the rows it takes six to eight tenths of the time of a rebuild.
"""

MOST_FREE: Final = 0.25
"""Share of the pool that may be free: stacks of free pages never merge neighbours."""

LEAST_FREE: Final = 1 << 16
"""Arcs of free pages below which a rebuild is not worth it."""

ROOM: Final = 1.25
"""Growth of the pool. Pages of it that were never written take no memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Where the touched rows lie and go, and which of them change their class, and so move."""

    # Pages are `taken` from the stack of each class, and `given` back by class, in the order of
    # their rows; the used part of the pool then ends at `frontier`, and pages of `free_arcs` are
    # free.

    places: Places
    moving: NDArray[np.intp]
    taken: dict[int, int]
    given: dict[int, I64]
    frontier: int
    free_arcs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The whole store after a batch: rows in the order of their vertices, each in its page."""

    rows: Compressed
    lengths: I64
    classes: NDArray[np.uint8]


class RowsStore(PagedRows):
    """Rows in pages of size classes; see the module."""

    name: ClassVar[str] = "rows"
    paged: ClassVar[bool] = True
    capacities = CAPACITIES

    def __init__(self, rows: Compressed, threads: int, budget: int | None) -> None:
        self.threads, self.budget = threads, budget
        self.begins, self.ends = rows.offsets[:-1], rows.offsets[1:]
        self.targets, self.weights = rows.targets, rows.weights
        self.n_arcs = self.frontier = len(rows.targets)
        self.moved_bytes, self.free_arcs = 0, 0
        self.free = [Growing(EMPTY_I64) for _ in CAPACITIES]
        self._take(self._rebuilt(NO_CHANGES, self.weights), NO_CHANGES)
        afford(self.budget, self.held_bytes, self.row_bytes)
        self.moved_bytes = 0

    @classmethod
    def sizes(cls, rows: RowLengths, item: int) -> tuple[int, int]:
        """Return `held_bytes` and `row_bytes` of a store just built, of `item` bytes an arc."""
        places = capacities_for(rows.lengths) if cls.paged else rows.lengths
        return item * rows.total(places), ROW_BYTES * rows.vertices

    def reserve(self, changes: ArcChanges) -> Moves | Rebuilt:
        """Decide where each touched row goes, and take memory for it."""
        like = self.wide_enough(changes.heaviest)
        # Both copies are alive for a while.
        twice = self.held_bytes + self._rebuilt_bytes(changes, like)
        wider = like is not None and self.weights is not None and like.dtype != self.weights.dtype
        if wider or (len(changes.rows) and not self.paged):
            afford(self.budget, twice, self.row_bytes)
            return self._rebuilt(changes, like)
        fits = self.budget is None or twice + self.row_bytes <= self.budget
        if fits and len(changes.rows) > REBUILD_SHARE * len(self.begins):
            return self._rebuilt(changes, like)
        moves = self._moves(changes)
        if fits and moves.free_arcs > max(MOST_FREE * moves.frontier, LEAST_FREE):
            return self._rebuilt(changes, like)
        afford(self.budget, self.item_bytes(like) * moves.frontier, self.row_bytes)
        self._grow_pool(moves.frontier)
        for size_class, begins in moves.given.items():
            self.free[size_class].reserve(len(begins))
        return moves

    def commit(self, changes: ArcChanges, reserved: Moves | Rebuilt) -> None:
        """Merge the changes into the touched rows, or take the rebuilt ones."""
        if isinstance(reserved, Rebuilt):
            self._take(reserved, changes)
            return
        self._edit(changes, reserved.places, reserved.moving)
        for size_class, count in reserved.taken.items():
            self.free[size_class].drop(count)
        for size_class, begins in reserved.given.items():
            self.free[size_class].extend(len(begins), begins)
        self.frontier, self.free_arcs = reserved.frontier, reserved.free_arcs

    def _moves(self, changes: ArcChanges) -> Moves:
        """Choose pages for the touched rows; nothing is written to the store."""
        places, moving = self._places(changes)
        frontier, free_arcs = self.frontier, self.free_arcs
        taken, given_back = dict[int, int](), dict[int, I64]()
        for size_class, rows in self.by_class(places.wanted, moving):
            stack, capacity = self.free[size_class].items, int(CAPACITIES[size_class])
            reused = min(len(stack), len(rows))
            taken[size_class] = reused
            places.new_begins[rows[:reused]] = stack[len(stack) - reused :][::-1]
            fresh = len(rows) - reused
            places.new_begins[rows[reused:]] = frontier + capacity * np.arange(fresh)
            frontier += capacity * fresh
            free_arcs -= capacity * reused
        for size_class, rows in self.by_class(places.classes, moving):
            given_back[size_class] = places.begins[rows]
            free_arcs += int(CAPACITIES[size_class]) * len(rows)
        return Moves(
            places=places, moving=moving, taken=taken, given=given_back, frontier=frontier,
            free_arcs=free_arcs,
        )  # fmt: skip

    def _grow_pool(self, frontier: int) -> None:
        """Make the pool reach to `frontier`; rows stay where they are."""
        if frontier <= len(self.targets):
            return
        size = int(frontier * ROOM)
        self.targets = longer(self.targets[: self.frontier], size)
        if self.weights is not None:
            self.weights = longer(self.weights[: self.frontier], size)

    def _rebuilt_bytes(self, changes: ArcChanges, like: Weights | None) -> int:
        """Return bytes of the pool after a rebuild, at most: pages are at least half full."""
        most = (
            2 * (self.n_arcs + max(changes.arcs, 0)) if self.paged else self.n_arcs + changes.arcs
        )
        return self.item_bytes(like) * most

    def _rebuilt(self, changes: ArcChanges, like: Weights | None) -> Rebuilt:
        """Return the store after a batch, rows in the order of their vertices."""
        lengths = self.lengths_after(changes)
        if not self.paged:
            rows = self.copied(changes, offsets_of(lengths), None, like)
            return Rebuilt(rows=rows, lengths=lengths, classes=np.zeros(len(lengths), np.uint8))
        classes = classes_for(lengths)
        offsets = offsets_of(np.append(CAPACITIES, [0] * (256 - len(CAPACITIES)))[classes])
        rows = self.copied(changes, offsets, int(int(offsets[-1]) * ROOM), like)
        return Rebuilt(rows=rows, lengths=lengths, classes=classes)

    def _take(self, built: Rebuilt, changes: ArcChanges) -> None:
        """Replace the store's arrays."""
        begins = built.rows.offsets[:-1]
        self._hold(begins, begins + built.lengths, built.classes)
        self.targets, self.weights = built.rows.targets, built.rows.weights
        self.frontier, self.free_arcs = int(built.rows.offsets[-1]), 0
        self.free = [Growing(EMPTY_I64) for _ in CAPACITIES]
        self.n_arcs += changes.arcs
        self.moved_bytes = self.moved_bytes + self.live_bytes

    def compact(self) -> None:
        """Rebuild the pool in the order of the vertices, without free pages."""
        if not self.paged:
            return
        twice = self.held_bytes + self._rebuilt_bytes(NO_CHANGES, self.weights)
        afford(self.budget, twice, self.row_bytes)
        self._take(self._rebuilt(NO_CHANGES, self.weights), NO_CHANGES)

    def check(self) -> None:
        """Raise AssertionError unless rows ascend and pages tile the pool."""
        super().check()
        if not self.paged:
            assert self.frontier == self.n_arcs == len(self.targets), "targets lie beyond all rows"
            return
        used, capacities = self._pages()
        begins, sizes = [used], [capacities]
        for free, capacity in zip(self.free, CAPACITIES, strict=True):
            begins.append(free.items)
            sizes.append(np.full(len(free.items), capacity))
        held, size = np.concatenate(begins), np.concatenate(sizes)
        order = np.argsort(held)
        ends = np.cumsum(size[order])
        assert (held[order] == ends - size[order]).all(), "pages overlap or leave a gap"
        assert self.frontier == (ends[-1] if len(ends) else 0) <= len(self.targets)
        assert self.free_arcs == size.sum() - capacities.sum(), "free pages do not add up"

    @property
    def held_bytes(self) -> int:
        """Bytes of the pool up to its frontier."""
        return self.item_bytes(self.weights) * self.frontier


class CsrStore(RowsStore):
    """Compressed rows without a gap, which every batch copies: the baseline of comparisons."""

    name: ClassVar[str] = "csr"
    paged: ClassVar[bool] = False


STORES: Final = {"rows": RowsStore, "csr": CsrStore}
