"""Rows of a list of edges in host memory, made on a device: those of the host, bit for bit.

Sorting takes the host far longer than the bus takes to bring the edges and to return the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from louvain_um.errors import DeviceUnavailableError
from louvain_um.gpu.graph import ARRAYS, DeviceGraph, FetchedGraph
from louvain_um.gpu.runtime.device import (
    all_begun,
    capabilities,
    in_background,
    is_several,
    pick,
)
from louvain_um.graph import rows
from louvain_um.graph.build import rows_made_by
from louvain_um.placement.layout import device_bytes_in_core
from louvain_um.placement.model.workload import GRAPH_KINDS
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO

if TYPE_CHECKING:
    from louvain_um.gpu.building.build import Builder, Ends
    from louvain_um.options import Options

LEAST_EDGES: Final = 1 << 20
"""Fewer edges are left to the host, which sorts them in tens of milliseconds."""

SHARE: Final = 0.9
"""Part of the free device memory that building may take."""

FIXED_BYTES: Final = 1 << 16
"""What building takes in addition to edges, vertices and arcs."""


@contextmanager
def rows_made_on(options: Options) -> Iterator[None]:
    """Let the GPU of a run make the rows of graphs within a block.

    Where they do not fit the memory that the run may occupy, spans of rows are made one after the
    other. The host makes them where the run has no single GPU, for few edges, and where these spans
    would be too many.
    """
    device = options.device
    if device == "cpu" or is_several(device):
        yield
        return
    if "louvain_um.gpu.engine" not in sys.modules:
        in_background(_import_engine)

    def compress(*edges: Any, **how: Any) -> rows.SortedRows:
        """Make rows as `rows.compress` does, on the device if it can."""
        many = len(edges[0]) >= LEAST_EDGES
        made = _made_there(options, *edges, **how) if many else None
        return made or rows.compress(*edges, **how)

    try:
        with rows_made_by(compress):
            yield
    finally:
        all_begun()


def _import_engine() -> None:
    """Import CuPy and the engine, on machines with a GPU, while the host reads edges."""
    capabilities()
    import cupy  # noqa: F401

    from louvain_um.gpu import engine  # noqa: F401
    from louvain_um.gpu.runtime.nvrtc import compiler

    compiler()


def _made_there(
    options: Options, u: Any, v: Any, weights: Any, n: int, *, summing: bool, threads: int
) -> rows.SortedRows | None:
    """Return the rows that a run's device makes, to stay there if the run decides so; else None."""
    try:
        chosen = pick(options.device)
    except DeviceUnavailableError:  # which the run reports
        return None
    if chosen.kind == "cpu":
        return None
    from cupy.cuda.memory import OutOfMemoryError

    from louvain_um.gpu.building.build import Builder, Ends, LongRowError
    from louvain_um.gpu.dynamic.cuda import CudaDevice
    from louvain_um.placement.memory import copies, cuda_calls

    with chosen.current():
        ends, free = Ends(u, v, weights), int(SHARE * cuda_calls.free_memory()[0])
        weighted = ends.weights is not None
        limit = limit_of(options, len(ends.u), n, weighted=weighted) or free
        sizes = sizes_within(min(free, limit), len(ends.u), n, weighted=weighted, threads=threads)
        if sizes is None:
            return None
        stay = sizes.most_arcs >= 2 * len(ends.u) and find_policy(options.memory).name == AUTO.name
        there = CudaDevice()
        try:
            builder = Builder(there, sizes.range_arcs)
            return rows_by(builder, copies, ends, n, sizes, summing=summing, stay=stay)
        except (OutOfMemoryError, LongRowError):
            return None
        finally:
            there.free_cached()


def limit_of(options: Options, edges: int, n: int, *, weighted: bool) -> int | None:
    """Return the bytes that building may take: the budget of the run, None without one.

    A share is one of the least that a run on so many different edges takes in core.
    """
    if options.budget.fraction is None:
        return options.budget.nbytes
    from louvain_um.gpu.memory.run_plan import declared
    from louvain_um.gpu.memory.shape import Shape, sums_of_ones

    width, sums = (4, 8) if weighted else (0, sums_of_ones(2 * edges))
    sizes = Shape(
        vertices=n, arcs=2 * edges, weight_bytes=width, sum_bytes=sums, method=options.method
    )
    shapes = (replace(sizes, kind=kind) for kind in GRAPH_KINDS)
    return options.budget.resolve(
        min(device_bytes_in_core(declared(shape, False), separate=True) for shape in shapes)
    )


def building_bytes(edges: int, n: int, *, weighted: bool) -> int:
    """Return the device memory that making rows takes, if none is longer than a range."""
    from louvain_um.gpu.building.build import RANGE_ARCS, UNWEIGHTED, WEIGHTED

    listed, arc, scratch = WEIGHTED if weighted else UNWEIGHTED
    arcs = edges * listed + 2 * edges * arc + min(2 * edges, RANGE_ARCS) * scratch
    return arcs + 32 * n + FIXED_BYTES


class Sizes(NamedTuple):
    """How much of a graph is on the device at a time: edges, arcs of rows, arcs being sorted."""

    edges: int
    most_arcs: int
    range_arcs: int


def sizes_within(limit: int, edges: int, n: int, *, weighted: bool, threads: int) -> Sizes | None:
    """Return sizes with which making rows fits a limit; None if the host makes them sooner."""
    from louvain_um.gpu.building.build import RANGE_ARCS, UNWEIGHTED, WEIGHTED
    from louvain_um.placement.machine.profiles import rate

    records = 2 * edges
    if building_bytes(edges, n, weighted=weighted) <= limit:
        return Sizes(edges, records, RANGE_ARCS)
    listed, arc, scratch = WEIGHTED if weighted else UNWEIGHTED
    rest = limit - 32 * n - FIXED_BYTES
    # A piece of the list takes an eighth, twice: the next one comes before the last has gone.
    piece = rest // 8 // listed
    rest -= 2 * piece * listed
    arcs = min(RANGE_ARCS, rest // (arc + scratch))
    span = arcs if arcs < RANGE_ARCS else (rest - arcs * scratch) // arc
    if span <= 0 or records > rate("host_spans") // threads * span:
        return None
    return Sizes(max(piece, 1), span, arcs)


@dataclass(frozen=True, slots=True)
class RowsThere(rows.SortedRows):
    """The same on a device, as it holds them."""

    n_loops: int

    def here(self) -> rows.SortedRows:
        """Return the rows in host memory."""
        arrays = {name: self._there(check=False).fetched(name) for name in ARRAYS}
        return rows.SortedRows(**arrays, repeats=self.repeats, weightless=self.weightless)

    def graph(self, made: Any, **more: Any) -> Any:
        """Return a graph of these rows, which stay on the device."""
        there = self._there(scale=more["scale"], notes=more["notes"], check=False)
        return FetchedGraph.of(there, **more)

    def _there(self, **more: Any) -> DeviceGraph:
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ARRAYS}
        return DeviceGraph(**arrays, **more)


def rows_by(
    builder: Builder,
    copies: Any,
    ends: Ends,
    n: int,
    sizes: Sizes,
    *,
    summing: bool,
    stay: bool = False,
) -> rows.SortedRows:
    """Return the rows of a host's edges; `copies` has `sent` and `fetched` of a device.

    If they are to `stay` on the device, all of them must fit.
    """
    weighted = ends.weights is not None
    given = ends._replace(weights=ends.weights.view(np.uint64)) if weighted else ends

    def piece(begin: int) -> Ends:
        part = slice(begin, begin + sizes.edges)
        weights = None if given.weights is None else copies.sent(given.weights[part])
        return given._replace(
            u=copies.sent(given.u[part]), v=copies.sent(given.v[part]), weights=weights
        )

    def pieces() -> Iterable[Ends]:
        return map(piece, range(0, len(ends.u), sizes.edges))

    whole = [piece(0)] if sizes.edges >= len(ends.u) else None
    made = builder.rows(
        pieces if whole is None else lambda: whole,
        n,
        weighted=weighted,
        summing=summing,
        most_arcs=sizes.most_arcs,
        fetched=None if stay else copies.fetched,
    )
    arrays = made.offsets, made.targets, made.weights, made.loops
    there = RowsThere(*arrays, made.repeats, made.weightless, made.n_loops)
    return there if stay else there.here()
