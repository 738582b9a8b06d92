"""Rows of a list of edges in host memory, made on a device: those of the host, bit for bit.

Sorting takes the host far longer than the bus takes to bring the edges and to return the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from louvain_um.errors import DeviceUnavailableError
from louvain_um.formats.edge_list.edges import PARSE_THERE, There
from louvain_um.formats.edge_list.number_vertices import NUMBER_SPARSE, Numbered
from louvain_um.formats.edge_list.scan import LineFormat
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.objects import BUILDS_THERE
from louvain_um.gpu.runtime.device import (
    Choice,
    all_begun,
    capabilities,
    drop_early,
    has_begun,
    in_background,
    is_several,
    pick,
)
from louvain_um.graph import rows
from louvain_um.graph.build import rows_made_by
from louvain_um.options import Options
from louvain_um.placement.layout import device_bytes_in_core
from louvain_um.placement.model.workload import GRAPH_KINDS
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO

if TYPE_CHECKING:
    from louvain_um.gpu.building.text import Site

LEAST_EDGES: Final = 1 << 20
"""Fewer edges are left to the host, which sorts them in tens of milliseconds."""

LEAST_BYTES: Final = 1 << 23
"""Shorter text is left to the host, which parses it while a device would begin."""

T = TypeVar("T")


@contextmanager
def rows_made_on(options: Options) -> Iterator[None]:
    """Let the GPU of a run make the rows of graphs within a block."""
    # Where they do not fit the memory that the run may occupy, spans of rows are made one after the
    # other. The host makes them where the run has no single GPU, for few edges, and where these
    # spans would be too many.
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

    def number(u: Any, v: Any) -> Numbered | None:
        """Return ids as the device numbers them, if it can."""
        return _numbered_there(options, u, v) if len(u) >= LEAST_EDGES else None

    def parse(file: GraphFile, line_format: LineFormat) -> There | None:
        """Return what parses a long file on the device."""
        from louvain_um.gpu.building.text import TextThere

        nbytes = file.plain_bytes()
        if nbytes < LEAST_BYTES or find_policy(options.memory).name != AUTO.name:
            return None
        return TextThere(nbytes, has_begun, partial(_site, options, device_of_block))

    device_of_block = ExitStack()
    objects = BUILDS_THERE.set(False)  # the run has looked at them
    sparse = NUMBER_SPARSE.set(number)
    text = PARSE_THERE.set(parse)
    try:
        with device_of_block, rows_made_by(compress):
            yield
    except BaseException:
        drop_early()
        raise
    finally:
        PARSE_THERE.reset(text)
        NUMBER_SPARSE.reset(sparse)
        BUILDS_THERE.reset(objects)
        all_begun()


def _import_engine() -> None:
    """Import CuPy and the engine, on machines with a GPU, while the host reads edges."""
    capabilities()
    import cupy  # noqa: F401

    from louvain_um.gpu import engine  # noqa: F401
    from louvain_um.gpu.runtime.compile_cache import compiler

    compiler()


def _chosen(options: Options) -> Choice | None:
    """Return the GPU of a run; None if it has none."""
    try:
        chosen = pick(options.device)
    except DeviceUnavailableError:  # which the run reports
        return None
    return None if chosen.kind == "cpu" else chosen


def _site(options: Options, stack: ExitStack) -> Site | None:
    """Return the device of a run, current until the stack ends; None if the run has none."""
    if (chosen := _chosen(options)) is None:
        return None
    from louvain_um.gpu.building.device_rows import SHARE
    from louvain_um.gpu.building.text import Site
    from louvain_um.gpu.dynamic.cuda import CudaDevice
    from louvain_um.placement.memory import copies, cuda_calls

    stack.enter_context(chosen.current())
    free = int(SHARE * cuda_calls.reclaimed_memory()[0])

    def room(edges: int, weighted: bool) -> int:
        return min(free, limit_of(options, edges, 0, weighted=weighted) or free)

    return Site(device=CudaDevice(), copies=copies, room=room)


def _on_device(options: Options, step: Callable[[Any, int], T]) -> T | None:
    """Return what a step makes with the device of a run and its free memory; None if it cannot."""
    if (chosen := _chosen(options)) is None:
        return None
    from cupy.cuda.memory import OutOfMemoryError

    from louvain_um.gpu.building.build import LongRowError
    from louvain_um.gpu.building.device_rows import SHARE
    from louvain_um.gpu.dynamic.cuda import CudaDevice
    from louvain_um.placement.memory import cuda_calls

    with chosen.current():
        there = CudaDevice()
        try:
            return step(there, int(SHARE * cuda_calls.reclaimed_memory()[0]))
        except (OutOfMemoryError, LongRowError):
            return None
        finally:
            there.free_cached()


def _made_there(
    options: Options, u: Any, v: Any, weights: Any, n: int, *, summing: bool, threads: int
) -> rows.SortedRows | None:
    """Return the rows that a run's device makes, to stay there if the run decides so; else None."""

    def make(there: Any, free: int) -> rows.SortedRows | None:
        from louvain_um.gpu.building.build import Builder, Ends
        from louvain_um.gpu.building.device_rows import rows_by, sizes_within
        from louvain_um.placement.memory import copies

        ends = Ends(u, v, weights)
        weighted = ends.weights is not None
        limit = limit_of(options, len(ends.u), n, weighted=weighted) or free
        sizes = sizes_within(min(free, limit), len(ends.u), n, weighted=weighted, threads=threads)
        if sizes is None:
            return None
        stay = sizes.most_arcs >= 2 * len(ends.u) and find_policy(options.memory).name == AUTO.name
        builder = Builder(there, sizes.range_arcs)
        return rows_by(builder, copies, ends, n, sizes, summing=summing, stay=stay)

    return _on_device(options, make)


def _numbered_there(options: Options, u: Any, v: Any) -> Numbered | None:
    """Return ids of a host's edges as the device of a run numbers them; None where it cannot."""

    def number(there: Any, free: int) -> Numbered | None:
        from louvain_um.gpu.building.build import NUMBERING
        from louvain_um.placement.memory import copies

        limit = limit_of(options, len(u), 0, weighted=False) or free
        return numbered_by(there, copies, u, v, min(free, limit) // NUMBERING)

    return _on_device(options, number)


def numbered_by(there: Any, copies: Any, u: Any, v: Any, most_names: int) -> Numbered | None:
    """Return a host's ids as a device numbers them; None if there are more different ones."""
    # The numbers overwrite ids of 32 bits.
    from louvain_um.gpu.building.build import RANGE_ARCS, Builder, parts_of

    builder = Builder(there)
    parts = partial(parts_of, most=max(1, min(RANGE_ARCS, most_names)))
    names = builder.names_of(
        (copies.sent(part) for ids in (u, v) for part in parts(ids)), most_names
    )
    if names is None:
        return None
    ends = tuple(ids if ids.dtype == np.uint32 else np.empty(len(ids), np.uint32) for ids in (u, v))
    here = copies.fetched(names).view(np.int64)
    for ids, numbers in zip((u, v), ends, strict=True):
        for part, out in zip(parts(ids), parts(numbers), strict=True):
            try:
                out[:] = copies.fetched(builder.numbers(copies.sent(part), names))
            except MemoryError:  # others use the device, and some ids are overwritten
                out[:] = np.searchsorted(here, part)
    return *ends, len(here), here


def limit_of(options: Options, edges: int, n: int, *, weighted: bool) -> int | None:
    """Return the bytes that building may take: the budget of the run, None without one."""
    # A share is one of the least that a run on so many different edges takes in core.
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
