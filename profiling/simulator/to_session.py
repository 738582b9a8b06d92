"""A simulated run as a session, to report like a recorded one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import OptionError
from louvain_um.placement.hardware import seconds as format_seconds
from louvain_um.profiling.access.recordings import access_maps
from louvain_um.profiling.facade import Session
from louvain_um.profiling.session import Lifetime, PhaseSpan
from louvain_um.profiling.session.events import EventTable, Kind
from louvain_um.profiling.simulator import Simulation
from louvain_um.profiling.simulator.result import CONFORMANCE
from louvain_um.profiling.simulator.trace import Launch, Trace, lives_of
from louvain_um.version import __version__

NOTE = (
    "nothing was measured: the page touches of a recording were replayed by a model of NVIDIA's "
    "driver, and times come from the machine's rates"
)


def session_of(trace: Trace, run: Simulation, **metadata: Any) -> Session:
    """Return a simulated run as a session; its metadata holds the `terms` of cost in seconds.

    Parameters
    ----------
    trace : Trace
        What was to be replayed.
    run : Simulation
        With its events (`record=True`).
    **metadata
        Kept in the session: `policy`, `graph`, `method`.

    Raises
    ------
    OptionError
        The simulation kept no events.

    Examples
    --------
    >>> from louvain_um.profiling.simulator.to_session import session_of
    >>> from louvain_um.profiling.simulator import Array, Launch, Touches, Trace, simulate
    >>> data = Array(name="targets", group="graph", nbytes=8 << 20)
    >>> trace = Trace((data,), (Launch(touches=Touches.runs(0, 0, data.pages)),))
    >>> session_of(trace, simulate(trace, "h200"), policy="base").summary()["bytes_to_device"]
    8388608
    """
    trace = run.trace  # as it was replayed: where the program moves blocks, step by step
    launches = [at for at, step in enumerate(trace.steps) if isinstance(step, Launch)]
    if launches and not len(run.events):
        raise OptionError(remedy="the simulation kept no events; pass record=True")
    machine = run.provenance["machine"]["name"]
    seconds = np.cumsum([run.load_seconds, *run.launch_seconds])  # as the events' times
    times = np.rint(seconds * 1e9).astype(np.int64)
    low, high = (format_seconds(end) for end in run.seconds_range)
    notes = [
        f"{NOTE}; constants that are assumed (eviction to the host, service of faults) let the run "
        f"take {low} to {high}; how closely the model follows the driver: {CONFORMANCE}"
    ]
    maps = access_maps(trace, times)
    if run.dropped_events:
        notes.append(f"{run.dropped_events:,} events were dropped: the buffer was full")
    return Session(
        metadata={
            "version": __version__,
            "device": f"{machine}, simulated",
            "machine": machine,
            "seconds": run.seconds,
            "seconds_range": list(run.seconds_range),
            "budget_bytes": run.capacity_bytes,
            "complete": True,
            "sources": {"simulator": "modelled"},
            "terms": dict(run.costs),
            "peak_bytes": _peaks(trace),
            **metadata,
        },
        lifetimes=_lifetimes(trace, run, times),
        phases=_phases(trace, times),
        events=_timed(run, launches),
        maps=maps,
        notes=tuple(notes),
    )


def _lifetimes(trace: Trace, run: Simulation, times: NDArray[np.int64]) -> tuple[Lifetime, ...]:
    """Return arrays' lifetimes, one for each time that one was allocated."""
    found = []
    for number, begin, end in lives_of(trace.steps, len(trace.arrays)):
        array = trace.arrays[number]
        stem, _, level = array.name.rpartition(".")
        found.append(
            Lifetime(
                name=array.name,
                group=array.group,
                address=int(run.addresses[number]),
                nbytes=array.nbytes,
                start_ns=int(times[begin]) if begin > 0 else 0,
                end_ns=int(times[end]),
                level=int(level) if stem and level.isdecimal() else -1,
            )
        )
    return tuple(sorted(found, key=lambda array: array.start_ns))


def _peaks(trace: Trace) -> dict[str, int]:
    """Return the most bytes of each group's arrays at once."""
    changes = sorted(
        change
        for number, begin, end in lives_of(trace.steps, len(trace.arrays))
        for change in ((end, -trace.arrays[number].nbytes, number),
                       (max(begin, 0), trace.arrays[number].nbytes, number))
    )  # fmt: skip
    now, most = dict[str, int](), dict[str, int]()
    for _, nbytes, number in changes:  # of changes at one step, frees come first
        group = trace.arrays[number].group
        now[group] = now.get(group, 0) + nbytes
        most[group] = max(most.get(group, 0), now[group])
    return most


def _phases(trace: Trace, times: NDArray[np.int64]) -> tuple[PhaseSpan, ...]:
    """Return spans of launches of one phase and level, and of one iteration within them."""
    found: list[PhaseSpan] = []
    for whole in (True, False):
        last: PhaseSpan | None = None
        for at, step in enumerate(trace.steps):
            if not isinstance(step, Launch) or step.phase is None:
                continue
            span = PhaseSpan(
                phase=step.phase,
                level=step.level,
                iteration=-1 if whole else step.iteration,
                start_ns=int(times[at]),
                end_ns=int(times[at + 1]),
            )
            again = last and replace(last, start_ns=span.start_ns, end_ns=span.end_ns) == span
            if last is not None and again:
                span = replace(last, end_ns=span.end_ns)
                found.pop()
            if whole or span.iteration >= 0:
                found.append(span)
            last = span if whole or span.iteration >= 0 else None
    return tuple(sorted(found, key=lambda span: (span.start_ns, -span.end_ns)))


def _timed(run: Simulation, launches: list[int]) -> EventTable:
    """Return the events with the launches' durations for kernels."""
    columns = dict(run.events.columns)
    kernels = np.flatnonzero(columns["kind"] == Kind.KERNEL)
    kernels = kernels[np.argsort(columns["time"][kernels], kind="stable")]
    columns["duration"] = columns["duration"].copy()
    seconds = run.launch_seconds[launches]
    if len(kernels) == len(seconds):
        columns["duration"][kernels] = np.rint(seconds * 1e9)
        steps = [step for step in run.trace.steps if isinstance(step, Launch)]
        columns["rows"] = columns["rows"].copy()
        columns["rows"][kernels] = np.rint([step.repeats for step in steps])
    return EventTable(columns, run.events.kernels, run.events.phases)
