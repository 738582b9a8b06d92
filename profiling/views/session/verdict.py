"""The verdict on a run: what limited it, and what to try."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.array_spec import STREAMED, role_of
from louvain_um.core.ledger import GROUPS
from louvain_um.errors import LouvainUmError
from louvain_um.options import Method
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import PROFILES, load_machine
from louvain_um.profiling.session.data import OTHER, SessionData, waiting
from louvain_um.profiling.session.events import Cause, Kind, Source
from louvain_um.profiling.views.session.analysis import SessionAnalysis, evidence, is_available
from louvain_um.profiling.views.session.pages import refetched_bytes
from louvain_um.profiling.views.table import format_value
from louvain_um.results.display import count

REFETCHED = 0.25
"""Share of migrated bytes beyond a block's first filling from which eviction is to blame."""

LIMITING = 0.2
"""Share of the run from which a cause is said to hold it back."""

AVOIDABLE = 0.1
"""The same where most bytes were moved before: that can be avoided as a whole."""

BUSY = 0.5
"""Share of the run below which kernels do not limit it."""

PAGING = ("faults", "migration", "write_back", "prefetch", "host")
"""Terms of a simulated run's cost that belong to migration."""

IN_PLACE = {
    "remote_sequential": "Streaming over the bus",
    "remote_random": "Random accesses over the bus",
    "remote_atomic": "Atomics over the bus",
    "remote_barrier": "Barriers over the bus",
}
"""Terms that belong to memory read and written in place, and what they are."""

ACCESS_BYTES = 4
"""Bytes of a random access that an engine counts."""

SECTOR_BYTES = 32
"""Bytes that a simulated random access carries over the bus."""

HOST_MAPPED = {
    frozenset({"graph"}): "adv2",
    frozenset({"hash"}): "adv3",
    frozenset({"community"}): "adv4",
    frozenset({"scratch"}): "adv5",
    frozenset({"graph", "community"}): "adv6",
    frozenset({"graph", "scratch"}): "adv7",
    frozenset({"community", "scratch"}): "adv8",
    frozenset({"graph", "community", "scratch"}): "adv9",
}
"""The policy that leaves these groups on the host and reads them from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What held the run back in a sentence, what to try in another, and on what grounds."""

    finding: str
    remedy: str
    grounds: str

    def __str__(self) -> str:
        return f"{self.finding} {self.remedy}"


def verdict(analysis: SessionAnalysis) -> Verdict:
    """Return the verdict on a session."""
    session = analysis.session
    if not session.phases and not len(session.events) and not analysis.maps:
        return Verdict(
            finding="Nothing was recorded.",
            remedy="Record a run with louvain-um profile.",
            grounds="no phase, event or map in the session",
        )
    if not session.metadata.get("complete", True):
        found = _of_whole(analysis)
        return replace(found, finding=f"The run was interrupted; until then: {found.finding}")
    return _of_whole(analysis)


def _of_whole(analysis: SessionAnalysis) -> Verdict:
    """Return the verdict on what was recorded, and which rank waited for which."""
    found, waited = _of_process(analysis), waiting(analysis.session)
    if waited is None:
        return found
    return replace(found, finding=f"{waited[0].upper()}{waited[1:]}. {found.finding}")


def _of_process(analysis: SessionAnalysis) -> Verdict:
    """Blame what took most of the run: moving pages, reading in place, or neither."""
    session = analysis.session
    held = _held_back(analysis)
    seconds = held.seconds
    in_place = _in_place_cost(analysis)
    if not is_available(session, "memory"):
        limits = in_place.seconds > LIMITING * seconds
        return _in_place(analysis, in_place) if limits else _by_time(analysis)
    traffic = _traffic(analysis)
    moving = _moving(analysis, traffic)
    again = bool(traffic.bytes_out) and traffic.refetched > REFETCHED * traffic.bytes_in
    if in_place.seconds > max(moving.seconds, LIMITING * seconds):
        return _in_place(analysis, in_place)
    if moving.share > LIMITING and analysis.total(Kind.DTOD) > traffic.bytes_in:
        return _between(analysis, moving)
    if again and moving.share > AVOIDABLE:
        return _moved_again(analysis, traffic, moving)
    fresh = _first_touched(analysis)
    by_faults = fresh.share > 1 / 2 and moving.whole == held
    if moving.share > LIMITING and (by_faults or not traffic.bytes_in + traffic.bytes_out):
        return _faulted(analysis, moving, fresh)
    if moving.share > LIMITING:
        return _paged(analysis, traffic, moving)
    conclusion = _by_time(analysis)
    moved = traffic.bytes_in + traffic.bytes_out
    if not moved and "bytes_to_device" in analysis.not_recorded:
        finding = f"Whether pages moved was not recorded. {conclusion.finding}"
        return replace(conclusion, finding=finding)
    still = f"only {format_value(moved, 'bytes')} moved" if moved else "no page moved"
    if moving.share > AVOIDABLE:
        still += f"; faults and moving took {moving.part}"
    first, rest = conclusion.finding[:1].lower(), conclusion.finding[1:]
    return replace(conclusion, finding=f"Memory did not hold the run back ({still}): {first}{rest}")


class _Whole(NamedTuple):
    """Seconds that memory may have held back, and of what they are."""

    seconds: float
    name: str


def _held_back(analysis: SessionAnalysis) -> _Whole:
    """Return the seconds of the run; of a program of others, those in which its kernels ran."""
    kernels = int(analysis.events["duration"][analysis.rows_of(Kind.KERNEL)].sum()) / 1e9
    if kernels and "launches" in analysis.session.metadata.get("about_sources", {}):
        return _Whole(kernels, "the time of its kernels")
    return _run(analysis)


def _run(analysis: SessionAnalysis) -> _Whole:
    """Return the seconds of the run."""
    return _Whole(max(analysis.session.seconds, 1e-9), "the run")


class _FirstTouched(NamedTuple):
    """Page faults of arrays that no byte was moved of: their share, and the array with most."""

    share: float
    array: str


def _first_touched(analysis: SessionAnalysis) -> _FirstTouched:
    """Return the share of the time of page faults that fresh memory took."""
    size = len(analysis.arrays) + 1
    spent = np.array(
        analysis.sums(analysis.array_of, size, Kind.GPU_FAULT_GROUP, "duration"), np.float64
    )
    moved = np.array(analysis.sums(analysis.array_of, size, Kind.HTOD, "bytes"))
    fresh = np.where(moved[:-1] == 0, spent[:-1], 0.0)
    if not fresh.any():
        return _FirstTouched(0.0, "")
    return _FirstTouched(
        float(fresh.sum() / spent.sum()), analysis.arrays[int(fresh.argmax())].name
    )


def _machine(session: SessionData) -> tuple[Machine, str]:
    """Return the machine whose rates hold for a session, and its name as grounds."""
    name = session.metadata.get("machine") or (session.plan or {}).get("machine")
    try:
        return load_machine(name), str(name)  # type: ignore[arg-type]  # checked there
    except LouvainUmError:
        return PROFILES["h200"], "an H200, assumed"


def _is_ours(session: SessionData) -> bool:
    """Return whether a session is of this package's programs, which take its policies."""
    arrays = (role_of(life.name) != "other" for life in session.lifetimes)
    return bool(session.metadata.get("method")) or any(arrays)


class _InPlaceCost(NamedTuple):
    """Seconds of memory that was read and written in place, and of which events they are."""

    seconds: float
    what: str
    how: str
    by_row: NDArray[np.float64]


def _in_place_cost(analysis: SessionAnalysis) -> _InPlaceCost:
    """Return the cost of accesses over the bus: the session's own terms, or by its machine."""
    session, rows = analysis.session, analysis.rows_of(Kind.REMOTE_ACCESS)
    machine, name = _machine(session)
    events = {key: analysis.events[key][rows] for key in ("bytes", "count", "source")}
    # Simulated events count random accesses; those of an engine, bytes of arrays.
    lives = [role_of(life.name) in (*STREAMED, "other") for life in session.lifetimes]
    streamed = np.array([*lives, True])[session.event_arrays()[rows]]
    nbytes = events["bytes"].astype(np.float64)
    accesses = np.where(streamed, 0.0, nbytes / ACCESS_BYTES)
    simulated = events["source"] == Source.SIMULATOR
    accesses = np.where(simulated, events["count"], accesses)
    in_order = np.where(simulated, nbytes - SECTOR_BYTES * events["count"], nbytes * streamed)
    by_row = in_order / machine.remote_bandwidth + accesses / machine.remote_random_rate
    terms = session.metadata.get("terms")
    if not terms:
        what = "Reading in place over the bus"
        return _InPlaceCost(
            float(by_row.sum()), what, f"time modelled by the rates of {name}", by_row
        )
    spent = {key: terms.get(key, 0.0) for key in IN_PLACE}
    # What overlapped with computing would not be saved.
    seconds = max(0.0, sum(spent.values()) - terms.get("hidden", 0.0))
    what = IN_PLACE[max(spent, key=lambda key: spent[key])]
    return _InPlaceCost(seconds, what, "costs modelled", by_row)


def _in_place(analysis: SessionAnalysis, cost: _InPlaceCost) -> Verdict:
    """Blame accesses in place: the array, phase and level that they cost most of."""
    session, events = analysis.session, analysis.events
    rows = analysis.rows_of(Kind.REMOTE_ACCESS)
    seconds = max(session.seconds, 1e-9)
    took = min(cost.seconds, seconds)
    finding = (
        f"{cost.what} took about {format_value(took, 'seconds')} of "
        f"{format_value(seconds, 'seconds')}"
    )
    known = None
    if len(rows):
        arrays, sums = session.event_arrays()[rows], dict[tuple[int, int, int], float]()
        columns = (arrays, events["phase"][rows], events["level"][rows], cost.by_row)
        for array, phase, level, spent in zip(*(c.tolist() for c in columns), strict=True):
            sums[array, phase, level] = sums.get((array, phase, level), 0.0) + spent
        (array, phase, level), most = max(sums.items(), key=lambda item: item[1])
        known = session.lifetimes[array] if array >= 0 else None
        where = events.phases[phase] if phase >= 0 else "the run"
        where += f" on level {level}" if level >= 0 else ""
        share = format_value(most / max(sum(sums.values()), 1e-300), "share")
        nbytes = format_value(int(events["bytes"][rows].sum()), "bytes")
        finding += (
            f", {share} of it for {known.name if known else 'other arrays'} during {where}; "
            f"{nbytes} were read and written there"
        )
    finding += "."
    in_core = (session.plan or {}).get("seconds_in_core")
    if in_core:
        finding += f" In core the run takes about {format_value(in_core, 'seconds')} (modelled)."
    if not _is_ours(session):
        remedy = f"Place {known.name if known else 'what is read most'} on the device."
    elif known:
        least = format_value(known.nbytes, "bytes")
        remedy = f"Up to {least} more of the device, with --memory auto, would avoid that."
    else:
        remedy = "Try a larger --device-budget with --memory auto, which keeps on the device "
        remedy += "what is read most."
    grounds = f"bytes {evidence(session, 'in_place')}; {cost.how}"
    return Verdict(finding=finding, remedy=remedy, grounds=grounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traffic:
    """Bytes migrated to and from the device, and how many of them repeatedly."""

    bytes_in: int
    bytes_out: int
    refetched: int
    grounds: str
    groups: list[tuple[str, float]]


def _traffic(analysis: SessionAnalysis) -> _Traffic:
    """Return the run's migrations; if only totals are known, evicted bytes count as repeated."""
    kind, bytes_in = Kind.HTOD, analysis.total(Kind.HTOD)
    if analysis.driver_totals is None:
        again, left = refetched_bytes(analysis)[1], analysis.total(Kind.DTOH)
        how = "repeated migrations counted per block of 2 MiB"
    else:
        kind = Kind.EVICTION
        bytes_in = analysis.driver_totals.get("bytes_to_device", 0)
        left = analysis.driver_totals.get("bytes_to_host", 0)
        again = min(analysis.total(kind), bytes_in)
        how = "evicted bytes are assumed to be migrated again"
    sums = analysis.sums(analysis.group_of, len(analysis.group_names), kind, "bytes")
    shares = [
        (name, value / max(sum(sums), 1))
        for name, value in zip(analysis.group_names, sums, strict=True)
    ]
    shares.sort(key=lambda pair: -pair[1])
    return _Traffic(bytes_in=bytes_in, bytes_out=left, refetched=again, grounds=how, groups=shares)


def _moved_again(analysis: SessionAnalysis, traffic: _Traffic, moving: _Moving) -> Verdict:
    """Blame what made the same bytes migrate repeatedly: eviction, budget, or the host."""
    session = analysis.session
    most, part = traffic.groups[0]
    paying = frozenset(name for name, share in traffic.groups if share > LIMITING) - {OTHER}
    evicted = analysis.total(Kind.DTOH, "bytes", Cause.EVICTION) + analysis.total(Kind.EVICTION)
    requested = analysis.total(Kind.DTOH, "bytes", Cause.USER) > traffic.bytes_out / 2
    cause = "Moving blocks to stay within the budget"
    if not requested:
        several = len(analysis.events.devices) > 1 and not analysis.total(Kind.CPU_FAULT, "count")
        taker = "Another GPU" if several else "The host"
        cause = "Eviction" if evicted else f"{taker}, which took pages back,"
    ours = _is_ours(session)
    arrays = _list(paying) if ours else _largest(analysis)
    if requested or evicted:
        remedy = "Try --memory auto, or a larger --device-budget."
        policy = HOST_MAPPED.get(paying, "adv1")
        if not ours:
            remedy = (
                f"Use more device memory, or advise {arrays} to stay on the host and to be "
                "accessed by the GPU there."
            )
        elif policy != session.metadata.get("policy"):
            remedy = (
                f"Try --memory {policy}, which leaves {arrays} on the host and reads it over "
                "the bus without faults, or --memory auto."
            )
    else:
        remedy = (
            f"Let one side keep {arrays}: advise the host as preferred location and the GPU as "
            "accessing it there, or copy what the host needs."
        )
    again = format_value(traffic.refetched / traffic.bytes_in, "share")
    moved = format_value(traffic.bytes_in, "bytes")
    mostly = f"{most} ({format_value(part, 'share')})" if ours else arrays
    return Verdict(
        finding=f"{cause} held the run back: {again} of the {moved} "
        f"moved to the device had been there before, mostly {mostly}; moving pages took about "
        f"{moving.part}.",
        remedy=remedy,
        grounds=f"bytes {evidence(session, 'memory')}; {traffic.grounds}; {moving.how}",
    )


def _between(analysis: SessionAnalysis, moving: _Moving) -> Verdict:
    """Blame GPUs that took pages from each other."""
    rows = analysis.rows_of(Kind.DTOD)
    gpus = np.unique(analysis.events["device"][rows]).tolist()
    who = "GPUs" if len(gpus) < 2 else f"GPUs {', '.join(map(str, gpus[:-1]))} and {gpus[-1]}"
    array = _largest(analysis, Kind.DTOD)
    return Verdict(
        finding=f"{who} took {format_value(analysis.total(Kind.DTOD), 'bytes')} from each other, "
        f"mostly {array}; moving pages took about {moving.part}.",
        remedy=f"Keep {array} on one GPU: make that its preferred location and give the other GPUs "
        "access; if the array is mostly read, advise read_mostly instead.",
        grounds=f"bytes {evidence(analysis.session, 'memory')}; {moving.how}",
    )


def _largest(analysis: SessionAnalysis, kind: Kind = Kind.HTOD) -> str:
    """Return the array that most bytes were moved of, by name."""
    sums = analysis.sums(analysis.array_of, len(analysis.arrays) + 1, kind, "bytes")
    at = max(range(len(sums)), key=lambda number: sums[number])
    return analysis.arrays[at].name if at < len(analysis.arrays) else "arrays without a name"


def _paged(analysis: SessionAnalysis, traffic: _Traffic, moving: _Moving) -> Verdict:
    """Blame migration: bytes moved once, on demand or before use."""
    requested = analysis.total(Kind.HTOD, "bytes", Cause.USER)
    most, part = traffic.groups[0]
    by_fault = requested < traffic.bytes_in / 2
    moved = format_value(traffic.bytes_in, "bytes")
    way = "on demand, fault by fault" if by_fault else "before use"
    back = (
        f" and {format_value(traffic.bytes_out, 'bytes')} back"
        if traffic.bytes_out > traffic.bytes_in / 4
        else ""
    )
    mostly = f", most of it {most} ({format_value(part, 'share')})" if part else ""
    remedy = "Try --memory auto, or a device budget that holds more of it."
    if not _is_ours(analysis.session):
        mostly = f", most of it {_largest(analysis)}"
        remedy = "Copy what is used again before its first use, in large pieces."
    elif by_fault:
        remedy = "Try --memory auto: it copies what fits once and reads the rest over the bus."
    return Verdict(
        finding=f"Moving {moved} to the device{back}, {way}, took about {moving.part}{mostly}.",
        remedy=remedy,
        grounds=f"bytes {evidence(analysis.session, 'memory')}; {moving.how}",
    )


def _faulted(analysis: SessionAnalysis, moving: _Moving, fresh: _FirstTouched) -> Verdict:
    """Blame page faults after which no page moved, or that fresh memory took."""
    groups = analysis.total(Kind.GPU_FAULT_GROUP, "rows")
    moved = "migrations were not recorded"
    if "bytes_to_device" not in analysis.not_recorded:
        moved = "no page moved to the device"
        if analysis.total(Kind.HTOD):
            first = format_value(fresh.share, "share")
            moved = f"{first} of their time for the first touches of memory, mostly {fresh.array}"
    remedy = "Try --memory auto, which accesses such arrays over the bus without faults."
    if not _is_ours(analysis.session):
        remedy = "Advise these arrays to be accessed by the GPU, or prefetch them."
    return Verdict(
        finding=f"GPU page faults ({count(groups, 'group', 'groups')}; {moved}) took about "
        f"{moving.part}.",
        remedy=remedy,
        grounds=f"faults {evidence(analysis.session, 'memory')}; {moving.how}",
    )


def _by_time(analysis: SessionAnalysis) -> Verdict:
    """Name the phase that took longest."""
    session = analysis.session
    spans = analysis.phases
    total_seconds = sum(span.seconds for span in spans)
    known = evidence(session, "memory")
    grounds = f"seconds {evidence(session, 'time')}; memory {known}"
    if not spans or total_seconds <= 0:
        return Verdict(
            finding="Where the time went is unknown: no phase was recorded.",
            remedy="Record a detection with louvain-um profile, or name phases with run.phase().",
            grounds=grounds,
        )
    totals: dict[tuple[str, int], float] = {}
    for span in spans:
        key = span.phase, span.level
        totals[key] = totals.get(key, 0.0) + span.seconds
    (phase, level), most = max(totals.items(), key=lambda item: item[1])
    where = f"{phase} on level {level}" if level >= 0 else phase
    part = "Most of the time" if most > total_seconds / 2 else "The largest part of the time"
    finding = f"{part}, {format_value(most / total_seconds, 'share')}, went into {where}."
    if (session.metadata.get("device") or "").startswith("cpu"):
        finding += " The run used the CPU, where no pages migrate."
        remedy = "Try --device cuda where there is a GPU, or more --threads."
    elif not is_available(session, "memory"):
        finding += f" Memory traffic is {known}."
        remedy = "Record again on a system where that source works; see louvain-um doctor."
    elif phase == "load":
        migrated = Kind.HTOD in analysis.rows_by_kind
        remedy = "Loading copies the graph to the device once per run; " + (
            "try --memory auto, which copies it instead of relying on page faults."
            if migrated
            else "the rest runs at the speed of its kernels."
        )
    else:
        detects = session.metadata.get("method") in get_args(Method)
        lower = " or a lower --max-level" if detects else ""
        remedy = f"Kernels limit the run; a faster GPU{lower} would help."
        busy = int(analysis.events["duration"][analysis.rows_of(Kind.KERNEL)].sum()) / 1e9
        if 0 < busy < BUSY * total_seconds:
            finding += f" Kernels ran for {format_value(busy / total_seconds, 'share')} of it."
            remedy = (
                "The rest is host time: launches, allocation and the setup of a first run. "
                "Record the run again, or use a larger graph."
            )
    return Verdict(finding=finding, remedy=remedy, grounds=grounds)


class _Moving(NamedTuple):
    """Seconds of migration, those that it may have held back, and on what grounds."""

    seconds: float
    whole: _Whole
    how: str

    @property
    def share(self) -> float:
        """Share of what it may have held back."""
        return self.seconds / self.whole.seconds

    @property
    def part(self) -> str:
        """The share, and of what it is."""
        return f"{format_value(min(self.share, 1.0), 'share')} of {self.whole.name}"


def _moving(analysis: SessionAnalysis, traffic: _Traffic) -> _Moving:
    """Return the cost of migration; what kernels did not wait for is compared with the run."""
    terms, whole = analysis.session.metadata.get("terms"), _held_back(analysis)
    if terms:
        return _Moving(sum(terms.get(name, 0.0) for name in PAGING), whole, "costs modelled")
    run, events = _run(analysis), analysis.events
    moved = np.isin(events["kind"], (Kind.HTOD, Kind.DTOH, Kind.DTOD))
    separate = moved & (events["cause"] == Cause.USER)
    separate |= events.where(Kind.DTOH, Cause.COHERENCE)  # the host took them back
    if whole == run:
        separate[:] = False
    faults, waited, others = (
        int(events["duration"][rows].sum()) / 1e9
        for rows in (events.where(Kind.GPU_FAULT_GROUP), moved & ~separate, separate)
    )
    if faults or waited or others:
        how = "migration time measured where copies and faults have durations"
        found = (_Moving(max(faults, waited), whole, how), _Moving(others, run, how))
        return max(found, key=lambda each: each.share)
    machine, name = _machine(analysis.session)
    seconds = (
        traffic.bytes_in / machine.migrate_to_device + traffic.bytes_out / machine.evict_to_host
    )
    return _Moving(seconds, whole, f"migration time modelled by the rates of {name}")


def _list(groups: frozenset[str]) -> str:
    names = [name for name in (*GROUPS, *sorted(groups)) if name in groups]
    names = list(dict.fromkeys(names)) or ["everything"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
