"""Whether a session that was read is one: views take for granted what is checked here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from louvain_um.ledger import GROUPS
from louvain_um.profiling.session import Session

MOST = 1 << 63
"""Whole numbers of a session stay below: nanoseconds, bytes and addresses as int64."""


def check(session: Session) -> None:
    """Raise ValueError where a part of a session is of another kind than documented."""
    _check_metadata(session.metadata)
    _need(session.plan is None or isinstance(session.plan, Mapping), "plan")
    _need(session.energy is None or isinstance(session.energy, Mapping), "energy")
    for life in session.lifetimes:
        stretch = (life.address, life.nbytes, life.start_ns, life.end_ns)
        _need(isinstance(life.name, str) and life.group in GROUPS, "lifetimes")
        _need(_whole(*stretch, life.level) and min(stretch) >= 0, "lifetimes")
    for span in session.phases:
        whole = (span.start_ns, span.end_ns, span.vertices, span.arcs, span.moved)
        _need(isinstance(span.phase, str) and isinstance(span.modularity, int | float), "phases")
        _need(_whole(*whole, span.level, span.iteration), "phases")
    _check_events(session)
    for page in session.maps:
        _need(isinstance(page.array, str) and page.kind in ("access", "fault"), "maps")
        _need(_whole(page.page_bytes) and page.page_bytes > 0, "maps")
        _need(page.counts.dtype.kind in "iu" and page.edges.dtype.kind in "iu", "maps")
        _need(page.edges.ndim == 1 and bool(np.all(np.diff(page.edges) >= 0)), "maps")
        _need(not page.counts.size or int(page.counts.min()) >= 0, "maps")


def _check_metadata(about: Mapping[str, Any]) -> None:
    _need(isinstance(about, Mapping), "metadata")
    for name in ("sources", "about_sources", "graph", "timings", "peak_bytes"):
        _need(isinstance(about.get(name, {}), Mapping) or (name == "graph" and not about[name]),
              name)  # fmt: skip
    seconds = about.get("seconds", 0.0)
    real = isinstance(seconds, int | float) and math.isfinite(seconds)
    _need(real and seconds >= 0, "seconds")


def _check_events(session: Session) -> None:
    events = session.events
    names = {"kernel": len(events.kernels), "phase": len(events.phases)}
    for name, values in events.columns.items():
        _need(values.ndim == 1, name)
        if name in names and len(values):
            _need(int(values.min()) >= -1 and int(values.max()) < names[name], name)
    _need(all(isinstance(name, str) for name in (*events.kernels, *events.phases)), "names")


def _whole(*values: object) -> bool:
    """Tell whether all are whole numbers that an int64 holds."""
    return all(isinstance(v, int) and -MOST <= v < MOST for v in values)


def _need(true: bool, what: str) -> None:
    if not true:
        raise ValueError(f"{what} are not as a session's")
