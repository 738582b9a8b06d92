"""Programs of one's own in recordings: their groups and phases, and a trace to simulate."""

from dataclasses import replace

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.errors import LouvainUmError
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.placement.program import Stream
from louvain_um.profiling.access.recordings import of_session, recording_in
from louvain_um.profiling.facade import Session
from louvain_um.profiling.session import Lifetime, PageMap, PhaseSpan
from louvain_um.profiling.session.events import EventTable, Kind
from louvain_um.profiling.simulator import Access, simulate
from louvain_um.profiling.simulator.to_session import session_of
from louvain_um.profiling.sweep.replay import Point, replay


def test_arrays_and_phases_of_a_placer_are_recorded():
    with lu.recording(device="cpu") as run, lu.Placer(device="cpu") as place:
        x = place.array("x", 100, group="ranks", reads=Stream())
        with place.phase("iterate"):
            x[...] = 1
    session = run.session
    assert [(a.name, a.group, a.nbytes) for a in session.lifetimes] == [("x", "ranks", 400)]
    assert [span.phase for span in session.phases] == ["iterate"]
    assert session.groups[-1] == "ranks"


def of_a_program():
    """A traced run: `ranks` read at random, `edges` streamed, `next` written."""
    rng = np.random.default_rng(0)
    pages = {
        "ranks": rng.multinomial(9_000_000, rng.dirichlet(np.ones(64))),
        "edges": np.full(64, 4096),
        "next": np.full(64, 512),
    }
    edges = np.array([0, 50, 100], np.int64)
    counts = {"ranks": [9_000_000, 0, 0], "edges": [4096 * 64, 0, 0], "next": [0, 512 * 64, 0]}
    return Session(
        metadata={"about_sources": {"tracer": {"accesses": counts}}, "sources": {}},
        lifetimes=tuple(
            Lifetime(name=name, group=f"my {name}", address=(at + 1) << 30, nbytes=64 << 20,
                     start_ns=0, end_ns=100)
            for at, name in enumerate(pages)
        ),
        phases=(PhaseSpan(phase="iterate", level=-1, iteration=-1, start_ns=0, end_ns=100),),
        maps=tuple(
            PageMap(array=name, page_bytes=1 << 20, edges=edges,
                    counts=np.stack([found, found], axis=1).astype(np.uint32))
            for name, found in pages.items()
        ),
    )  # fmt: skip


def test_maps_of_a_program_become_a_trace():
    trace = of_session(of_a_program())
    ways = {trace.arrays[n].name: {Access(w) for s in trace.steps for w in
            s.touches.way[s.touches.array == n]} for n in range(3)}  # fmt: skip
    assert ways == {"ranks": {Access.GATHER}, "edges": {Access.READ}, "next": {Access.WRITE}}
    assert [a.starts for a in trace.arrays] == ["host", "host", "nowhere"]
    assert [a.group for a in trace.arrays] == ["my ranks", "my edges", "my next"]
    assert {step.phase for step in trace.steps} == {"iterate"}


def test_pages_of_what_is_said_to_be_gathered_come_at_random():
    session = of_a_program()
    tracer = session.metadata["about_sources"]["tracer"] | {"gathered": ["edges"]}
    trace = of_session(replace(session, metadata={"about_sources": {"tracer": tracer}}))
    touches = trace.steps[0].touches
    mine = touches.array == 1
    assert [bool(touches.scattered[mine == at].any()) for at in (True, False)] == [True, False]
    assert touches.length[mine].tolist() == [64 * 256]
    assert touches.amount[mine].tolist() == [4096 * 64]


def test_a_session_of_nine_gpus_is_not_replayed():
    kernels = {"time": np.zeros(9), "kind": np.full(9, Kind.KERNEL), "device": np.arange(9)}
    session = replace(of_a_program(), events=EventTable(kernels, ()))
    with pytest.raises(LouvainUmError, match=r"events of 9 GPUs, .*; record a run on fewer"):
        of_session(session)


def test_a_bin_that_begins_before_its_phase_belongs_to_it():
    session = of_a_program()
    phases = (PhaseSpan(phase="late", level=-1, iteration=-1, start_ns=20, end_ns=40),)
    trace = of_session(replace(session, phases=phases))
    assert [step.phase for step in trace.steps] == ["late", None]


@pytest.mark.parametrize("policy", ["base", "adv1", "auto"])
def test_a_recorded_program_is_simulated_under_any_policy_and_shown(tmp_path, policy):
    path = tmp_path / "mine.npz"
    of_a_program().save(path)
    trace = recording_in(path)
    machine = load_machine("p4000")
    point = Point(graph="mine", policy=policy, oversubscription=50, gpu="p4000")
    row, simulation = replay(trace, point, machine)
    assert row["feasible"]
    if policy == "auto":
        assert simulation.provenance["placements"]["ranks"] == "device"
    run = simulate(trace, machine, placements=simulation.provenance["placements"])
    again = session_of(trace, run, policy=policy)
    again.report(tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text()
    assert "my ranks" in html
    assert "iterate" in html
    assert "my ranks" in again.summary()["by_group"]
