"""Sessions on disk: one `.npz` with a header of JSON, or a folder of Parquet files; checked."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.atomic_files import check_output, check_parent, replacing_folder
from louvain_um.core.plain_data import (
    Finite,
    Within,
    as_json,
    check_fields,
    check_known,
    read_archive,
    write_archive,
)
from louvain_um.errors import LouvainUmError, reason_of
from louvain_um.formats.file_types import require
from louvain_um.profiling.session.data import SCHEMA, SessionData
from louvain_um.profiling.session.events import (
    COLUMNS,
    EventTable,
    Lifetime,
    PageMap,
    PhaseSpan,
)

NAME = "louvain-um/session"
HEADER, EVENTS, MAPS = "header.json", "events.parquet", "maps.npz"
"""Files of a session in Parquet."""

MOST_TOTAL = 1 << 62
"""Upper bound of times, and of the sum of a column: an event's time and duration are added."""

MOST_WORD = 200
"""Characters of a group's name."""

SUMMED = ("bytes", "count", "rows", "duration")
"""Columns of events that views add up."""

Table = Mapping[str, Any]
Numbers = Mapping[str, Finite]

#: What the parts of a header may be, and the metadata that views calculate with, or cut up.
HEADER_PARTS = {"metadata": Table, "plan": Table | None, "notes": tuple[str, ...],
                "energy": Table | None}  # fmt: skip
METADATA = {
    "device": str | None, "policy": str | None, "method": str | None, "communities": int | None,
    "budget_bytes": int | None, "modularity": float | None, "inputs": tuple[str, ...] | None,
    "graph": Table | None, "options": Table, "sources": Mapping[str, str],
    "about_sources": Mapping[str, Table], "timings": Numbers, "peak_bytes": Numbers,
    "terms": Numbers, "launches": Numbers, "seconds": Annotated[float, Within(0, 1e300)],
    "seconds_range": tuple[Finite, Finite],
}  # fmt: skip
GRAPH = {"name": str | None, "vertices": int | None, "edges": int | None, "arcs": int | None}
SOURCE = dict.fromkeys(
    ("events", "samples", "launches", "instrumented_places", "dropped", "period_seconds",
     "overhead_seconds"), float | None,
) | dict.fromkeys(("recorded", "driver_totals"), Mapping[str, int] | None)  # fmt: skip
SAMPLES = tuple[Finite, ...] | None
ENERGY = {"joules": float | None, "times_ns": SAMPLES, "watts": SAMPLES}

Arrays = dict[str, NDArray[Any]]


def save(session: SessionData, path: str | Path, *, force: bool = False) -> None:
    """Write a session; `Session.save` documents the arguments."""
    if Path(path).suffix == ".parquet":
        _save_folder(session, Path(path), force=force)
        return
    check_target(path, force=force)
    arrays = {f"events.{name}": values for name, values in session.events.columns.items()}
    arrays |= _maps(session)
    arrays["header"] = np.frombuffer(_header(session).encode(), np.uint8)
    write_archive(path, arrays, force=force, compressed=True)


def check_target(path: str | Path, *, force: bool = False) -> None:
    """Raise an error for a path to which no session can be written."""
    target = Path(path)
    if target.suffix == ".npz":
        check_output(path, force=force)
    elif target.suffix != ".parquet":
        raise LouvainUmError(f"{path}: a session is saved as .npz or .parquet; choose such a name")
    elif target.exists() and not force:
        raise LouvainUmError(f"{path}: exists already; pass --force (force=True) to replace it")
    elif target.exists() and not (target / HEADER).is_file():
        raise LouvainUmError(f"{path}: is not a session and is not replaced; choose another name")
    else:
        check_parent(path, target.parent)


def load(path: str | Path) -> SessionData:
    """Read a session; `louvain_um.profiling.load` documents it."""
    if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
        raise LouvainUmError(f"{path}: is neither a file nor a folder; name what holds a session")
    arrays = _arrays(Path(path))
    try:
        header = json.loads(bytes(arrays["header"]))
        if "name" not in header and "steps" in header:
            raise LouvainUmError(
                f"{path}: a recording of accesses, not a session; replay it with louvain-um "
                "simulate"
            )
        name, schema = header["name"], int(header["schema"])
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError):
        raise LouvainUmError(_foreign(path)) from None
    if name != NAME:
        raise LouvainUmError(_foreign(path))
    if schema != SCHEMA:
        which = "a newer" if schema > SCHEMA else "an older"
        raise LouvainUmError(
            f"{path}: a session of {which} version (schema {schema}, this one reads {SCHEMA}); "
            + ("update louvain-um" if schema > SCHEMA else "record it again")
        )
    try:
        session = _session(header, arrays)
        check(session)
        return session
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError):
        raise LouvainUmError(f"{path}: a damaged session; record it again") from None


def _arrays(path: Path) -> Arrays:
    """Return what a file or folder holds, the header among it."""
    try:
        if path.is_dir():
            if not (path / HEADER).is_file():
                page = path / "report.html"  # of a stream, say
                remedy = f"open its report, {page}" if page.is_file() else "name what is in it"
                raise LouvainUmError(f"{path}: a folder, but no session; {remedy}")
            return _load_folder(path)
        return read_archive(path, _foreign(path))
    except OSError as error:
        raise LouvainUmError(f"{path}: {reason_of(error)}; check the path") from None
    except (KeyError, ValueError, TypeError, AttributeError, EOFError, OverflowError, RuntimeError):
        raise LouvainUmError(_foreign(path)) from None


def _foreign(path: str | Path) -> str:
    return f"{path}: not a session; record one with louvain-um profile"


def _header(session: SessionData) -> str:
    header = {
        "name": NAME,
        "schema": session.schema,
        "metadata": session.metadata,
        "plan": session.plan,
        "lifetimes": [dataclasses.asdict(array) for array in session.lifetimes],
        "phases": [dataclasses.asdict(span) for span in session.phases],
        "notes": session.notes,
        "energy": session.energy,
        "kernels": session.events.kernels,
        "event_phases": session.events.phases,
        "maps": [[page.array, page.page_bytes, page.kind] for page in session.maps],
    }
    return json.dumps(as_json(header), allow_nan=False)


def _maps(session: SessionData) -> Arrays:
    arrays: Arrays = {}
    for number, page in enumerate(session.maps):
        arrays[f"map.{number}.edges"] = page.edges
        arrays[f"map.{number}.counts"] = page.counts
    return arrays


def _session(header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> SessionData:
    """Return the session that a file held."""
    if header["metadata"].get("seconds", 0) is None:  # not a number when it was saved
        del header["metadata"]["seconds"]
    spans = []
    for span in header["phases"]:
        if span["modularity"] is None:
            span["modularity"] = math.nan
        spans.append(PhaseSpan(**span))
    # Files without the column are of one GPU.
    events = {"events.device": np.zeros(len(arrays["events.time"]), np.uint8), **arrays}
    return SessionData(
        metadata=header["metadata"],
        plan=header["plan"],
        lifetimes=tuple(Lifetime(**row) for row in header["lifetimes"]),
        phases=tuple(spans),
        events=EventTable(
            {name: _column(events[f"events.{name}"], dtype) for name, dtype in COLUMNS.items()},
            tuple(header["kernels"]),
            tuple(header["event_phases"]),
        ),
        maps=tuple(
            PageMap(
                array=name,
                page_bytes=page_bytes,
                edges=arrays[f"map.{number}.edges"],
                counts=arrays[f"map.{number}.counts"],
                kind=kind,
            )
            for number, (name, page_bytes, kind) in enumerate(header["maps"])
        ),
        notes=tuple(header["notes"]),
        energy=header["energy"],
    )


def _column(found: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a column of events as its type, if that can hold its values."""
    if found.dtype.kind not in "iu" or found.ndim != 1:
        raise ValueError("events are lists of whole numbers")
    column = found.astype(dtype, copy=False)
    if not np.array_equal(column, found):
        raise ValueError("events exceed the type of their column")
    return column


def _save_folder(session: SessionData, path: Path, *, force: bool) -> None:
    """Write the header as JSON, the events as Parquet and the maps as `.npz`, in a folder."""
    pa, parquet = require("pyarrow", f"{path}"), require("pyarrow.parquet", f"{path}")
    check_target(path, force=force)
    with replacing_folder(path, force=force) as part:
        (part / HEADER).write_text(_header(session), encoding="utf-8")
        with (part / EVENTS).open("wb") as file:  # PyArrow takes no path that is not UTF-8
            parquet.write_table(pa.table(dict(session.events.columns)), file)
        write_archive(part / MAPS, _maps(session), force=False, compressed=True)


def _load_folder(path: Path) -> Arrays:
    """Read a folder that `_save_folder` wrote, as the arrays of the one file."""
    pa, parquet = require("pyarrow", f"{path}"), require("pyarrow.parquet", f"{path}")
    from louvain_um.formats.arrow import check_unpacked

    arrays: Arrays = {"header": np.frombuffer((path / HEADER).read_bytes(), np.uint8)}
    try:
        with (path / EVENTS).open("rb") as file:
            check_unpacked(parquet.ParquetFile(file).metadata, file, path / EVENTS)
            table = parquet.read_table(file)
    except pa.ArrowInvalid as error:
        raise ValueError(str(error)) from None
    arrays |= {f"events.{name}": table[name].to_numpy() for name in table.column_names}
    arrays |= read_archive(path / MAPS, _foreign(path))
    return arrays


def check(session: SessionData) -> None:
    """Raise ValueError where a part of a session is of another kind than documented."""
    about, energy = session.metadata, session.energy or {}
    check_known({name: getattr(session, name) for name in HEADER_PARTS}, HEADER_PARTS, "session")
    check_known(about, METADATA, "metadata")
    check_known(about.get("graph") or {}, GRAPH, "graph")
    for name, source in about.get("about_sources", {}).items():
        check_known(source, SOURCE, name)
    check_known(energy, ENERGY, "energy")
    _need(len(energy.get("times_ns") or []) == len(energy.get("watts") or []), "energy")
    for part in (*session.lifetimes, *session.phases, *session.maps):
        check_fields(part, type(part).__name__)
    for life in session.lifetimes:
        _need(0 < len(life.group) <= MOST_WORD and life.group.isprintable(), "lifetimes")
    _check_events(session)
    for page in session.maps:
        _need(page.counts.dtype.kind in "iu" and page.edges.dtype.kind in "iu", "maps")
        _need(page.edges.ndim == 1 and bool(np.all(np.diff(page.edges) >= 0)), "maps")
        _need(not page.counts.size or int(page.counts.min()) >= 0, "maps")


def _check_events(session: SessionData) -> None:
    events = session.events
    names = {"kernel": len(events.kernels), "phase": len(events.phases)}
    for name, values in events.columns.items():
        _need(values.ndim == 1, name)
        if name in names and len(values):
            _need(int(values.min()) >= -1 and int(values.max()) < names[name], name)
        if name in SUMMED:
            _need(not len(values) or int(values.min()) >= 0, name)
            _need(float(values.sum(dtype=np.float64)) < MOST_TOTAL, name)
    time = events.columns["time"]
    _need(not len(time) or -MOST_TOTAL < int(time.min()) <= int(time.max()) < MOST_TOTAL, "time")
    _need(all(isinstance(name, str) for name in (*events.kernels, *events.phases)), "names")


def _need(true: bool, what: str) -> None:
    if not true:
        raise ValueError(f"{what}: not as in a session")
