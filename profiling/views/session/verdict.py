"""The verdict on a run: what limited it, and what to try."""

from __future__ import annotations

from dataclasses import dataclass, replace

from louvain_um.core.ledger import GROUPS
from louvain_um.profiling.session.data import OTHER, waiting
from louvain_um.profiling.session.events import Cause, Kind
from louvain_um.profiling.views.session.analysis import SessionAnalysis, evidence, is_available
from louvain_um.profiling.views.session.blocks import refetched_bytes
from louvain_um.profiling.views.table import format_value

REFETCHED = 0.25
"""Share of migrated bytes beyond a block's first filling from which eviction is to blame."""

LIMITING = 0.2
"""Share of the run from which a cause is said to hold it back."""

BUSY = 0.5
"""Share of the run below which kernels do not limit it."""

FAULT_RATE, REMOTE_RATE = 12.9e9, 51.3e9
"""Bytes/s of migration on demand, and of reading over the bus (H200, PCIe 5); used if the session
has neither durations nor a plan."""

PAGING = ("faults", "migration", "write_back", "prefetch")
"""Terms of a simulated run's cost that belong to migration."""

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
        conclusion = _of_whole(analysis)
        return Verdict(
            finding=f"The run was interrupted; until then: {conclusion.finding}",
            remedy=conclusion.remedy,
            grounds=conclusion.grounds,
        )
    return _of_whole(analysis)


def _of_whole(analysis: SessionAnalysis) -> Verdict:
    """Return the verdict on what was recorded, and which rank waited for which."""
    found, waited = _of_process(analysis), waiting(analysis.session)
    if waited is None:
        return found
    return replace(found, finding=f"{waited[0].upper()}{waited[1:]}. {found.finding}")


def _of_process(analysis: SessionAnalysis) -> Verdict:
    session = analysis.session
    seconds, remote = max(session.seconds, 1e-9), analysis.total(Kind.REMOTE_ACCESS)
    read_in_place = remote / REMOTE_RATE > LIMITING * seconds
    if not is_available(session, "memory"):
        return _in_place(analysis, remote) if read_in_place else _by_time(analysis)
    traffic = _traffic(analysis)
    if traffic.bytes_out and traffic.refetched > REFETCHED * traffic.bytes_in:
        return _evicted(analysis, traffic)
    moving, how = _moving_seconds(analysis, traffic)
    if moving > LIMITING * seconds:
        return _paged(analysis, traffic, moving / seconds, how)
    if read_in_place:
        return _in_place(analysis, remote)
    conclusion = _by_time(analysis)
    moved = traffic.bytes_in + traffic.bytes_out
    still = f"only {format_value(moved, 'bytes')} moved" if moved else "no page moved"
    return Verdict(
        finding=f"Memory did not hold the run back ({still}): {_lower(conclusion.finding)}",
        remedy=conclusion.remedy,
        grounds=conclusion.grounds,
    )


def _in_place(analysis: SessionAnalysis, remote: int) -> Verdict:
    """Blame reads in place: the array, phase and level that most bytes were read of."""
    session, events = analysis.session, analysis.events
    rows = analysis.rows_of(Kind.REMOTE_ACCESS)
    arrays, sums = session.event_arrays()[rows], dict[tuple[int, int, int], int]()
    columns = (arrays, events["phase"][rows], events["level"][rows], events["bytes"][rows])
    for array, phase, level, nbytes in zip(*(column.tolist() for column in columns), strict=True):
        sums[array, phase, level] = sums.get((array, phase, level), 0) + nbytes
    (array, phase, level), most = max(sums.items(), key=lambda item: item[1])
    known = session.lifetimes[array] if array >= 0 else None
    where = events.phases[phase] if phase >= 0 else "the run"
    where += f" on level {level}" if level >= 0 else ""
    seconds = max(session.seconds, 1e-9)
    took = min(remote / REMOTE_RATE, seconds)
    finding = (
        f"Reading {format_value(remote, 'bytes')} in place over the bus took about "
        f"{format_value(took, 'seconds')} of {format_value(seconds, 'seconds')}, "
        f"{format_value(most / remote, 'share')} of it {known.name if known else 'other arrays'} "
        f"during {where}."
    )
    in_core = (session.plan or {}).get("seconds_in_core")
    if in_core:
        finding += f" In core the run takes about {format_value(in_core, 'seconds')} (modelled)."
    remedy = "Try a larger --device-budget with --memory auto, which keeps on the device "
    remedy += "what is read most."
    if known:
        least = format_value(known.nbytes, "bytes")
        remedy = f"Up to {least} more of the device, with --memory auto, would avoid that."
    return Verdict(
        finding=finding,
        remedy=remedy,
        grounds=f"bytes {evidence(session, 'in_place')}; their time modelled at "
        f"{REMOTE_RATE / 1e9:.1f} GB/s",
    )


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


def _evicted(analysis: SessionAnalysis, traffic: _Traffic) -> Verdict:
    """Blame eviction: the same bytes migrated repeatedly."""
    session = analysis.session
    most, part = traffic.groups[0]
    seconds, how = _moving_seconds(analysis, traffic)
    share = min(seconds / max(session.seconds, 1e-9), 1.0)
    paying = frozenset(name for name, share in traffic.groups if share > LIMITING) - {OTHER}
    policy = HOST_MAPPED.get(paying, "adv1")
    remedy = "Try --memory auto, or a larger --device-budget."
    if policy != session.metadata.get("policy"):
        remedy = (
            f"Try --memory {policy}, which leaves {_list(paying)} on the host and reads it over "
            "the bus without faults, or --memory auto."
        )
    requested = analysis.total(Kind.DTOH, "bytes", Cause.USER) > traffic.bytes_out / 2
    cause = "Moving blocks to stay within the budget" if requested else "Eviction"
    again = format_value(traffic.refetched / traffic.bytes_in, "share")
    moved = format_value(traffic.bytes_in, "bytes")
    return Verdict(
        finding=f"{cause} held the run back: {again} of the {moved} "
        f"moved to the device had been there before, mostly {most} "
        f"({format_value(part, 'share')}); moving pages took about "
        f"{format_value(share, 'share')} of the run.",
        remedy=remedy,
        grounds=f"bytes {evidence(session, 'memory')}; {traffic.grounds}; {how}",
    )


def _paged(analysis: SessionAnalysis, traffic: _Traffic, share: float, how: str) -> Verdict:
    """Blame migration: bytes moved once, on demand or ahead of use."""
    requested = analysis.total(Kind.HTOD, "bytes", Cause.USER)
    most, part = traffic.groups[0]
    by_fault = requested < traffic.bytes_in / 2
    moved = format_value(traffic.bytes_in, "bytes")
    way = "on demand, fault by fault" if by_fault else "ahead of use"
    back = (
        f" and {format_value(traffic.bytes_out, 'bytes')} back"
        if traffic.bytes_out > traffic.bytes_in / 4
        else ""
    )
    mostly = f", most of it {most} ({format_value(part, 'share')})" if part else ""
    return Verdict(
        finding=f"Moving {moved} to the device{back}, {way}, took about "
        f"{format_value(min(share, 1.0), 'share')} of the run{mostly}.",
        remedy="Try --memory auto: it copies what fits once and reads the rest over the bus."
        if by_fault
        else "Try --memory auto, or a device budget that holds more of it.",
        grounds=f"bytes {evidence(analysis.session, 'memory')}; {how}",
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
        remedy = "Kernels limit the run; a faster GPU or a lower --max-level would help."
        busy = int(analysis.events["duration"][analysis.rows_of(Kind.KERNEL)].sum()) / 1e9
        if 0 < busy < BUSY * total_seconds:
            finding += f" Kernels ran for {format_value(busy / total_seconds, 'share')} of it."
            remedy = (
                "The rest is host time: launches, allocation and the setup of a first run. "
                "Record the run again, or use a larger graph."
            )
    return Verdict(finding=finding, remedy=remedy, grounds=grounds)


def _moving_seconds(analysis: SessionAnalysis, traffic: _Traffic) -> tuple[float, str]:
    """Return the seconds of migration, and on what grounds."""
    terms = analysis.session.metadata.get("terms")
    if terms:
        return sum(terms.get(name, 0.0) for name in PAGING), "costs modelled"
    spent = {
        kind: int(analysis.events["duration"][analysis.rows_of(kind)].sum()) / 1e9
        for kind in (Kind.GPU_FAULT_GROUP, Kind.HTOD, Kind.DTOH)
    }
    known = max(spent[Kind.GPU_FAULT_GROUP], spent[Kind.HTOD] + spent[Kind.DTOH])
    if known:
        return known, "migration time measured where copies and faults have durations"
    moved = (traffic.bytes_in + traffic.bytes_out) / FAULT_RATE
    return moved, f"migration time modelled at {FAULT_RATE / 1e9:.1f} GB/s"


def _list(groups: frozenset[str]) -> str:
    names = [name for name in (*GROUPS, *sorted(groups)) if name in groups]
    names = list(dict.fromkeys(names)) or ["everything"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
