"""What several views derive from a session, and the session in a few lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from louvain_um.profiling.session import PhaseSpan, SessionData
from louvain_um.profiling.session.compiling import compile_spans, run_joules, without_compiling
from louvain_um.profiling.session.data import OTHER
from louvain_um.profiling.session.events import Cause, Kind, Source
from louvain_um.profiling.views.table import ValueFormat, format_value

FIGURES: dict[str, tuple[Kind, str, Cause | None]] = {
    "bytes_to_device": (Kind.HTOD, "bytes", None),
    "bytes_to_host": (Kind.DTOH, "bytes", None),
    "bytes_evicted": (Kind.DTOH, "bytes", Cause.EVICTION),
    "gpu_fault_groups": (Kind.GPU_FAULT_GROUP, "rows", None),
    "gpu_faults": (Kind.GPU_FAULT_GROUP, "count", None),
    "cpu_faults": (Kind.CPU_FAULT, "count", None),
    "thrashing": (Kind.THRASHING, "count", None),
    "throttling": (Kind.THROTTLING, "count", None),
    "remote_maps": (Kind.REMOTE_MAP, "count", None),
    "accesses": (Kind.ACCESS, "count", None),
}
"""Figures of a session and of its groups: the kind of events, the column added up, the cause."""

SHOWN = {
    "bytes_to_device": "to the device",
    "bytes_to_host": "to the host",
    "gpu_faults": "GPU faults",
    "cpu_faults": "CPU faults",
    "accesses": "accesses",
}
"""Figures of the summary that are printed."""

COUNTED = ("events", "samples", "launches", "instrumented_places")
"""Counts that a source may report."""


def summary(session: SessionData) -> dict[str, Any]:
    """Return the figures of a session; those that no source recorded are None."""
    analysis = SessionAnalysis(session)
    groups = _by_group(analysis)
    whole: dict[str, int | None] = {
        name: sum(group[name] or 0 for group in groups.values()) for name in FIGURES
    }
    sources = session.metadata.get("sources", {})
    if not any(sources.get(name) in ("measured", "modelled") for name in SOURCES["memory"]):
        whole |= {name: whole[name] or None for name in FIGURES if name != "accesses"}
    whole |= {name: whole[name] or None for name in analysis.not_recorded}
    if not session.maps:
        whole["accesses"] = whole["accesses"] or None
    totals = analysis.driver_totals or {}
    whole |= {name: totals[name] for name in ("bytes_to_device", "bytes_to_host") if name in totals}
    for group in groups.values():
        group |= {name: None for name, value in whole.items() if value is None or name in totals}
    complete = session.metadata.get("complete", True)
    # The rate is known only of a complete run.
    arcs = (session.metadata.get("graph") or {}).get("arcs") if complete else None
    spent = run_joules(session)
    memory = session.events["kind"] <= Kind.DTOD
    about = session.metadata.get("about_sources", {}).values()
    lost = [source["dropped"] for source in about if source.get("dropped") is not None]
    return {
        "seconds": session.seconds,
        "arcs_per_second": arcs / session.seconds if arcs and session.seconds else None,
        "joules": spent,
        "arcs_per_joule": arcs / spent if arcs and spent else None,
        **whole,
        "by_group": groups,
        "events": len(session.events),
        "memory_events": int(np.count_nonzero(memory)),
        "unattributed": session.unattributed,
        "dropped": sum(lost) if lost else None,
        "sources": dict(sources),
        "notes": list(session.notes),
        "complete": complete,
    }


def _by_group(analysis: SessionAnalysis) -> dict[str, dict[str, int | None]]:
    """Return `FIGURES` of each group that has arrays, and of `other` if there is any."""
    names = analysis.group_names
    columns = {name: analysis.sums(analysis.group_of, len(names), kind, column, cause)
               for name, (kind, column, cause) in FIGURES.items()}  # fmt: skip
    columns["accesses"] = analysis.accesses_by_group or columns["accesses"]
    there = {array.group for array in analysis.arrays}
    rows = zip(names, zip(*columns.values(), strict=True), strict=True)
    return {
        name: dict(zip(FIGURES, row, strict=True))
        for name, row in rows
        if name in there or any(row)
    }


def lines(session: SessionData) -> Iterable[str]:
    """Yield the session in a few lines of text."""
    figures = summary(session)
    about = session.metadata
    named = [about.get("method"), about.get("policy"), about.get("device")]
    if about.get("device") == "cpu":
        named.remove(about.get("policy"))  # on the CPU there is only one
    what = " ".join(str(name) for name in named if name)
    rate = figures["arcs_per_second"]
    cost = [f"{figures['seconds']:.3f} s"]
    cost += [f"{format_value(rate, 'rate')} arcs/s"] if rate else []
    if figures["joules"] is not None:
        cost.append(f"{figures['joules']:,.1f} J")
    if figures["arcs_per_joule"]:
        cost.append(f"{format_value(figures['arcs_per_joule'], 'rate')} arcs/J")
    yield f"{what or 'session'}: {', '.join(cost)}"
    shown = {name: value for name, value in SHOWN.items() if figures[name] is not None}
    for group, values in [("all", figures), *figures["by_group"].items()]:
        parts = [
            f"{text} {format_value(values[name], _kind(name))}"
            for name, text in shown.items()
            if values[name] is not None
        ]
        if parts:
            yield f"  {group}: {', '.join(parts)}"
    if figures["unattributed"]:
        events = figures["memory_events"]
        yield f"{figures['unattributed']:,} of {events:,} memory events lie in no array of the run"
    yield from (f"note: {note}" for note in session.notes)


def _kind(name: str) -> ValueFormat:
    """Return the format of a figure."""
    return "bytes" if name.startswith("bytes") else "count"


def data_sources(session: SessionData) -> tuple[str, ...]:
    """Return a line for each source, and one on how many events belong to an array."""
    about = session.metadata.get("about_sources") or {}
    lines = [
        "; ".join([f"{name}: {status}", *_parts(about.get(name) or {})])
        for name, status in (session.metadata.get("sources") or {}).items()
    ]
    figures = summary(session)
    if figures["memory_events"]:
        lost = figures["unattributed"]
        share = format_value(lost / figures["memory_events"], "share")
        lines.append(
            f"of {figures['memory_events']:,} events of memory {lost:,} ({share}) lie in no array "
            "of the run"
        )
    return tuple(lines)


def _parts(about: Mapping[str, Any]) -> list[str]:
    """Return what a source reports about itself: counts, losses, overhead."""
    parts = [
        f"{about[key]:,} {key.replace('_', ' ').removesuffix('s' if about[key] == 1 else ' ')}"
        for key in COUNTED
        if about.get(key) is not None
    ]
    if about.get("dropped") is not None:
        parts.append(f"{about['dropped']:,} dropped")
    if about.get("period_seconds"):
        parts.append(f"one every {format_value(about['period_seconds'], 'seconds')}")
    if about.get("overhead_seconds"):
        spent = format_value(about["overhead_seconds"], "seconds")
        parts.append(f"{spent} spent on recording, as the source reports")
    recorded, counted = about.get("recorded") or {}, about.get("driver_totals") or {}
    for key, total in counted.items():
        what = key.replace("bytes_", "bytes ").replace("_", " ").replace("cpu", "CPU")
        if not about.get("migrations", True) and key.startswith("bytes"):
            parts.append(f"{total:,} {what} counted by the driver, without single migrations")
        elif recorded.get(key) == total:
            parts.append(f"{total:,} {what}, equal to the driver's own count")
        else:
            parts.append(f"{recorded.get(key, 0):,} {what} of {total:,} that the driver counted")
    return parts


GROUP_TITLES = {
    "graph": "Graph's CSR",
    "hash": "Hash tables",
    "community": "Community info",
    "scratch": "Scratch (the thesis's Others)",
    "other": "No array of the run",
}

CAUSE_LABELS = {
    Cause.UNKNOWN: "unknown cause",
    Cause.USER: "request of the program",
    Cause.COHERENCE: "page fault",
    Cause.PREFETCH: "density prefetcher",
    Cause.EVICTION: "eviction",
    Cause.ACCESS_COUNTERS: "access counters",
}
"""Causes of migrations in words."""

Matter = Literal["time", "memory", "access", "in_place", "energy", "kernel"]
"""What a number is about."""

SOURCES: dict[Matter, tuple[str, ...]] = {
    "time": ("engine", "cupti", "nsys", "simulator"),
    "memory": ("uvm", "cupti", "nsys", "simulator"),
    "access": ("tracer", "recorder", "launches", "simulator"),
    "in_place": ("in_place", "simulator"),
    "energy": ("nvml",),
    "kernel": ("cupti", "nsys", "simulator"),
}
"""Sources that record each kind of number, the most direct first."""

KINDS: dict[Matter, tuple[Kind, ...]] = {
    "memory": tuple(kind for kind in Kind if kind <= Kind.DTOD),
    "access": (Kind.ACCESS,),
    "in_place": (Kind.REMOTE_ACCESS,),
    "kernel": (Kind.KERNEL,),
}


@dataclass(frozen=True, slots=True)
class ArraySummary:
    """All arrays of one name: the largest size and the total lifetime."""

    name: str
    group: str
    level: int
    nbytes: int
    alive_ns: int


class SessionAnalysis:
    """Everything that is derived from a session's events more than once."""

    def __init__(self, session: SessionData) -> None:
        self.original = session
        self.session = without_compiling(session)
        self.events = self.session.events
        self.compile_seconds = float(np.diff(compile_spans(session)).sum()) / 1e9

    @cached_property
    def owners(self) -> NDArray[np.int32]:
        """Index of each event's lifetime, −1 for none."""
        return self.original.event_arrays()  # before compile time is cut out

    @cached_property
    def group_names(self) -> tuple[str, ...]:
        """Groups of the program, and "other" for what lies in no array."""
        return (*self.session.groups, OTHER)

    @cached_property
    def arrays(self) -> tuple[ArraySummary, ...]:
        """Arrays by name, group by group, those of low levels and large ones first."""
        summaries: dict[str, ArraySummary] = {}
        for life in self.session.lifetimes:
            old = summaries.get(life.name)
            summaries[life.name] = ArraySummary(
                life.name,
                life.group,
                life.level,
                max(life.nbytes, old.nbytes if old else 0),
                life.end_ns - life.start_ns + (old.alive_ns if old else 0),
            )
        order = {group: at for at, group in enumerate(self.group_names)}
        return tuple(
            sorted(summaries.values(), key=lambda a: (order[a.group], max(a.level, 0), -a.nbytes))
        )

    @cached_property
    def array_of(self) -> NDArray[np.int32]:
        """Index into `arrays` of each event; `len(arrays)` for events of none."""
        index = {array.name: at for at, array in enumerate(self.arrays)}
        table = [index[life.name] for life in self.session.lifetimes]
        return np.array([*table, len(self.arrays)], np.int32)[self.owners]

    @cached_property
    def group_of(self) -> NDArray[np.int16]:
        """Index into `group_names` of each event."""
        names = self.group_names
        table = [names.index(array.group) for array in self.arrays]
        return np.array([*table, names.index(OTHER)], np.int16)[self.array_of]

    @cached_property
    def rows_by_kind(self) -> dict[Kind, NDArray[np.intp]]:
        """Rows of each kind that occurs."""
        kinds = self.events["kind"]
        present = np.flatnonzero(np.bincount(kinds, minlength=1))
        known = {int(kind): kind for kind in Kind}
        return {known[k]: np.flatnonzero(kinds == k) for k in present.tolist() if k in known}

    def rows_of(self, kind: Kind, cause: Cause | None = None) -> NDArray[np.intp]:
        """Return the rows of a kind, and of a cause if one is given."""
        rows = self.rows_by_kind.get(kind, np.empty(0, np.intp))
        if cause is not None:
            causes = self.events["cause"][rows]
            of_no_name = (causes > max(Cause)) & (cause == Cause.UNKNOWN)
            rows = rows[(causes == cause) | of_no_name]
        return rows

    def total(self, kind: Kind, column: str = "bytes", cause: Cause | None = None) -> int:
        """Return the sum of a column over a kind and cause."""
        return int(self.events[column][self.rows_of(kind, cause)].sum())

    def sums(
        self, key: NDArray[Any], size: int, kind: Kind, column: str, cause: Cause | None = None
    ) -> list[int]:
        """Return the sums of a column by a key of each event; exact below 2⁵³."""
        rows = self.rows_of(kind, cause)
        return [int(v) for v in np.bincount(key[rows], self.events[column][rows], size)]

    @cached_property
    def driver_totals(self) -> dict[str, int] | None:
        """Migrated bytes as counted by the driver, where single migrations were not recorded."""
        about = self.session.metadata.get("about_sources", {}).get("uvm", {})
        if about.get("migrations", True):
            return None
        return dict(about.get("driver_totals") or {})

    @property
    def not_recorded(self) -> tuple[str, ...]:
        """Figures of which no source says anything, not even that they are 0."""
        return tuple(self.session.metadata.get("not_recorded", ()))

    @cached_property
    def window(self) -> tuple[int, int]:
        """First and last time of phases, maps and events, in nanoseconds; never empty."""
        spans = self.session.phases
        starts = [span.start_ns for span in spans] + [int(page.edges[0]) for page in self.maps]
        ends = [span.end_ns for span in spans] + [int(page.edges[-1]) for page in self.maps]
        if len(self.events):
            times = self.events["time"]
            starts.append(int(times.min()))
            ends.append(int((times + self.events["duration"]).max()))
        if not starts:
            starts = [life.start_ns for life in self.session.lifetimes]
            ends = [life.end_ns for life in self.session.lifetimes]
        first = min(starts, default=0)
        return first, max(max(ends, default=1), first + 1)

    @property
    def maps(self) -> tuple[Any, ...]:
        """Page maps that hold anything."""
        return tuple(page for page in self.session.maps if page.counts.size)

    @cached_property
    def phases(self) -> tuple[PhaseSpan, ...]:
        """Whole phases."""
        return tuple(span for span in self.session.phases if span.iteration < 0)

    @cached_property
    def iterations(self) -> tuple[PhaseSpan, ...]:
        """Iterations of phases."""
        return tuple(span for span in self.session.phases if span.iteration >= 0)

    @cached_property
    def accesses_by_array(self) -> list[int] | None:
        """Accesses of each of `arrays` and of none; None if no source counted them."""
        size = len(self.arrays) + 1
        if self.total(Kind.ACCESS, "count"):
            return self.sums(self.array_of, size, Kind.ACCESS, "count")
        maps = [page for page in self.maps if page.kind == "access"]
        if not maps:
            return None
        index = {array.name: at for at, array in enumerate(self.arrays)}
        counts = [0] * size
        for page in maps:
            counts[index.get(page.array, size - 1)] += page.total
        return counts

    @property
    def accesses_by_group(self) -> list[int] | None:
        """Accesses of each of `group_names`; None if no source counted them."""
        if self.accesses_by_array is None:
            return None
        sums = dict.fromkeys(self.group_names, 0)
        groups = (*(array.group for array in self.arrays), OTHER)
        for group, count in zip(groups, self.accesses_by_array, strict=True):
            sums[group] += count
        return [*sums.values()]


def evidence(session: SessionData, matter: Matter) -> str:
    """Return whether a kind of numbers was measured or modelled, and by which source."""
    sources = session.metadata.get("sources", {})
    known = [(name, sources[name]) for name in SOURCES[matter] if name in sources]
    for name, status in known:
        if status in ("measured", "modelled"):
            return f"{status} ({name})"
    if matter == "access" and session.maps:
        return "measured (page by page)"
    # Sessions made by hand list no sources, but each event names its own.
    seen = np.unique(
        session.events["source"][np.isin(session.events["kind"], KINDS.get(matter, ()))]
    )
    for number in seen if matter in KINDS else ():
        name = Source(number).name.lower() if number in tuple(Source) else "unknown source"
        return f"{'modelled' if number == Source.SIMULATOR else 'measured'} ({name})"
    if known:
        return str(known[0][1])
    return "not available: no source recorded it"


def overall(*sessions: SessionData) -> str:
    """Return how the numbers of sessions came about as a whole: one word for a page's title."""
    texts = [evidence(session, matter) for session in sessions for matter in SOURCES]
    kinds = {text.partition(" ")[0] for text in texts} & {"measured", "modelled"}
    return kinds.pop() if len(kinds) == 1 else "mixed" if kinds else ""


def is_available(session: SessionData, matter: Matter) -> bool:
    """Say whether a kind of numbers is available at all."""
    return not evidence(session, matter).startswith("not available")
