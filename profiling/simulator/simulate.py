"""Replay a trace on the simulated machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np

from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.machine_files import load_machine
from louvain_um.placement.policy.policy import Policy
from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.driver.options import Driver
from louvain_um.profiling.simulator.host_bytes import check_state
from louvain_um.profiling.simulator.layout import Placement, lay_out, placements_of
from louvain_um.profiling.simulator.replay import Replay
from louvain_um.profiling.simulator.result import TERMS, Simulation
from louvain_um.profiling.simulator.trace import Trace

MOST_NS = 2.0**62
"""Bound of simulated time, which events keep as int64."""


def simulate(
    trace: Trace,
    machine: Machine | str = "h200",
    *,
    policy: str | Path | Policy | None = None,
    placements: Mapping[str, Placement] | None = None,
    capacity: int | None = None,
    driver: Driver | None = None,
    peer: bool = False,
    record: bool = True,
) -> Simulation:
    """Replay a trace under a policy, on a machine, with a given device memory.

    Parameters
    ----------
    trace : Trace
        Arrays, launches, host touches and prefetches.
    machine : Machine or str
        Rates from which times are computed; a profile's name or file.
    policy : str, path or Policy, optional
        Name, TOML file or object of any policy but "auto", which `sweep.replay.run` plans.
    placements : mapping of str to placement, optional
        Instead of a policy: by name of an array or a group; see `layout.ADVICE`. Default: no
        advice.
    capacity : int, optional
        Bytes of device memory; the machine's own by default.
    driver : Driver, optional
        Behaviour of the driver; NVIDIA's by default.
    peer : bool
        Whether the rest of splits is in another GPU's memory, of a GPU of the same kind, instead
        of the host's. The placement "peer" is there in any case.
    record : bool
        Whether to keep single events; the totals are kept anyway.

    Returns
    -------
    Simulation
        Deterministic.

    Raises
    ------
    MemoryBudgetError
        The arrays placed on the device do not fit.
    OptionError
        There is no such policy or placement, or both are given.
    LouvainUmError
        The simulation needs more memory than the host has, or simulated time overflows.

    Examples
    --------
    >>> from louvain_um.profiling.simulator import Array, Launch, Touches, Trace, simulate
    >>> data = Array(name="targets", group="graph", nbytes=8 << 20)
    >>> scan = Launch(touches=Touches.runs(0, 0, data.pages))
    >>> run = simulate(Trace((data,), (scan, scan)), "h200")
    >>> run.bytes_to_device == data.nbytes, run.total("evictions")
    (True, 0)
    >>> simulate(Trace((data,), (scan,)), policy="adv2").batches
    0
    """
    profile = load_machine(machine) if isinstance(machine, str) else machine
    size = profile.memory_bytes if capacity is None else capacity
    if size < 0:
        raise OptionError("capacity", size, "must be a number of bytes")
    if policy is not None:
        if placements is not None:
            raise OptionError(remedy="pass a policy or placements, not both")
        placements = placements_of(trace.arrays, policy)
    ways = driver or Driver()
    check_state(trace.arrays, profile, ways)
    pooled = trace.steps if ways.eviction == "program" else None
    far = "peer" if peer else "host_mapped"
    layout = lay_out(trace.arrays, placements or {}, ways.hold, pooled, far=far)
    replay = Replay(trace, layout, profile, ways, size, record)
    try:
        replay.start()
        loading = float(replay.state.clock[c.STALLED]) * 1e-9
        seconds = np.array([replay.step(step) for step in trace.steps], np.float64)
    except ValueError as error:  # of compiled code, about a function of the user's
        raise LouvainUmError(
            f"a function of your own (eviction {ways.eviction!r}, prefetch {ways.prefetch!r}) "
            f"{error}; test it on a small trace"
        ) from None
    s = replay.state
    if not s.clock[c.STALLED] < MOST_NS:
        raise LouvainUmError(
            f"the simulation takes {s.clock[c.STALLED] / 1e9:.3g} s on {profile.name}, too long to "
            "count in nanoseconds; check the rates of the machine"
        )
    return Simulation(
        trace=trace,
        addresses=np.array([layout.address(i) for i in range(len(trace.arrays))], np.int64),
        events=replay.events(),
        dropped_events=int(s.counters[c.DROPPED]),
        costs={name: float(ns) * 1e-9 for name, ns in zip(TERMS, s.costs, strict=True)},
        by_array=s.totals,
        batches=int(s.counters[c.BATCHES]),
        services=int(s.counters[c.SERVICES]),
        fetched_faults=int(s.counters[c.FAULTS]),
        replayed=int(s.counters[c.REPLAYED]),
        peak_bytes=int(s.counters[c.PEAK]) * c.PAGE_BYTES,
        capacity_bytes=size,
        bytes_loaded=replay.loaded,
        load_seconds=loading,
        launch_seconds=seconds,
        provenance={
            "evidence": "modelled",
            "machine": profile.to_dict(),
            "driver": asdict(ways),
            "placements": dict(placements or {}),
            "peer": peer,
        },
    )
