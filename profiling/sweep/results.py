"""The tables of a sweep: checked rows, two sweeps joined, gains over base."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from louvain_um.errors import LouvainUmError

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]

REQUIRED: dict[str, type] = {
    "graph": str,
    "policy": str,
    "oversubscription": float,
    "feasible": bool,
    "seconds": float,
    "bytes_to_device": int,
    "bytes_to_host": int,
    "bytes_remote": int,
    "fault_groups": int,
    "evictions": int,
    "evidence": str,
}
"""Columns of `results`, one row per run; oversubscription in percent, evidence "measured" or
"modelled". Other columns are kept; of them `gpu` distinguishes machines, `peak_bytes` is the peak
of all groups, and `faults`, `vertices`, `arcs` and `scale` are shown."""

GROUPS = {"graph": str, "group": str, "peak_bytes": int, "accesses": int, "gpu_faults": int}
"""Columns of the table of groups next to it, for the thesis's Tables 4.3 and 4.4 and Figures 4.1
and 4.10: one row per graph and group; `policy`, `oversubscription` and `evidence` are optional."""

ITERATIONS = {"graph": str, "oversubscription": float, "number": int, "seconds": float}
"""Columns of the table of iterations next to it, for Figure 4.11; `policy`, `phase` and `evidence`
are optional. The number counts through the run from 1."""

OPTIONAL: dict[str, type] = {
    "policy": str, "oversubscription": float, "evidence": str, "gpu": str, "phase": str,
    "peak_bytes": int, "budget_bytes": int, "machine_bytes": int, "faults": int,
    "vertices": int, "arcs": int,
    "scale": float, "level": int, "iteration": int, "reason": str, "bytes_loaded": int,
    "load_seconds": float, "joules": float, "watts": float, "idle_watts": float,
    "arcs_per_joule": float, "least_seconds": float, "most_seconds": float,
}  # fmt: skip

TERM = "seconds_"
"""How the names of columns with terms of cost begin: seconds each."""

NAMED: dict[str, tuple[str, ...]] = {
    "results": ("graph", "policy", "oversubscription", "feasible", "evidence"),
    "groups": ("graph", "group", "peak_bytes", "accesses"),
    "iterations": ("graph", "oversubscription", "number", "seconds"),
}
"""Columns of each table that are never empty."""

MOST = 1e18
"""Upper bound of bytes, counts and seconds."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Sweep:
    """Tables of one sweep.

    Parameters
    ----------
    results : tuple of mapping
        One per run; see `REQUIRED`.
    groups, iterations : tuple of mapping
        See `GROUPS` and `ITERATIONS`; may be empty.
    notes : tuple of str
        Notes for the reader: machine, scale of stand-ins, limits.
    unfinished : str
        How many points of a partial sweep are missing; empty for a complete one.

    Examples
    --------
    >>> from louvain_um.profiling.sweep.results import Sweep, gains
    >>> run = dict(graph="g", oversubscription=30, feasible=True, bytes_to_device=0,
    ...            bytes_to_host=0, bytes_remote=0, fault_groups=0, evictions=0,
    ...            evidence="modelled")
    >>> sweep = Sweep.of([run | dict(policy="base", seconds=8.0),
    ...                   run | dict(policy="adv2", seconds=1.0)])
    >>> gains(sweep.results)["adv2"]
    {30.0: 8.0}
    """

    results: tuple[Row, ...]
    groups: tuple[Row, ...] = ()
    iterations: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()
    unfinished: str = ""

    @classmethod
    def of(
        cls,
        results: Any,
        *,
        groups: Any = (),
        iterations: Any = (),
        notes: Sequence[str] = (),
        unfinished: str = "",
    ) -> Sweep:
        """Return a sweep from tables: data frames, mappings of columns, or rows.

        Raises
        ------
        LouvainUmError
            A column is missing, or a value is not of its type.
        """
        return cls(
            results=_checked("results", results, REQUIRED),
            groups=_checked("groups", groups, GROUPS),
            iterations=_checked("iterations", iterations, ITERATIONS),
            notes=tuple(notes),
            unfinished=unfinished,
        )

    @property
    def is_study(self) -> bool:
        """Whether graphs are the thesis's, scaled, with whose figures it is shown."""
        return any(row.get("scale") is not None for row in self.results)

    def cited(self, title: str, figure: str) -> str:
        """Return the title of a table or chart, with the thesis's figure if this is its study."""
        return f"{title} ({figure})" if self.is_study else title

    def to_frame(self) -> pd.DataFrame:
        """Return `results` as a pandas frame, one row per run."""
        from louvain_um.results.display import require_pandas

        frame: pd.DataFrame = require_pandas().DataFrame([dict(row) for row in self.results])
        return frame

    def __repr__(self) -> str:
        graphs = dict.fromkeys(str(row["graph"]) for row in self.results)
        return f"Sweep({len(self.results)} runs of {', '.join(graphs) or 'nothing'})"


def join_sweeps(first: Sweep, second: Sweep) -> Sweep:
    """Return two sweeps as one, such as a measured and a modelled one of the same graphs."""
    sizes: dict[str, tuple[Any, Any]] = {}
    for row in (*first.results, *second.results):
        size = row.get("vertices"), row.get("arcs")
        if None not in size and sizes.setdefault(row["graph"], size) != size:
            raise LouvainUmError(
                f"{row['graph']} has {sizes[row['graph']][1]:,} arcs in one sweep and "
                f"{size[1]:,} in the other; rename a graph and sweep it again"
            )
    here = {(_cell(row), row["policy"]) for row in first.results}
    more = [row for row in second.results if (_cell(row), row["policy"]) not in here]
    again = len(second.results) - len(more)
    notes = [*first.notes, *second.notes]
    if again:
        notes.append(f"{again} runs are in both sweeps; those of the first are shown")

    def both(one: tuple[Row, ...], two: tuple[Row, ...]) -> tuple[Row, ...]:
        known = {row["graph"] for row in one}
        return (*one, *(row for row in two if row["graph"] not in known))

    return Sweep(
        results=(*first.results, *more),
        groups=both(first.groups, second.groups),
        iterations=both(first.iterations, second.iterations),
        notes=tuple(dict.fromkeys(notes)),
        unfinished=" ".join(filter(None, (first.unfinished, second.unfinished))),
    )


def gains(results: Iterable[Row]) -> dict[str, dict[float, float]]:
    """Return how many times faster than `base` each policy was, by oversubscription.

    The mean over graphs of base's seconds divided by the policy's, as in Table 4.6. Loading
    counts: what `base` moves on first touch, other policies bring before.
    """
    rows = [row for row in results if row["feasible"] and (row["seconds"] or 0) > 0]
    base = {_cell(row): with_loading(row) for row in rows if row["policy"] == "base"}
    ratios: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        if row["policy"] != "base" and _cell(row) in base:
            by_rate = ratios.setdefault(row["policy"], {})
            by_rate.setdefault(row["oversubscription"], []).append(
                base[_cell(row)] / with_loading(row)
            )
    return {
        policy: {rate: sum(values) / len(values) for rate, values in sorted(by_rate.items())}
        for policy, by_rate in ratios.items()
    }


def with_loading(row: Row) -> float:
    """Return the seconds of a run with its loading, which those of measured runs leave out."""
    loading = (row.get("load_seconds") or 0.0) if row["evidence"] == "measured" else 0.0
    return float(row["seconds"] + loading)


def base_coverage(results: Iterable[Row]) -> tuple[int, dict[float, int]]:
    """Return how many graphs there are, and on how many base ran, by oversubscription."""
    rows = list(results)
    ran: dict[float, set[str]] = {row["oversubscription"]: set() for row in rows}
    for row in rows:
        if row["policy"] == "base" and row["feasible"] and row["seconds"]:
            ran[row["oversubscription"]].add(row["graph"])
    counts = {rate: len(graphs) for rate, graphs in sorted(ran.items())}
    return len({row["graph"] for row in rows}), counts


def _cell(row: Row) -> tuple[Any, ...]:
    return row["graph"], row["oversubscription"], row["evidence"], row.get("gpu")


def _checked(name: str, table: Any, columns: Mapping[str, type]) -> tuple[Row, ...]:
    """Return rows with their columns' types."""
    if hasattr(table, "to_dict"):
        table = table.to_dict("records")
    elif isinstance(table, Mapping):
        keys = list(table)
        table = [dict(zip(keys, row, strict=True)) for row in zip(*table.values(), strict=True)]
    rows = []
    for number, row in enumerate(table, 1):
        absent = [column for column in columns if column not in row]
        if absent:
            raise LouvainUmError(
                f"{name} have no column {absent[0]!r}; is this what louvain-um sweep wrote?"
            )
        known = {**OPTIONAL, **columns}
        if None in row:
            raise LouvainUmError(
                f"{name}: row {number} has more values than columns; run the sweep again"
            )
        typed: dict[str, Any] = {}
        for key, value in row.items():
            kind = float if key.startswith(TERM) else known.get(key)
            try:
                typed[key] = _typed(value, kind) if kind else value
            except (TypeError, ValueError, OverflowError):
                typed[key] = None
                empty = value is None
                bad = key
            else:
                empty = typed[key] is None
                bad = "" if not empty or key not in NAMED[name] else key
            if bad:
                what = "is empty" if empty else f"is {str(value)[:40]!r}"
                raise LouvainUmError(
                    f"{name}: {bad} of row {number} {' '.join(what.split())}; run the sweep again"
                )
        rows.append(typed)
    return tuple(rows)


def _typed(value: Any, kind: type) -> Any:
    """Return a value as its column's type; nothing stays None."""
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if hasattr(value, "item"):
        value = value.item()
    if kind is bool:
        if str(value).lower() not in ("true", "false", "0", "1", "0.0", "1.0"):
            raise ValueError(value)
        return str(value).lower() in ("true", "1", "1.0")
    if kind is str:
        if not isinstance(value, str | int | float):
            raise ValueError(value)
        return str(value)
    number = float(value)
    if not -1 <= number <= MOST:
        raise ValueError(value)
    return int(number) if kind is int else number


def evidence_of(rows: Iterable[Row]) -> str:
    """Return the evidence of rows."""
    kinds = sorted({str(row.get("evidence") or "unknown") for row in rows})
    return " and ".join(kinds)


def machines(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Return evidence and machine of rows, each pair once, measured first."""
    return sorted(set(map(machine_of, rows)))


def runs_on(rows: Iterable[Row], machine: tuple[str, str]) -> list[Row]:
    """Return the rows of one evidence and machine."""
    return [row for row in rows if machine_of(row) == machine]


def machine_label(machine: tuple[str, str]) -> str:
    """Return evidence and machine as one label."""
    return ", ".join(part for part in machine if part)


def format_rates(rates: Sequence[float]) -> str:
    """Return neighbouring oversubscriptions in percent as text."""
    # To two decimals: one of a budget in bytes has many.
    ends = dict.fromkeys((rates[0], rates[-1]))
    texts = (f"{round(r, 2):g}" if 0 < round(r, 2) < 100 else f"{r:.9g}" for r in ends)
    return f"{' to '.join(texts)} %"


def format_rate(rate: float) -> str:
    """Return an oversubscription in percent as text."""
    return format_rates([rate])


def machine_of(row: Row) -> tuple[str, str]:
    """Return evidence and machine of a row."""
    return str(row["evidence"]), str(row.get("gpu") or "")
