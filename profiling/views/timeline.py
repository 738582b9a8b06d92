"""A session as tracks of slices and counters: a trace for Perfetto or chrome://tracing."""

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
from louvain_um.profiling.session.compiling import COMPILE
from louvain_um.profiling.session.data import OTHER, event_arrays, spans_of
from louvain_um.profiling.session.events import Cause, EventTable, Kind, merge
from louvain_um.profiling.views.session import over_time
from louvain_um.profiling.views.session.analysis import CAUSE_LABELS, SessionAnalysis, evidence

MOST = 300_000
"""Most events in a trace; beyond, similar ones are merged, which a note states."""

DIRECTIONS = {
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
    Kind.FIRST_TOUCH: "first touches",
}

SUFFIXES = (".json", ".json.gz")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackSlice:
    """An interval on a track, or an instant if `duration` is 0; times in nanoseconds."""

    track: tuple[str, str]
    name: str
    time: int
    duration: int
    about: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackCounter:
    """A value from a time on."""

    track: tuple[str, str]
    time: int
    value: float


def items(session: SessionData) -> Iterator[TrackSlice | TrackCounter]:
    """Yield all slices and counters of a trace, track by track."""
    # A timeline shows wall-clock time, compiling included.
    uncut = tuple(span for span in session.phases if span.phase != COMPILE)
    analysis = SessionAnalysis(replace(session, phases=uncut))
    timing = evidence(session, "time")
    run = _title("run", timing)
    for span in session.phases:
        whole = span.iteration < 0
        level = f" {span.level}" if span.level >= 0 else ""
        yield TrackSlice(
            track=(run, "phases" if whole else "iterations"),
            name=f"{span.phase}{level}" if whole else f"{span.phase}{level}.{span.iteration}",
            time=span.start_ns,
            duration=max(span.end_ns - span.start_ns, 1),
            about={
                "vertices": span.vertices,
                "arcs": span.arcs,
                "moved": span.moved,
                "evidence": timing,
            },
        )
    for rank, each in spans_of(session):
        level = f" {each['level']}" if each["level"] >= 0 else ""
        # The ranks' clocks are not joined: each counts from where it began.
        yield TrackSlice(
            track=("ranks", f"rank {rank}"),
            name=f"{each['phase']}{level}",
            time=int(each["start"] * 1e9),
            duration=max(int(each["seconds"] * 1e9), 1),
            about={
                "exchange, s": each["exchange"],
                "received, bytes": each["received"],
                "evidence": "measured",
            },
        )
    yield from _separate(_events(merged_events(session)[0], session))
    for name, curves in (
        ("allocated arrays, bytes", over_time.allocated(analysis)),
        ("managed on the device, bytes", over_time.resident(analysis)),
    ):
        if curves is not None:
            title = _title(name, curves.evidence)
            for group, values in curves.values.items():
                yield from _changes((title, group), curves.times * 1e9, values)
    energy = session.energy or {}
    yield from _changes(
        (_title("power", evidence(session, "energy")), "watts"),
        np.asarray(energy.get("times_ns") or [], float),
        np.asarray(energy.get("watts") or [], float),
    )


def _title(name: str, how: str) -> str:
    """Return the title of a group of tracks, with its evidence unless it was measured."""
    return f"{name} (modelled)" if how.startswith("modelled") else name


def merged_events(session: SessionData) -> tuple[EventTable, list[str]]:
    """Return at most `MOST` events, and a note if some were merged."""
    if len(session.events) <= MOST:
        return session.events, []
    table, ns, size = merge(session.events, session.event_arrays(), MOST)
    return table, [
        f"{len(session.events):,} events were merged into {len(table):,} where they were alike: "
        f"times to {ns / 1e6:g} ms, addresses to {size / 2**20:g} MiB"
    ]


def _events(events: EventTable, session: SessionData) -> Iterable[TrackSlice]:
    group_names = (*session.groups, OTHER)
    groups = np.array(
        [*(group_names.index(life.group) for life in session.lifetimes), len(group_names) - 1]
    )
    owners = event_arrays(events, session.lifetimes)
    names = [*(life.name for life in session.lifetimes), "no array of the run"]
    wanted = np.isin(events["kind"], [Kind.KERNEL, *DIRECTIONS])
    columns = (
        "time", "duration", "kind", "bytes", "count", "rows", "cause", "kernel", "level", "device",
    )  # fmt: skip
    several = len(events.devices) > 1
    rows = np.flatnonzero(wanted)
    kernels, memory = evidence(session, "kernel"), evidence(session, "memory")
    values = (events[name][rows].tolist() for name in columns)
    for row, time, duration, kind, size, count, many, cause, kernel, level, device in zip(
        rows.tolist(), *values, strict=True
    ):
        gpu = f"GPU {device}" if several else "GPU"
        if kind == Kind.KERNEL:
            name = events.kernels[kernel] if kernel >= 0 else "kernel"
            about = {"level": level, "launches": many, "evidence": kernels}
            yield TrackSlice(track=(_title(gpu, kernels), "kernels"), name=name, time=time,
                        duration=max(duration, 1), about=about)  # fmt: skip
            continue
        way = DIRECTIONS[Kind(kind)]
        owner = owners[row]
        about = {
            "array": names[owner],
            "bytes": size,
            "count": count,
            "level": level,
            "evidence": memory,
        }
        copy = Kind.COPY_TO_DEVICE <= kind <= Kind.COPY
        if kind <= Kind.DTOD and not copy:
            about["cause"] = CAUSE_LABELS.get(cause, CAUSE_LABELS[Cause.UNKNOWN])
        place = gpu if copy else f"memory: {group_names[groups[owner]]}"
        track = (_title(place, memory), "copies" if copy else f"{way}, {gpu}" if several else way)
        yield TrackSlice(track=track, name=way if copy else f"{way}: {names[owner]}",
                    time=time, duration=duration, about=about)  # fmt: skip


def _separate(slices: Iterable[TrackSlice]) -> Iterator[TrackSlice]:
    """End slices where the next one of their track begins: viewers cannot draw overlaps."""
    waiting: dict[tuple[str, str], TrackSlice] = {}
    for item in slices:
        before = waiting.get(item.track)
        if before is not None:
            yield replace(before, duration=min(before.duration, item.time - before.time))
        waiting[item.track] = item
    yield from waiting.values()


def _changes(track: tuple[str, str], times: Any, values: Any) -> Iterable[TrackCounter]:
    last = None
    for time, value in zip(times.tolist(), values.tolist(), strict=True):
        if value != last:
            yield TrackCounter(track=track, time=round(time), value=value)
            last = value


def write(session: SessionData, path: str | Path, *, force: bool = False) -> None:
    """Write a trace as `.json` or `.json.gz`."""
    data = json.dumps(trace(session), allow_nan=False, separators=(",", ":")).encode()
    with replacing(path, force=force) as part:
        part.write_bytes(gzip.compress(data, 6) if str(path).lower().endswith(".gz") else data)


def trace(session: SessionData) -> dict[str, Any]:
    """Return the trace as the JSON that Chrome and Perfetto read; times in microseconds."""
    tracks: dict[tuple[str, str], tuple[int, int]] = {}
    events: list[dict[str, Any]] = []
    for item in items(session):
        if item.track not in tracks:
            tracks[item.track] = _enter(item.track, tracks, events)
        process, thread = tracks[item.track]
        place = {"pid": process, "tid": thread, "ts": item.time / 1e3}
        if isinstance(item, TrackCounter):
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
    about["notes"] = "; ".join([*session.notes, *merged_events(session)[1]])
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
