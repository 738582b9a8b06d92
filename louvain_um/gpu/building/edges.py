"""Rows of a list of edges in host memory, made on a device: those of the host, bit for bit.

Sorting takes the host far longer than the bus takes to bring the edges and to return the rows.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import DeviceUnavailableError
from louvain_um.gpu.runtime.device import is_several, pick
from louvain_um.graph import rows
from louvain_um.graph.build import rows_made_by

if TYPE_CHECKING:
    from louvain_um.gpu.building.build import Builder, Ends
    from louvain_um.options import Options

LEAST_EDGES: Final = 1 << 20
"""Fewer edges are left to the host, which sorts them in tens of milliseconds."""

SHARE: Final = 0.9
"""Part of the free device memory that building may take."""


def rows_made_on(options: Options) -> AbstractContextManager[None]:
    """Let the GPU of a run make the rows of graphs within a block.

    The host makes them where the run has no single GPU, for few edges, and where building does not
    fit the memory that the run may occupy.
    """
    device, budget = options.device, options.budget
    if device == "cpu" or is_several(device) or budget.fraction is not None:
        return nullcontext()

    def compress(
        u: NDArray[np.uint32],
        v: NDArray[np.uint32],
        weights: NDArray[np.int64] | None,
        n: int,
        *,
        summing: bool,
        threads: int,
    ) -> rows.Rows:
        made = None
        if len(u) >= LEAST_EDGES:
            from louvain_um.gpu.building.build import Ends

            made = _made_there(device, budget.nbytes, Ends(u, v, weights), n, summing=summing)
        return made or rows.compress(u, v, weights, n, summing=summing, threads=threads)

    return rows_made_by(compress)


def _made_there(
    device: str, limit: int | None, ends: Ends, n: int, *, summing: bool
) -> rows.Rows | None:
    """Return the rows that the device of a run makes; None where it cannot."""
    try:
        chosen = pick(device)
    except DeviceUnavailableError:  # which the run reports
        return None
    if chosen.kind == "cpu":
        return None
    from cupy.cuda.memory import OutOfMemoryError

    from louvain_um.gpu.building.build import Builder
    from louvain_um.gpu.dynamic.cuda import Cuda
    from louvain_um.placement.memory import copies, cuda_calls

    with chosen.current():
        free = int(SHARE * cuda_calls.free_memory()[0])
        weighted = ends.weights is not None
        if building_bytes(len(ends.u), n, weighted=weighted) > min(free, limit or free):
            return None
        there = Cuda()
        try:
            return rows_by(Builder(there), copies, ends, n, summing=summing)
        except OutOfMemoryError:
            return None
        finally:
            there.free_cached()


def building_bytes(edges: int, n: int, *, weighted: bool) -> int:
    """Return the device memory that making rows takes, if none is longer than a range."""
    from louvain_um.gpu.building.build import RANGE_ARCS, SORTED_BYTES, SUMMED_BYTES

    listed, arc, scratch = (16, 16, SUMMED_BYTES) if weighted else (8, 4, SORTED_BYTES)
    return edges * listed + 2 * edges * arc + min(2 * edges, RANGE_ARCS) * scratch + 32 * n


def rows_by(builder: Builder, copies: Any, ends: Ends, n: int, *, summing: bool) -> rows.Rows:
    """Return the rows of a host's edges; `copies` has `sent` and `fetched` of a device."""
    weights = None if ends.weights is None else copies.sent(ends.weights.view(np.uint64))
    there = ends._replace(u=copies.sent(ends.u), v=copies.sent(ends.v), weights=weights)
    made = builder.rows(lambda: [there], n, weighted=weights is not None, summing=summing)
    sums = None if made.weights is None else copies.fetched(made.weights)
    return rows.Rows(
        offsets=copies.fetched(made.offsets),
        targets=copies.fetched(made.targets),
        weights=sums.view(np.int64) if sums is not None and sums.dtype == np.uint64 else sums,
        loops=np.zeros(n, np.int64)
        if made.loops is None
        else copies.fetched(made.loops).view("i8"),
        repeats=made.repeats,
        weightless=made.weightless,
    )
