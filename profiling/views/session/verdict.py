"""What held a run back, and what to try: the first thing a report says."""

from __future__ import annotations

from dataclasses import dataclass

from louvain_um.profiling.session.events import Cause, Kind
from louvain_um.profiling.views.session.analysis import NAMES, OTHER, SessionAnalysis
from louvain_um.profiling.views.session.blocks import fetched_again
from louvain_um.profiling.views.session.evidence import evidence, is_available
from louvain_um.profiling.views.table import format_value

AGAIN = 0.25
"""Share of the bytes that came in more than once from which eviction is to blame."""

SHARE = 0.2
"""Share of the run from which something is said to hold it back."""

BUSY = 0.5
"""Share of the run below which kernels are not what it waited for."""

FAULT_RATE, REMOTE_RATE = 12.9e9, 51.3e9
"""Bytes/s of paging in on demand, and of reading over the bus (H200, PCIe 5); used where the
session has no durations or plan to tell."""

PAGING = ("faults", "migration", "write_back", "prefetch")
"""Terms of a simulated run's cost that are the moving of pages."""

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
    """Return the verdict on a session.

    Examples
    --------
    >>> from louvain_um.profiling.session import SessionData
    >>> from louvain_um.profiling.views.session.analysis import SessionAnalysis
    >>> from louvain_um.profiling.views.session.verdict import verdict
    >>> verdict(SessionAnalysis(SessionData())).finding
    'Nothing was recorded.'
    """
    session = analysis.session
    if not session.phases and not len(session.events) and not analysis.maps:
        return Verdict(
            finding="Nothing was recorded.",
            remedy="Record a run with louvain-um profile.",
            grounds="no phase, event or map in the session",
        )
    if not session.metadata.get("complete", True):
        found = _of_whole(analysis)
        return Verdict(
            finding=f"The run was cut short; until then: {found.finding}",
            remedy=found.remedy,
            grounds=found.grounds,
        )
    return _of_whole(analysis)


def _of_whole(analysis: SessionAnalysis) -> Verdict:
    session = analysis.session
    if not is_available(session, "memory"):
        return _by_time(analysis)
    flow = _flow(analysis)
    seconds = max(session.seconds, 1e-9)
    if flow.left and flow.again > AGAIN * flow.came:
        return _evicted(analysis, flow)
    moving, how = _moving_seconds(analysis, flow)
    if moving > SHARE * seconds:
        return _paged(analysis, flow, moving / seconds, how)
    remote = analysis.total(Kind.REMOTE_ACCESS)
    if remote / REMOTE_RATE > SHARE * seconds:
        share = min(remote / REMOTE_RATE / seconds, 1.0)
        return Verdict(
            finding=f"Reading {format_value(remote, 'bytes')} in place over the bus took about "
            f"{format_value(share, 'share')} of the run.",
            remedy="Try a larger --device-budget with --memory auto, which keeps on the device "
            "what is read most.",
            grounds=f"bytes {evidence(session, 'memory')}; their time modelled at "
            f"{REMOTE_RATE / 1e9:.1f} GB/s",
        )
    found = _by_time(analysis)
    moved = flow.came + flow.left
    still = f"only {format_value(moved, 'bytes')} moved" if moved else "no page moved"
    return Verdict(
        finding=f"Memory did not hold the run back ({still}): {_lower(found.finding)}",
        remedy=found.remedy,
        grounds=found.grounds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flow:
    """Bytes that came to the device and left it, and how many of them came again."""

    came: int
    left: int
    again: int
    how: str
    groups: list[tuple[str, float]]


def _flow(analysis: SessionAnalysis) -> _Flow:
    """Return what moved; where only totals are known, what was evicted counts as come again."""
    kind, bytes_in = Kind.HTOD, analysis.total(Kind.HTOD)
    if analysis.totals is None:
        again, left = fetched_again(analysis)[1], analysis.total(Kind.DTOH)
        how = "what had been there before is counted in blocks of 2 MiB"
    else:
        kind = Kind.EVICTION
        bytes_in = analysis.totals.get("bytes_to_device", 0)
        left = analysis.totals.get("bytes_to_host", 0)
        again = min(analysis.total(kind), bytes_in)
        how = "what was evicted is taken to have come again"
    sums = analysis.sums(analysis.group_of, len(NAMES), kind, "bytes")
    shares = [(name, value / max(sum(sums), 1)) for name, value in zip(NAMES, sums, strict=True)]
    shares.sort(key=lambda pair: -pair[1])
    return _Flow(came=bytes_in, left=left, again=again, how=how, groups=shares)


def _evicted(analysis: SessionAnalysis, flow: _Flow) -> Verdict:
    """Blame eviction: the same bytes came again and again."""
    session = analysis.session
    most, part = flow.groups[0]
    seconds, how = _moving_seconds(analysis, flow)
    share = min(seconds / max(session.seconds, 1e-9), 1.0)
    paying = frozenset(name for name, share in flow.groups if share > SHARE) - {OTHER}
    policy = HOST_MAPPED.get(paying, "adv1")
    remedy = "Try --memory auto, or a larger --device-budget."
    if policy != session.metadata.get("policy"):
        remedy = (
            f"Try --memory {policy}, which leaves {_list(paying)} on the host and reads it over "
            "the bus without faults, or --memory auto."
        )
    asked = analysis.total(Kind.DTOH, "bytes", Cause.USER) > flow.left / 2
    cause = "Moving blocks to stay within the budget" if asked else "Eviction"
    again = format_value(flow.again / flow.came, "share")
    return Verdict(
        finding=f"{cause} held the run back: {again} of the {format_value(flow.came, 'bytes')} "
        f"moved to the device had been there before, mostly {most} "
        f"({format_value(part, 'share')}); moving pages took about "
        f"{format_value(share, 'share')} of the run.",
        remedy=remedy,
        grounds=f"bytes {evidence(session, 'memory')}; {flow.how}; {how}",
    )


def _paged(analysis: SessionAnalysis, flow: _Flow, share: float, how: str) -> Verdict:
    """Blame paging in: bytes came once, but by faults."""
    asked = analysis.total(Kind.HTOD, "bytes", Cause.USER)
    most, part = flow.groups[0]
    by_fault = asked < flow.came / 2
    way = "on demand, fault by fault" if by_fault else "ahead of use"
    back = f" and {format_value(flow.left, 'bytes')} back" if flow.left > flow.came / 4 else ""
    mostly = f", most of it {most} ({format_value(part, 'share')})" if part else ""
    return Verdict(
        finding=f"Moving {format_value(flow.came, 'bytes')} to the device{back}, {way}, took about "
        f"{format_value(min(share, 1.0), 'share')} of the run{mostly}.",
        remedy="Try --memory auto: it copies once what fits and reads the rest over the bus."
        if by_fault
        else "Try --memory auto, or a device budget that holds more of it.",
        grounds=f"bytes {evidence(analysis.session, 'memory')}; {how}",
    )


def _by_time(analysis: SessionAnalysis) -> Verdict:
    """Say which phase took longest."""
    session = analysis.session
    spans = analysis.phases
    whole = sum(span.seconds for span in spans)
    known = evidence(session, "memory")
    grounds = f"seconds {evidence(session, 'time')}; memory {known}"
    if not spans or whole <= 0:
        return Verdict(
            finding="Where the time went is not known: no phase was announced.",
            remedy="Record a detection with louvain-um profile, or name phases with run.phase().",
            grounds=grounds,
        )
    totals: dict[tuple[str, int], float] = {}
    for span in spans:
        key = span.phase, span.level
        totals[key] = totals.get(key, 0.0) + span.seconds
    (phase, level), most = max(totals.items(), key=lambda item: item[1])
    where = f"{phase} on level {level}" if level >= 0 else phase
    part = "Most of the time" if most > whole / 2 else "The largest part of the time"
    finding = f"{part}, {format_value(most / whole, 'share')}, went into {where}."
    if (session.metadata.get("device") or "").startswith("cpu"):
        finding += " The run was the CPU's, whose memory is never paged."
        remedy = "Try --device cuda where there is a GPU, or more --threads."
    elif not is_available(session, "memory"):
        finding += f" What memory did is {known}."
        remedy = "Record again where that source can work; see louvain-um doctor."
    elif phase == "load":
        came = Kind.HTOD in analysis.rows
        remedy = "Loading brings the graph to the device, once a run; " + (
            "try --memory auto, which copies it rather than letting it be paged in."
            if came
            else "the rest is as fast as its kernels."
        )
    else:
        remedy = "The run is as fast as its kernels; a faster GPU or --max-level would help."
        busy = int(analysis.events["duration"][analysis.of(Kind.KERNEL)].sum()) / 1e9
        if 0 < busy < BUSY * whole:
            finding += f" Kernels ran for {format_value(busy / whole, 'share')} of it."
            remedy = (
                "The rest is the host's: launches, allocation, and what a first run on a machine "
                "makes ready. Record the run again, or a larger graph."
            )
    return Verdict(finding=finding, remedy=remedy, grounds=grounds)


def _moving_seconds(analysis: SessionAnalysis, flow: _Flow) -> tuple[float, str]:
    """Return how long pages moved, and how that is known."""
    terms = analysis.session.metadata.get("terms")
    if terms:
        return sum(terms.get(name, 0.0) for name in PAGING), "terms of cost modelled"
    spent = {
        kind: int(analysis.events["duration"][analysis.of(kind)].sum()) / 1e9
        for kind in (Kind.GPU_FAULT_GROUP, Kind.HTOD, Kind.DTOH)
    }
    known = max(spent[Kind.GPU_FAULT_GROUP], spent[Kind.HTOD] + spent[Kind.DTOH])
    if known:
        return known, "the time of moving measured, as far as copies and faults have one"
    moved = (flow.came + flow.left) / FAULT_RATE
    return moved, f"the time of moving modelled at {FAULT_RATE / 1e9:.1f} GB/s"


def _list(groups: frozenset[str]) -> str:
    names = [name for name in NAMES if name in groups] or ["everything"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
