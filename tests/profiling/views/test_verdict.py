"""The verdict follows from a session's own costs and machine, and names its cause."""

from dataclasses import replace

import numpy as np
import pytest

from louvain_um.generators import lfr
from louvain_um.profiling import Session
from louvain_um.profiling.access.recorder import record
from louvain_um.profiling.session import Lifetime
from louvain_um.profiling.session.data import with_phases
from louvain_um.profiling.session.events import Cause, EventTable, Kind, Source
from louvain_um.profiling.simulator import (
    Access,
    Array,
    HostTouches,
    Launch,
    Touches,
    Trace,
    simulate,
)
from louvain_um.profiling.simulator.to_session import session_of
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.verdict import verdict
from tests.profiling.views.made import BASE, MIB, MS, lifetimes, phases


def verdict_of(trace, machine="p4000", **options):
    run = simulate(trace, machine, **options)
    return verdict(SessionAnalysis(session_of(trace, run)))


@pytest.mark.parametrize("policy", ["adv4", "adv9"])
def test_random_accesses_over_the_bus_are_blamed(policy):
    trace = record(lfr(20_000, seed=1).graph)
    run = simulate(trace, "p4000", policy=policy)
    remote = sum(value for name, value in run.costs.items() if name.startswith("remote"))
    assert remote - run.costs["hidden"] > 0.5 * run.seconds
    found = verdict(SessionAnalysis(session_of(trace, run, method="louvain", policy=policy)))
    assert found.finding.startswith("Random accesses over the bus took about")
    assert "labels" in found.finding
    assert "faster GPU" not in found.remedy
    assert "costs modelled" in found.grounds


def test_the_same_bytes_cost_as_much_as_the_machine_says():
    # 24 MB of labels in place: at random on a P4000 most of a run of 100 ms, streamed a tenth.
    def measured(name, machine):
        columns = {"kind": Kind.REMOTE_ACCESS, "source": Source.ENGINE, "time": 50 * MS,
                   "address": 1 << 40, "bytes": 24_000_000}  # fmt: skip
        events = EventTable({key: np.array([value]) for key, value in columns.items()})
        life = Lifetime(name=name, group="community", address=1 << 40, nbytes=64 * MIB,
                        start_ns=0, end_ns=100 * MS)  # fmt: skip
        about = {"seconds": 0.1, "sources": {"engine": "measured", "in_place": "measured"}}
        plan = {"machine": machine}
        made = Session(metadata=about, plan=plan, lifetimes=(life,), events=events)
        return verdict(SessionAnalysis(made))

    assert "over the bus took" in measured("labels.0.0", "p4000").finding
    assert "rates of p4000" in measured("labels.0.0", "p4000").grounds
    assert "over the bus" not in measured("targets.0", "p4000").finding
    assert "over the bus" not in measured("labels.0.0", "h200").finding


def test_eviction_is_blamed_only_for_evictions():
    # 8 MiB go back and forth between the host and a GPU with room for all.
    data = Array(name="data", group="mine", nbytes=8 * MIB)
    whole = Touches.runs(0, 0, data.pages, Access.WRITE)
    trace = Trace((data,), (Launch(touches=whole), HostTouches(touches=whole)) * 20)
    run = simulate(trace, "p4000")
    assert run.total("evictions") == 0
    found = verdict(SessionAnalysis(session_of(trace, run)))
    assert "Eviction" not in found.finding
    assert found.finding.startswith("The host, which took pages back, held the run back")
    assert "data" in found.remedy
    assert "adv" not in found.remedy.replace("advise", "")


def test_advice_for_another_program_names_its_arrays():
    data = Array(name="matrix", group="mine", nbytes=16 * MIB)
    scan = Launch(touches=Touches.runs(0, 0, data.pages))
    found = verdict_of(Trace((data,), (scan,) * 8), capacity=8 * MIB)
    assert found.finding.startswith("Eviction held the run back")
    assert "mostly matrix" in found.finding
    assert "advise matrix to stay on the host" in found.remedy
    assert "--memory" not in found.remedy


def test_a_foreign_import_without_arrays_gets_no_policies():
    rows = 200
    kinds = np.tile([Kind.HTOD, Kind.DTOH], rows)
    events = EventTable(
        {
            "kind": kinds,
            "cause": np.full(2 * rows, Cause.COHERENCE),
            "source": np.full(2 * rows, Source.NSYS),
            "time": np.arange(2 * rows) * 1000,
            "duration": np.full(2 * rows, 900),
            "address": np.full(2 * rows, 1 << 40, np.uint64),
            "bytes": np.full(2 * rows, 2 * MIB),
        }
    )
    about = {"seconds": 2 * rows * 1e-6, "sources": {"nsys": "measured"}}
    found = verdict(SessionAnalysis(Session(metadata=about, events=events)))
    assert "Eviction" not in found.finding
    assert "--memory" not in found.remedy


@pytest.mark.parametrize("cause", [Cause.USER, Cause.COHERENCE])
def test_what_kernels_did_not_wait_for_is_compared_with_the_run(cause):
    # Of a second, kernels take 10 ms, and moving pages to the device 300 ms.
    columns = {"kind": [Kind.KERNEL, Kind.HTOD], "time": [0, 20 * MS], "bytes": [0, 64 * MIB],
               "duration": [10 * MS, 300 * MS], "cause": [0, cause],
               "source": [Source.CUPTI] * 2}  # fmt: skip
    about = {"seconds": 1.0, "sources": {"cupti": "measured"}, "about_sources": {"launches": {}}}
    found = verdict(SessionAnalysis(Session(metadata=about, events=EventTable(columns)))).finding
    share = "30 % of the run" if cause == Cause.USER else "100 % of the time of its kernels"
    assert share in found.replace("30.0", "30").replace("100.0", "100")


def test_what_overlapped_with_computing_is_not_blamed():
    data = Array(name="data", group="mine", nbytes=4 * MIB)
    scan = Launch(touches=Touches.runs(0, 0, data.pages), compute_seconds=1.0)
    found = verdict_of(Trace((data,), (scan,)), placements={"data": "pinned"})
    assert found.finding.startswith("Memory did not hold the run back")


def session(nbytes, **metadata):
    events = EventTable(
        {
            "time": [50 * MS, 95 * MS],
            "kind": [Kind.REMOTE_ACCESS] * 2,
            "source": [Source.ENGINE] * 2,
            "address": [BASE, BASE],
            "bytes": [nbytes // 4, nbytes],
        }
    )
    return Session(
        metadata={
            "seconds": 0.1,
            "complete": True,
            "sources": {"engine": "measured", "in_place": "measured", **metadata},
        },
        plan={"seconds_in_core": 0.02},
        lifetimes=lifetimes(),
        phases=phases(),
        events=with_phases(events, phases()),
    )


def test_array_phase_level_and_remedy_are_named():
    for known in ({}, {"uvm": "measured"}):
        found = verdict(SessionAnalysis(session(3_000_000_000, **known)))
        assert "targets.0 during move on level 1" in found.finding
        assert "In core the run takes about 20.00 ms (modelled)" in found.finding
        assert "64.0 MiB more of the device" in found.remedy
        assert "measured (in_place)" in found.grounds


def test_a_few_bytes_do_not_limit_a_run():
    found = verdict(SessionAnalysis(session(1_000_000, uvm="measured")))
    assert "in place" not in found.finding


def test_without_a_known_array_the_verdict_says_so():
    made = session(3_000_000_000)
    made = replace(made, lifetimes=())
    assert "other arrays" in verdict(SessionAnalysis(made)).finding


def attached(*faults):
    """Return a program of others that runs kernels for 0.3 s of 2 s, and moves one of two arrays.

    `faults` are the milliseconds that page faults of each array take.
    """
    lives = tuple(
        Lifetime(name=name, group=name, address=at << 40, nbytes=64 * MIB, start_ns=0,
                 end_ns=2000 * MS)
        for at, name in enumerate(("links", "lists"), 1)
    )  # fmt: skip
    rows = [(Kind.KERNEL, 1000, 300, 0, 0), (Kind.HTOD, 1000, 5, 1 << 40, 64 * MIB)]
    rows += [(Kind.GPU_FAULT_GROUP, 1000, took, at << 40, 0) for at, took in enumerate(faults, 1)]
    kind, time, took, address, nbytes = map(np.array, zip(*rows, strict=True))
    events = EventTable({"kind": kind, "time": time * MS, "duration": took * MS,
                         "address": address, "bytes": nbytes})  # fmt: skip
    about = {"seconds": 2.0, "sources": {"cupti": "measured"},
             "about_sources": {"launches": {"launches": 1}}}  # fmt: skip
    made = Session(metadata=about, lifetimes=lives, events=events, phases=phases())
    return verdict(SessionAnalysis(made))


def test_page_faults_are_compared_with_the_kernels_of_a_program_of_others():
    fresh = attached(20, 100)
    assert fresh.finding == (
        "GPU page faults (2 groups; 83.3 % of their time for the first touches of memory, mostly "
        "lists) took about 40.0 % of the time of its kernels."
    )
    assert "prefetch them" in fresh.remedy
    moved = attached(100, 20)
    assert "on demand" in moved.finding
    assert moved.finding.endswith("took about 40.0 % of the time of its kernels, most of it links.")
    little = attached(20, 20).finding
    assert "back (only 64.0 MiB moved; faults and moving took 13.3 % of the time of its" in little
