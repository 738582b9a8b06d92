"""A session as a trace for Perfetto or chrome://tracing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from louvain_um.core.atomic_files import replacing
from louvain_um.profiling.session import SessionData
from louvain_um.profiling.views.pftrace import encode
from louvain_um.profiling.views.timeline import Counter, items, merged_events

SUFFIXES = (".json", ".json.gz", ".pftrace")


def write(session: SessionData, path: str | Path, *, force: bool = False) -> None:
    """Write a trace: JSON as `.json` or `.json.gz`, Perfetto's own protobuf otherwise."""
    name = str(path).lower()
    with replacing(path, force=force) as part:
        if name.endswith((".json", ".json.gz")):
            text = json.dumps(trace(session), allow_nan=False, separators=(",", ":"))
            data = text.encode()
            part.write_bytes(gzip.compress(data, 6) if name.endswith(".gz") else data)
        else:
            part.write_bytes(encode(items(session)))


def trace(session: SessionData) -> dict[str, Any]:
    """Return the trace as the JSON that Chrome and Perfetto read; times in microseconds."""
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
