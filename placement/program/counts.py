"""Counted accesses in place of guessed ones: what a tracer saw, as accesses of an array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from louvain_um.events import Event
from louvain_um.placement.program.accesses import Access, Atomic, Gather, Stream

EVEN: Final = 0.5
"""Variance of the counts of pages divided by their mean, below which an array is streamed: 0 if
each pass reads every page as often, 1 or more if accesses fall on pages at random."""


class Counter(Protocol):
    """Counts accesses of kernels while it is entered: an access tracer."""

    def __enter__(self) -> Any: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def observe(self, event: Event) -> None:
        """Be told of an array or a phase."""

    def result(self) -> Any:
        """Return what was counted."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Accesses of one array, by elements: reads, writes, atomics, and those of each page."""

    reads: float
    writes: float
    atomics: float
    pages: NDArray[Any]

    @property
    def even(self) -> bool:
        """Whether the pages in use were accessed equally often: the array was streamed."""
        pages = np.asarray(self.pages, np.float64)
        # The last page is seldom whole.
        inside = pages[:-1][pages[:-1] > 0] if len(pages) > 1 else pages
        return not len(inside) or bool(inside.var() < EVEN * max(float(inside.mean()), 1e-300))

    def accesses(self, size: int) -> tuple[list[Access], list[Access]]:
        """Return what was read and written, as passes where the array was streamed."""
        share = float((np.asarray(self.pages) > 0).mean()) if len(self.pages) else 1.0
        even = self.even

        def made(count: float) -> list[Access]:
            if not count or not size:
                return []
            if even:
                return [Stream(float(count) / (size * share), share)]
            return [Gather(float(count), share)]

        reads = made(self.reads)
        if self.atomics:
            reads.append(Atomic(float(self.atomics), share))
        return reads, made(self.writes)


def counted(result: Any) -> dict[str, Counted]:
    """Return what a counter's result holds, by array."""
    by_page: Mapping[str, NDArray[Any]] = {
        page.array: np.asarray(page.counts).sum(axis=1, dtype=np.float64)
        for page in result.maps
        if page.kind == "access"
    }
    found = {}
    for name, uses in result.counts.items():
        pages: Sequence[float] | NDArray[Any] = by_page.get(name, np.empty(0))
        found[name] = Counted(
            float(uses.reads), float(uses.writes), float(uses.atomics), np.asarray(pages)
        )
    return found
