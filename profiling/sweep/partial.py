"""A partial sweep, stopped or still running: finished points, and how many are missing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from louvain_um.errors import LouvainUmError
from louvain_um.profiling.sweep.explain import explain
from louvain_um.profiling.sweep.replay_tables import (
    FAULTS_AT,
    in_hindsight,
    nearest_groups,
    remarks,
)
from louvain_um.profiling.sweep.results import Sweep
from louvain_um.profiling.sweep.store import KEY, POINTS, SUFFIXES, TABLES, UNFINISHED, read_points


def is_partial(folder: Path) -> bool:
    """Say whether a folder holds a partial sweep."""
    if not (folder / POINTS).is_file():
        return False
    ended = any((folder / f"{TABLES[0]}{suffix}").is_file() for suffix in SUFFIXES)
    return not ended or (folder / UNFINISHED).is_file()


def read_partial(folder: Path) -> Sweep:
    """Return the finished points of a partial sweep; nothing is written."""
    try:
        points = [*read_points(folder)[0].values()]
        noted = json.loads((folder / UNFINISHED).read_text("utf-8"))
        notes, requested = [str(note) for note in noted["notes"]], list(noted["points"])
        keys = [tuple(key[name] for name in KEY) for key in requested]
        len(set(keys))  # of values that can be compared
    except FileNotFoundError:
        raise _none_finished(folder) from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise LouvainUmError(
            f"{folder / UNFINISHED}: is damaged; repeat the sweep's command"
        ) from None
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise LouvainUmError(f"{folder}: {reason}; check the path") from None
    known = {tuple(point["row"][name] for name in KEY): point for point in points}
    finished = [known[key] for key in keys if key in known]
    missing = [dict(zip(KEY, key, strict=True)) for key in keys if key not in known]
    if not finished:
        raise _none_finished(folder)
    rows = {name: [row for point in finished for row in point.get(name, ())] for name in TABLES[1:]}
    checked = Sweep.of(
        [point["row"] for point in finished], groups=rows["groups"], iterations=rows["iterations"]
    )
    results = [*checked.results, *in_hindsight(checked.results)]
    groups = [dict(row) for row in checked.groups if row.get("oversubscription") is not None]
    notes += [*remarks(results), *explain(results)]
    return Sweep.of(
        results,
        groups=nearest_groups(groups, FAULTS_AT),
        iterations=checked.iterations,
        notes=notes,
        unfinished=_missing_text(len(finished), missing),
    )


def _none_finished(folder: Path) -> LouvainUmError:
    return LouvainUmError(
        f"{folder}: no point of the sweep is finished yet; repeat its command to continue"
    )


def _missing_text(done: int, missing: Iterable[Mapping[str, Any]]) -> str:
    """Return which points are missing, and how to continue."""
    counts = Counter(f"{key['graph']} {key['evidence']} on {key['gpu']}" for key in missing)
    if not counts:
        return ""
    parts = ", ".join(f"{count} of {where}" for where, count in counts.items())
    total = done + counts.total()
    return (
        f"This sweep is partial: {done:,} of {total:,} points are finished; missing are {parts}. "
        "To continue, repeat its command; finished points are kept."
    )
