"""Traces in files: an archive of the touches, with arrays and steps in a header of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from louvain_um.core.archives import read_archive
from louvain_um.core.array_names import current_name
from louvain_um.core.atomic_files import replacing
from louvain_um.core.plain_data import build
from louvain_um.errors import LouvainUmError
from louvain_um.profiling.simulator.steps import (
    Allocate,
    Array,
    Free,
    HostTouches,
    Launch,
    Prefetch,
    Step,
    Touching,
)
from louvain_um.profiling.simulator.touches import Touches, concatenate_touches

SCHEMA: Final = "louvain-um trace 2"

KINDS: Final[Mapping[str, type[Step]]] = {
    "launch": Launch,
    "host": HostTouches,
    "prefetch": Prefetch,
    "allocate": Allocate,
    "free": Free,
}
"""Steps by their name in a file."""


Parts = tuple[tuple[Array, ...], tuple[Step, ...], float, Mapping[str, Any] | None]
"""Arrays, steps, the share that kernels hide, and what a plan follows from."""


def save_parts(
    path: str | Path,
    arrays: Sequence[Array],
    steps: Sequence[Step],
    hidden: float,
    about: Mapping[str, Any] | None,
    *,
    force: bool = False,
) -> None:
    """Write a trace; `Trace.save` documents the arguments."""
    whole = concatenate_touches([step.touches for step in steps if isinstance(step, Touching)])
    header = {
        "schema": SCHEMA,
        "arrays": [asdict(array) for array in arrays],
        "steps": [_plain(step) for step in steps],
        "hidden": hidden,
        "about": None if about is None else dict(about),
    }
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    columns = {name: getattr(whole, name) for name in Touches.__slots__}
    with replacing(path, force=force) as part, part.open("wb") as file:
        np.savez_compressed(file, header=text, **columns)


def read_parts(path: str | Path) -> Parts:
    """Return what `save_parts` wrote."""
    foreign = f"{path}: not a trace; record one first"
    found = read_archive(path, foreign)
    try:
        header = json.loads(found["header"].tobytes())
        schema = header["schema"]
        columns = [found[name] for name in Touches.__slots__]
    except (KeyError, ValueError, TypeError, RecursionError):
        raise LouvainUmError(foreign) from None
    if schema != SCHEMA:
        raise LouvainUmError(
            f"{path}: has schema {str(schema)[:40]!r}, this version reads {SCHEMA!r}; "
            "record the trace again"
        )
    try:
        return _parts(header, Touches.from_columns(*columns))
    except ValueError as error:
        raise LouvainUmError(f"{path}: {error}; record the trace again") from None


def _parts(header: Mapping[str, Any], touches: Touches) -> Parts:
    """Return what a header and the touches hold, or raise ValueError."""
    rows, listed = header.get("arrays"), header.get("steps")
    if not isinstance(rows, list) or not isinstance(listed, list):
        raise ValueError("arrays and steps of the trace must be lists")
    about = header.get("about")
    arrays: list[Array] = [build(Array, row, f"array {at}") for at, row in enumerate(rows)]
    if about is not None:
        # Arrays of this program's recordings; those of others keep their names.
        arrays = [replace(array, name=current_name(array.name)) for array in arrays]
    steps: list[Step] = []
    start = 0
    for number, values in enumerate(listed):
        step = _step(values, touches, start, f"step {number}")
        steps.append(step)
        start += len(step.touches) if isinstance(step, Touching) else 0
    return tuple(arrays), tuple(steps), header.get("hidden", 1.0), about


def _step(values: object, touches: Touches, start: int, where: str) -> Step:
    """Return a step whose touches begin at a row, or raise ValueError."""
    name = values.get("step") if isinstance(values, dict) else None
    if not isinstance(values, dict) or not isinstance(name, str) or name not in KINDS:
        raise ValueError(f"{where} is no step; known: {', '.join(KINDS)}")
    kind = KINDS[name]
    rest = {key: value for key, value in values.items() if key not in ("step", "rows")}
    if issubclass(kind, Touching):
        rows = values.get("rows")
        if not isinstance(rows, int) or not 0 <= rows <= len(touches) - start:
            raise ValueError(f"{where} has more touches than the file")
        rest["touches"] = touches.rows(start, start + rows)
    step: Step = build(kind, rest, where)
    return step


def _plain(step: Step) -> dict[str, Any]:
    """Return a step without its touches, as JSON takes it."""
    if isinstance(step, Prefetch | Allocate | Free):
        return {"step": type(step).__name__.lower(), **asdict(step)}
    if isinstance(step, HostTouches):
        return {"step": "host", "rows": len(step.touches)}
    return {
        "step": "launch",
        "rows": len(step.touches),
        "kernel": step.kernel,
        "phase": step.phase,
        "level": step.level,
        "iteration": step.iteration,
        "compute_seconds": step.compute_seconds,
        "chain": step.chain,
        "host_seconds": step.host_seconds,
    }
