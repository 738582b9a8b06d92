"""A session as a timeline for Perfetto or chrome://tracing: phases, kernels, faults, migrations."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from louvain_um.core.atomic_files import replacing
from louvain_um.profiling.session import SessionData
from louvain_um.profiling.session.attribution import event_arrays
from louvain_um.profiling.session.compile_time import COMPILE
from louvain_um.profiling.session.events import EventTable, Kind
from louvain_um.profiling.session.merge_events import merge
from louvain_um.profiling.views.session import residency
from louvain_um.profiling.views.session.reading import CAUSES, NAMES, Reading

MOST = 300_000
"""Events in a trace; more are merged where they are alike, and the trace says so."""

WAYS = {
    Kind.HTOD: "to the device",
    Kind.DTOH: "to the host",
    Kind.DTOD: "between devices",
    Kind.GPU_FAULT_GROUP: "GPU faults",
    Kind.CPU_FAULT: "CPU faults",
    Kind.THRASHING: "thrashing",
    Kind.THROTTLING: "throttling",
    Kind.REMOTE_MAP: "remote maps",
    Kind.EVICTION: "evictions",
    Kind.COPY_TO_DEVICE: "copy to the device",
    Kind.COPY_TO_HOST: "copy to the host",
    Kind.COPY: "copy on the device",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Something on a track; a `duration` of 0 is a moment. Times in nanoseconds."""

    track: tuple[str, str]
    name: str
    time: int
    duration: int
    about: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """A value from a time on."""

    track: tuple[str, str]
    time: int
    value: float


def write(session: SessionData, path: str | Path, *, force: bool = False) -> None:
    """Write a trace: JSON as `.json` or `.json.gz`, Perfetto's own protobuf otherwise.

    Raises
    ------
    LouvainUmError
        The file exists and `force` is off, or it cannot be written.
    """
    name = str(path).lower()
    with replacing(path, force=force) as part:
        if name.endswith((".json", ".json.gz")):
            text = json.dumps(trace(session), allow_nan=False, separators=(",", ":"))
            data = text.encode()
            part.write_bytes(gzip.compress(data, 6) if name.endswith(".gz") else data)
        else:
            from louvain_um.profiling.views.pftrace import encode

            part.write_bytes(encode(items(session)))


def trace(session: SessionData) -> dict[str, Any]:
    """Return the trace as the JSON that Chrome and Perfetto read; times in microseconds.

    Examples
    --------
    >>> from louvain_um.profiling.session import PhaseSpan, SessionData
    >>> from louvain_um.profiling.views.perfetto import trace
    >>> span = PhaseSpan(phase="move", level=0, iteration=-1, start_ns=0, end_ns=2000)
    >>> found = trace(SessionData(phases=(span,)))["traceEvents"]
    >>> [(event["name"], event["dur"]) for event in found if event["ph"] == "X"]
    [('move 0', 2.0)]
    """
    tracks: dict[tuple[str, str], tuple[int, int]] = {}
    events: list[dict[str, Any]] = []
    for item in items(session):
        if item.track not in tracks:
            tracks[item.track] = _enter(item.track, tracks, events)
        process, thread = tracks[item.track]
        place = {"pid": process, "tid": thread, "ts": item.time / 1e3}
        if isinstance(item, Counter):
            args = {"value": item.value}
            events.append({"ph": "C", "name": item.track[1], **place, "args": args})
        elif item.duration:
            dur = item.duration / 1e3
            events.append({"ph": "X", "name": item.name, **place, "dur": dur, "args": item.about})
        else:
            events.append({"ph": "i", "s": "t", "name": item.name, **place, "args": item.about})
    about = {
        key: str(session.metadata[key])
        for key in ("version", "created", "device", "policy", "method")
        if session.metadata.get(key) is not None
    }
    about["notes"] = "; ".join([*session.notes, *_merged(session)[1]])
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}


def _enter(
    track: tuple[str, str],
    tracks: dict[tuple[str, str], tuple[int, int]],
    events: list[dict[str, Any]],
) -> tuple[int, int]:
    """Give a new track its numbers, and its name."""
    process = next(
        (number for known, (number, _) in tracks.items() if known[0] == track[0]),
        1 + len({known[0] for known in tracks}),
    )
    thread = 1 + len(tracks)
    for what, name in (("process_name", track[0]), ("thread_name", track[1])):
        events.append(
            {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}
        )
    return process, thread


def items(session: SessionData) -> Iterator[Slice | Counter]:
    """Yield everything that a trace shows, track by track."""
    # A timeline tells what the clock on the wall did, compiling among it.
    uncut = tuple(span for span in session.phases if span.phase != COMPILE)
    reading = Reading(replace(session, phases=uncut))
    for span in session.phases:
        whole = span.iteration < 0
        level = f" {span.level}" if span.level >= 0 else ""
        yield Slice(
            track=("run", "phases" if whole else "iterations"),
            name=f"{span.phase}{level}" if whole else f"{span.phase}{level}.{span.iteration}",
            time=span.start_ns,
            duration=max(span.end_ns - span.start_ns, 1),
            about={"vertices": span.vertices, "arcs": span.arcs, "moved": span.moved},
        )
    yield from _apart(_events(_merged(session)[0], session))
    for title, curves in (
        ("arrays alive, bytes", residency.allocated(reading)),
        ("managed on the device, bytes", residency.resident(reading)),
    ):
        if curves is not None:
            for group, values in curves.values.items():
                yield from _changes((title, group), curves.times * 1e9, values)
    energy = session.energy or {}
    yield from _changes(
        ("power", "watts"),
        np.asarray(energy.get("times_ns") or [], float),
        np.asarray(energy.get("watts") or [], float),
    )


def _merged(session: SessionData) -> tuple[EventTable, list[str]]:
    """Return the events, few enough, and a sentence if they had to be merged."""
    if len(session.events) <= MOST:
        return session.events, []
    table, ns, size = merge(session.events, session.event_arrays(), MOST)
    return table, [
        f"{len(session.events):,} events were merged into {len(table):,} where they were alike: "
        f"times to {ns / 1e6:g} ms, addresses to {size / 2**20:g} MiB"
    ]


def _events(events: EventTable, session: SessionData) -> Iterable[Slice]:
    groups = np.array([*(NAMES.index(life.group) for life in session.lifetimes), len(NAMES) - 1])
    arrays = event_arrays(events, session.lifetimes)
    names = [*(life.name for life in session.lifetimes), "no array of the run"]
    wanted = np.isin(events["kind"], [Kind.KERNEL, *WAYS])
    columns = ("time", "duration", "kind", "bytes", "count", "rows", "cause", "kernel", "level")
    rows = np.flatnonzero(wanted)
    values = (events[name][rows].tolist() for name in columns)
    for row, time, duration, kind, size, count, many, cause, kernel, level in zip(
        rows.tolist(), *values, strict=True
    ):
        if kind == Kind.KERNEL:
            name = events.kernels[kernel] if kernel >= 0 else "kernel"
            about = {"level": level, "launches": many}
            yield Slice(track=("GPU", "kernels"), name=name, time=time,
                        duration=max(duration, 1), about=about)  # fmt: skip
            continue
        way = WAYS[Kind(kind)]
        owner = arrays[row]
        about = {"array": names[owner], "bytes": size, "count": count, "level": level}
        copy = kind >= Kind.COPY_TO_DEVICE
        if kind <= Kind.DTOD and not copy:
            about["cause"] = CAUSES.get(cause, "no cause given")
        track = ("GPU", "copies") if copy else (f"memory: {NAMES[groups[owner]]}", way)
        yield Slice(track=track, name=way if copy else f"{way}: {names[owner]}",
                    time=time, duration=duration, about=about)  # fmt: skip


def _apart(slices: Iterable[Slice]) -> Iterator[Slice]:
    """Cut slices short where the next one of their track begins: viewers cannot draw overlaps.

    They come about where copies went on side by side, and where merged rows add up durations.
    """
    waiting: dict[tuple[str, str], Slice] = {}
    for item in slices:
        before = waiting.get(item.track)
        if before is not None:
            yield replace(before, duration=min(before.duration, item.time - before.time))
        waiting[item.track] = item
    yield from waiting.values()


def _changes(track: tuple[str, str], times: Any, values: Any) -> Iterable[Counter]:
    last = None
    for time, value in zip(times.tolist(), values.tolist(), strict=True):
        if value != last:
            yield Counter(track=track, time=round(time), value=value)
            last = value
