"""Recordings in files: traces, exports of profilers, sessions, and maps made of their accesses."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.array_spec import STREAMED, role_of
from louvain_um.core.ledger import GROUPS
from louvain_um.errors import LouvainUmError
from louvain_um.placement.model.cost import HIDDEN
from louvain_um.placement.program.feedback import Counted
from louvain_um.profiling.access.migrations import refuse_more_gpus, trace_of_events
from louvain_um.profiling.session import PageMap, PhaseSpan, SessionData
from louvain_um.profiling.session.events import EventTable, Kind
from louvain_um.profiling.session.storage import load as load_session
from louvain_um.profiling.simulator import (
    Access,
    Array,
    Launch,
    Touches,
    Trace,
    concatenate_touches,
    load_trace,
    read_addresses,
)
from louvain_um.profiling.simulator.addresses import holds_addresses
from louvain_um.profiling.simulator.driver.constants import PAGE_BYTES
from louvain_um.profiling.sources.nsys import is_export, is_report, read_export


def recording_in(source: str | Path) -> Trace | None:
    """Return the recording that a file holds; None if it is neither a trace nor a session."""
    path = Path(source)
    if is_session(path):
        return of_session(load_session(path))
    if is_export(path):
        return trace_of_events(read_export(path), path)
    if is_report(path):
        raise LouvainUmError(
            f"{path}: is a report of nsys stats, which lists no addresses; pass what nsys export "
            "--type sqlite, or parquetdir, writes"
        )
    if holds_addresses(path):
        return read_addresses(path)
    return load_trace(path) if _parts(path) else None


def is_session(source: str | Path) -> bool:
    """Return whether a file or folder holds a session, of which a launch is a bin of time."""
    path = Path(source)
    parts = _parts(path)
    folder = path.is_dir() and not is_export(path)
    return folder or (bool(parts) and "amount" not in parts)


def _parts(path: Path) -> set[str]:
    """Return the names of a recording's arrays; none of another file."""
    if path.suffix != ".npz" or not path.is_file():
        return set()
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.removesuffix(".npy") for name in archive.namelist()}
    except (OSError, ValueError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile):
        return set()  # reading it as a graph gives the error
    graph = "header" not in names or {"u", "v"} <= names
    return set() if graph else names


def of_session(session: SessionData) -> Trace:
    """Return a session's maps of accesses as a trace: a launch for each bin of time."""
    # A launch runs on the GPU whose kernels took most of its bin.
    maps = [page for page in session.maps if page.kind == "access" and page.total]
    if not maps:
        raise LouvainUmError(
            "the session has no maps of accesses to replay; profile with --tracer, or on the CPU"
        )
    lives = {life.name: life for life in session.lifetimes}
    counted = _counted(session)
    inputs = session.metadata.get("inputs")
    arrays = [
        Array(
            name=page.array,
            group=lives[page.array].group if page.array in lives else "scratch",
            nbytes=max(_extent(page), lives[page.array].nbytes if page.array in lives else 0),
            starts="host"
            if (page.array in inputs if inputs else
                _is_input(page.array, _group(lives, page), counted))
            else "nowhere",
        )
        for page in maps
    ]  # fmt: skip
    gathered = [page.array in _about(session).get("gathered", ()) for page in maps]
    ways = [
        _way(page, counted.get(page.array), at) for page, at in zip(maps, gathered, strict=True)
    ]
    edges = np.unique(np.concatenate([page.edges for page in maps]))
    spans, gpus = session.phases, session.events.devices
    refuse_more_gpus("the session", len(gpus))
    steps = []
    for begin, end in pairwise(edges.tolist()):
        touched = [
            _touches(at, page, begin, ways[at], gathered[at]) for at, page in enumerate(maps)
        ]
        whole = concatenate_touches([each for each in touched if each is not None])
        if len(whole):
            span = _span_at(spans, begin, end)
            steps.append(
                Launch(
                    touches=whole,
                    phase=span.phase if span else None,
                    level=span.level if span else -1,
                    iteration=span.iteration if span else -1,
                    device=_device_at(session.events, gpus, begin, end),
                )
            )
    return Trace(tuple(arrays), tuple(steps), hidden=HIDDEN)


def _extent(page: PageMap) -> int:
    return page.page_bytes * len(page.counts)


def _group(lives: dict[str, Any], page: PageMap) -> str:
    return lives[page.array].group if page.array in lives else "scratch"


def _about(session: SessionData) -> Mapping[str, Any]:
    """Return what a tracer reports of a session, or what launches of a program declare."""
    about = session.metadata.get("about_sources", {})
    return about.get("tracer") or about.get("launches") or {}


def _counted(session: SessionData) -> dict[str, Counted]:
    """Return what a tracer counted of each array: reads, writes, atomics, and by page."""
    about = _about(session)
    sums: dict[str, NDArray[np.float64]] = {}
    for page in session.maps:
        if page.kind == "access":
            sums[page.array] = page.counts.sum(axis=1, dtype=np.float64)
    accesses = about.get("accesses") or {}
    return {
        name: Counted(float(uses[0]), float(uses[1]), float(uses[2]), sums.get(name, np.empty(0)))
        for name, uses in accesses.items()
        if len(uses) >= 3
    }


def _is_input(name: str, group: str, counted: Mapping[str, Counted]) -> bool:
    """Whether the host wrote an array: rows of the graph, or what kernels read and never write."""
    if group in GROUPS:
        return name.endswith(".0") and group == "graph"
    uses = counted.get(name)
    return uses is not None and uses.reads > 0 and not uses.writes and not uses.atomics


def _way(page: PageMap, uses: Counted | None, gathered: bool) -> Access:
    """Return the way in which an array was accessed most."""
    if uses is None or role_of(page.array) != "other":
        # A map counts the accesses of a page, but not in which way they were made.
        return Access.READ if role_of(page.array) in STREAMED else Access.GATHER
    if uses.atomics > max(uses.reads, uses.writes):
        return Access.ATOMIC
    if uses.even and not gathered:
        return Access.WRITE if uses.writes > uses.reads else Access.READ
    return Access.SCATTER if uses.writes > uses.reads else Access.GATHER


def _touches(number: int, page: PageMap, begin: int, way: Access, gathered: bool) -> Touches | None:
    """Return the touches of a map's bin that begins at a time; None if there is no such bin."""
    # Pages that are gathered come at random, also where memory is short; others in order.
    at = int(np.searchsorted(page.edges, begin))
    if at >= page.counts.shape[1] or page.edges[at] != begin:
        return None
    counts = page.counts[:, at].astype(np.int64)
    rows = np.flatnonzero(counts)
    if not len(rows):
        return None
    pages = max(1, page.page_bytes // PAGE_BYTES)
    if gathered:
        first, last = int(rows[0]), int(rows[-1]) + 1
        return Touches.at_random(number, first * pages, (last - first) * pages, way, counts.sum())
    streamed = way in (Access.READ, Access.WRITE)
    # Every page of a row has its share of the row's accesses, one at least.
    amount: NDArray[np.int64] = np.maximum(1, counts[rows] // pages) * (4 if streamed else 1)
    return Touches.runs(number, rows * pages, pages, way, amount)


def _device_at(events: EventTable, gpus: list[int], begin: int, end: int) -> int:
    """Return which of `gpus`, counted from 0, ran kernels for most of a bin of time."""
    if len(gpus) < 2:
        return 0
    rows = np.flatnonzero(events.where(Kind.KERNEL))
    start = events["time"][rows]
    inside = np.minimum(start + events["duration"][rows], end) - np.maximum(start, begin)
    taken = np.bincount(events["device"][rows], np.maximum(inside, 0), gpus[-1] + 1)
    return int(taken[gpus].argmax())


def _span_at(spans: Sequence[PhaseSpan], begin: int, end: int) -> PhaseSpan | None:
    """Return the shortest span in which a bin begins; else the one that shares most of its time."""
    inside = [span for span in spans if span.start_ns <= begin < span.end_ns]
    if inside:
        return min(inside, key=lambda span: span.end_ns - span.start_ns)

    def shared(span: PhaseSpan) -> int:
        return min(end, span.end_ns) - max(begin, span.start_ns)

    return max((s for s in spans if shared(s) > 0), key=shared, default=None)


ROWS: Final = 256
"""Rows of a map at most."""

BINS: Final = 512
"""Bins of time of a map at most."""


def shift_of(nbytes: int) -> int:
    """Return log2 of the bytes of a row of an array's map."""
    return max(12, (max(nbytes, 1) - 1).bit_length() - (ROWS.bit_length() - 1))


def by_page(
    touches: Touches, number: int, array: Array
) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    """Return pages of an array, accesses of each, and bytes of all."""
    mine = touches.array == number
    first, length = touches.first[mine], touches.length[mine]
    streamed = touches.kinds[mine] <= Access.WRITE
    totals = touches.totals[mine]
    counts = np.where(streamed, totals / array.itemsize, totals) / length
    starts = np.repeat(np.cumsum(length) - length, length)
    pages = np.repeat(first, length) + np.arange(int(length.sum())) - starts
    size = int(np.where(streamed, totals, totals * array.itemsize).sum())
    return pages, np.repeat(counts, length), size


def access_maps(trace: Trace, times: NDArray[np.int64]) -> tuple[PageMap, ...]:
    """Return a map of each array that the launches of a trace touch."""
    if not trace.steps:
        return ()
    each = -(-len(trace.steps) // BINS)
    edges = np.array([*times[:-1:each], times[-1]], np.int64)
    shifts = [shift_of(array.nbytes) for array in trace.arrays]
    found: dict[int, NDArray[np.float64]] = {}
    for at, step in enumerate(trace.steps):
        if not isinstance(step, Launch):
            continue
        for number in np.unique(step.touches.array).tolist():
            array, shift = trace.arrays[number], shifts[number]
            pages, counts, _ = by_page(step.touches, number, array)
            rows = (max(array.nbytes, 1) - 1 >> shift) + 1
            counted = found.setdefault(number, np.zeros((rows, len(edges) - 1)))
            at_row = np.minimum(pages >> shift - 12, rows - 1)
            counted[:, at // each] += step.repeats * np.bincount(at_row, counts, rows)
    return tuple(
        page_map(trace.arrays[number].name, shifts[number], edges, counts)
        for number, counts in found.items()
    )


def page_map(name: str, shift: int, edges: NDArray[np.int64], counts: NDArray[Any]) -> PageMap:
    """Return a map with rows of 2**shift bytes; counts that 32 bits cannot hold are cut."""
    whole = np.minimum(np.rint(counts), np.iinfo(np.uint32).max).astype(np.uint32)
    return PageMap(array=name, page_bytes=1 << shift, edges=edges, counts=whole)
