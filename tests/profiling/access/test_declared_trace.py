import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import louvain_um as lu
from louvain_um.algorithms.programs import BUILDERS, program_for
from louvain_um.generators import rmat
from louvain_um.placement.machine.profiles import H200
from louvain_um.placement.program import Atomic, Gather, Phase, Program, ProgramArray, Stream
from louvain_um.profiling.access.recorded_plans import program_of, trace_of
from louvain_um.profiling.session.events import Kind
from louvain_um.profiling.simulator import (
    Access,
    Allocate,
    Array,
    Driver,
    Free,
    HostTouches,
    Launch,
    Touches,
    Trace,
    load_trace,
    simulate,
    trace_of_addresses,
)
from louvain_um.profiling.simulator.driver.constants import BLOCK_BYTES, SCATTERED
from louvain_um.profiling.simulator.to_session import session_of
from louvain_um.profiling.sweep.replay import Point, replay

MIB = 1 << 20


@pytest.fixture(scope="module")
def graph():
    return rmat(8, seed=1).graph


def example():
    return Program(
        name="example",
        arrays=[
            ProgramArray(name="streamed", shape=MIB, reads=Stream(10), from_host=1),
            ProgramArray(name="part", shape=MIB, writes=Stream(2, share=0.25), to_host=1),
            ProgramArray(name="random", shape=MIB, reads=Gather(4e6), phases=("second",)),
            ProgramArray(name="sums", shape=MIB, writes=Atomic(4e6), phases=("first",)),
            ProgramArray(name="few", shape=MIB, reads={"second": Gather(2000, share=0.5)}),
        ],
        phases=[Phase(name="first", passes=5), Phase(name="second", passes=20)],
    )


def test_a_trace_makes_the_accesses_that_were_declared():
    program = example()
    again = program_of(trace_of(program))
    for array, found in zip(program.arrays, again.arrays, strict=True):
        assert found.phases == program.phases_of(array)
        for phase in program.phases_of(array):
            wanted = program.accesses(array, phase)
            made = again.accesses(found, phase)
            assert len(wanted) == len(made)
            for (access, written), (other, was) in zip(wanted, made, strict=True):
                assert type(access) is type(other)
                assert isinstance(access, Atomic) or written == was
                assert other.elements(MIB) == pytest.approx(access.elements(MIB), rel=0.01)


def test_a_phase_may_access_nothing():
    data = ProgramArray(name="data", shape=4, phases=("first",), reads=Stream(1))
    program = Program(name="p", arrays=[data], phases=[Phase(name="first"), Phase(name="wait")])
    assert [s.phase for s in trace_of(program).steps if isinstance(s, Launch)] == ["first"]


def test_arrays_live_in_their_phases():
    steps = trace_of(example()).steps
    kinds = [s.phase if isinstance(s, Launch) else type(s) for s in steps]
    assert kinds.count("first") == 5
    assert kinds.count("second") == 20
    assert [s.array for s in steps if isinstance(s, Free)] == [3]
    assert [s.array for s in steps if isinstance(s, Allocate)] == [2]
    assert isinstance(steps[-1], HostTouches)
    assert set(steps[-1].touches.array.tolist()) == {1}


def test_shares_keep_to_the_front_of_an_array():
    trace = trace_of(example())
    for number, most in ((1, 256), (4, 512)):
        ends = [
            int((t.first + t.length)[t.array == number].max())
            for t in (s.touches for s in trace.steps if isinstance(s, Launch))
            if (t.array == number).any()
        ]
        assert max(ends) <= most


def test_the_same_trace_twice():
    first, second = (trace_of(example()) for _ in range(2))
    for one, other in zip(first.steps, second.steps, strict=True):
        if isinstance(one, Launch):
            assert np.array_equal(one.touches.first, other.touches.first)


@pytest.mark.parametrize("name", BUILDERS)
def test_every_algorithm_is_planned_and_simulated(graph, name):
    program = program_for(name, graph)
    held = {array.name: array.size for array in program.arrays}
    assert held["targets"] == graph.n_arcs
    for share in ("100%", "50%"):
        plan = lu.plan(program, device_budget=share, machine="h200")
        assert max(plan.device_bytes.values()) <= plan.limit
    trace = trace_of(program)
    rows = {}
    for policy in ("auto", "base", "adv1"):
        point = Point(graph="g", policy=policy, oversubscription=0, gpu="h200")
        rows[policy] = replay(trace, point, H200)[0]
        assert rows[policy]["feasible"]
    assert rows["auto"]["seconds"] <= rows["base"]["seconds"]
    assert rows["base"]["evictions"] == 0
    assert rows["adv1"]["bytes_to_device"] == 0


def simulated(array, phase, capacity):
    program = Program(name="p", arrays=[array], phases=[phase])
    return simulate(trace_of(program), "h200", capacity=capacity, record=False)


@pytest.mark.parametrize("passes", [1, 4, 20, 7.5])
def test_a_stream_is_passed_over_as_often_as_declared(passes):
    data = ProgramArray(name="data", shape=16 * MIB, reads=Stream(20), from_host=1)
    run = simulated(data, Phase(name="run", passes=passes), 32 * MIB)
    # In the driver's order, half of the memory serves no pass: all blocks come again in each.
    assert run.total("touches") == 20 * 16384
    assert run.total("evictions") == 20 * 32 - 16
    assert run.bytes_to_device == 20 * 64 * MIB


@pytest.mark.parametrize("passes", [100, 640, 5000])
def test_a_stream_that_many_runs_share_is_passed_over_as_often(passes):
    data = ProgramArray(name="data", shape=16 * MIB, reads=Stream(20), from_host=1)
    run = simulated(data, Phase(name="run", passes=passes), 32 * MIB)
    assert run.total("evictions") == 20 * 32 - 16
    assert run.bytes_to_device == 20 * 64 * MIB
    assert run.costs["launch"] == pytest.approx(passes * H200.launch_seconds, rel=1e-3)
    assert run.costs["compute"] == pytest.approx(20 * 64 * MIB / H200.device_bandwidth, rel=0.01)


def test_runs_beyond_the_launches_of_a_trace_are_counted():
    data = ProgramArray(name="data", shape=4 * MIB, reads=Stream(640), from_host=1)
    phase = Phase(name="run", passes=640)
    trace = trace_of(Program(name="p", arrays=[data], phases=[phase]))
    assert len(trace.steps) == 64
    run = simulate(trace, "h200", capacity=8 * MIB)
    assert run.total("touches") == 640 * 4096
    assert run.total("evictions") == pytest.approx(640 * 8, rel=0.01)
    assert run.costs["launch"] == pytest.approx(640 * H200.launch_seconds)
    moved = run.events.total(Kind.HTOD)
    assert moved == run.bytes_to_device == pytest.approx(640 * 16 * MIB, rel=0.01)
    session = session_of(trace, run)
    assert session.events["rows"][session.events["kind"] == Kind.KERNEL].sum() == 640
    assert program_of(trace).phases[0].launches == 640


def test_gathers_are_in_random_order():
    pages, count = 16384, 400_000
    table = ProgramArray(name="table", shape=16 * MIB, reads=Gather(count), from_host=1)
    order = np.random.default_rng(1).integers(0, pages, count)
    array = Array(name="table", group="g", nbytes=64 * MIB)
    addresses = Trace((array,), (Launch(touches=Touches.runs(0, order, 1, Access.GATHER)),))
    for share in (0.7, 0.3):  # runs with almost enough memory scatter by seed
        capacity = int(share * 64 * MIB)
        run = simulated(table, Phase(name="run"), capacity)
        traced = simulate(addresses, "h200", capacity=capacity, record=False)
        assert run.total("touches") == count
        for name in ("faults", "evictions", "bytes_in_demand", "bytes_in_density"):
            assert run.total(name) == pytest.approx(traced.total(name), rel=0.03), name
        assert run.seconds == pytest.approx(traced.seconds, rel=0.03)
    assert run.total("evictions") > count / 4


@pytest.mark.deep
def test_of_many_gathers_a_sample_stands_for_the_rest(monkeypatch):
    table = ProgramArray(name="table", shape=16 * MIB, reads=Gather(1e6), from_host=1)
    whole = simulated(table, Phase(name="run"), 32 * MIB)
    module = sys.modules["louvain_um.profiling.simulator.simulate"]
    monkeypatch.setattr(module, "SAMPLE", 1 << 16)
    sampled = simulated(table, Phase(name="run"), 32 * MIB)
    assert sampled.total("touches") == pytest.approx(1e6, rel=1e-3)
    for name in ("faults", "evictions", "bytes_in_density"):
        assert sampled.total(name) == pytest.approx(whole.total(name), rel=0.03), name
    assert sampled.seconds == pytest.approx(whole.seconds, rel=0.03)
    assert sampled.batches == pytest.approx(whole.batches, rel=0.03)


def test_random_accesses_that_all_hit_are_counted_at_once_as_one_by_one():
    here, other = (Array(name=name, group="g", nbytes=4 * MIB) for name in "ab")
    runs = Touches.at_random(0, 0, 700, Access.GATHER, 100_000)
    behind = Touches.at_random(1, 0, 1024, Access.SCATTER, 3000)
    steps = Launch(touches=Touches.runs(0, 0, 700)), Launch(touches=runs), Launch(touches=behind)
    # With access counters, which find nothing to count here, each access is looked at.
    ways = (None, Driver(access_counters=2**31 - 1))
    found = [simulate(Trace((here, other), steps), "h200", driver=driver) for driver in ways]
    assert found[0].total("touches") == 700 + 103_000
    for name in ("time", "kind", "address", "count"):
        assert np.array_equal(*(run.events[name] for run in found))
    assert np.array_equal(found[0].by_array, found[1].by_array)


def test_neighbouring_runs_of_random_accesses_share_a_sample(monkeypatch):
    array = Array(name="a", group="g", nbytes=64 * MIB)
    cuts = np.arange(0, 16384, 512)
    pieces = Touches.runs(0, cuts, 512, int(Access.GATHER) | SCATTERED, 125_000)
    module = sys.modules["louvain_um.profiling.simulator.simulate"]
    runs = []
    for sample in (1 << 30, 1 << 16):
        monkeypatch.setattr(module, "SAMPLE", sample)
        runs.append(simulate(Trace((array,), (Launch(touches=pieces),)), "h200"))
    for name in ("touches", "bytes_in_demand", "bytes_in_density"):
        assert runs[1].total(name) == pytest.approx(runs[0].total(name), rel=0.02), name
    assert runs[1].seconds == pytest.approx(runs[0].seconds, rel=0.02)


def test_the_command_line_plans_and_simulates_algorithms(tmp_path):
    from louvain_um.cli import app

    run = CliRunner().invoke
    graph = tmp_path / "g.mtx"
    assert run(app, ["generate", "rmat", "10", "-o", str(graph)]).exit_code == 0
    done = run(app, ["plan", "program", "pagerank", str(graph), "--device-budget", "50%",
                     "--json", "--machine", "h200"])  # fmt: skip
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["program"] == "pagerank"
    done = run(app, ["plan", "program", "bfs", str(graph), "--machine", "h200"])
    assert "next_front" in done.stdout
    trace = tmp_path / "bfs.npz"
    done = run(app, ["simulate", str(graph), "--program", "bfs", "--policies", "base,auto",
                     "--oversubscription", "0,50", "-o", str(trace), "--json"])  # fmt: skip
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["results"]) == 4
    assert {array.group for array in load_trace(trace).arrays} == {"graph", "result", "scratch"}
    swept = tmp_path / "swept"
    about = ["--program", "bfs", "--policies", "base,auto", "--oversubscription", "0"]
    done = run(app, ["sweep", str(graph), *about, "--machine", "p4000", "-o", str(swept), "-q"])
    assert done.exit_code == 0, done.output
    assert (swept / "report.html").stat().st_size


def stream_addresses(size, passes):
    """Return the addresses of passes over an array, one access a sector."""
    return np.tile(np.arange(0, size, 128), passes)


def frontiers(graph):
    """Yield the frontiers of a breadth-first search, and where their rows are among the targets."""
    offsets = graph.offsets.astype(np.int64)
    frontier = np.array([int(np.diff(offsets).argmax())])
    known = np.zeros(graph.n_vertices, bool)
    while len(frontier):
        known[frontier] = True
        degrees = offsets[frontier + 1] - offsets[frontier]
        before = np.cumsum(degrees) - degrees
        rows = np.repeat(offsets[frontier] - before, degrees) + np.arange(degrees.sum())
        yield frontier, degrees, rows
        frontier = np.flatnonzero(~known & np.isin(np.arange(len(known)), graph.targets[rows]))


def frontier_addresses(graph, begins):
    """Return what a search reads, vertex by vertex, and the frontier that it belongs to."""
    found, kernels = [], []
    for number, (frontier, degrees, rows) in enumerate(frontiers(graph)):
        vertex = np.repeat(np.arange(len(frontier)), degrees)
        order = np.concatenate([3 * np.arange(len(frontier)), 3 * vertex + 1, 3 * vertex + 2])
        reached = begins["distances"] + 4 * graph.targets[rows].astype(np.int64)
        at = np.concatenate(
            [begins["offsets"] + 8 * frontier, begins["targets"] + 4 * rows, reached]
        )
        found.append(at[np.argsort(order, kind="stable")])
        kernels += [f"frontier {number}"] * len(at)
    return np.concatenate(found), kernels


def compared(program, addresses, arrays, share, faults=0.02, moved=0.02, least=0, **how):
    """Compare faults and bytes of a declared program and of the addresses that it accesses."""
    trace = trace_of(program)
    traced = trace_of_addresses(addresses, arrays=arrays, **how)
    capacity = int(share * trace.peak_bytes)
    one, other = (simulate(each, "h200", capacity=capacity, record=False)
                  for each in (trace, traced))  # fmt: skip
    assert (one.total("evictions") > 0) == (share < 1)
    assert one.total("faults") == pytest.approx(other.total("faults"), rel=faults, abs=least)
    assert one.bytes_to_device == pytest.approx(other.bytes_to_device, rel=moved)
    assert one.bytes_to_host == pytest.approx(other.bytes_to_host, rel=moved)


@pytest.mark.parametrize("share", [1, 0.5])
def test_a_stream_and_its_addresses_fault_alike(share):
    data = ProgramArray(name="data", shape=8 * MIB, reads=Stream(3), from_host=1)
    program = Program(name="p", arrays=[data], phases=[Phase(name="run", passes=3)])
    compared(program, stream_addresses(32 * MIB, 3), {"data": (0, 32 * MIB)}, share)


# With almost enough memory, runs scatter by seed.
@pytest.mark.parametrize(("share", "faults"), [(1, 0.02), (0.3, 0.03)])
def test_a_gather_and_its_addresses_fault_alike(share, faults):
    count = 200_000
    table = ProgramArray(name="table", shape=8 * MIB, reads=Gather(count), from_host=1)
    program = Program(name="p", arrays=[table], phases=[Phase(name="run")])
    addresses = np.random.default_rng(0).integers(0, 32 * MIB, count)
    compared(program, addresses, {"table": (0, 32 * MIB)}, share, faults)


@pytest.mark.parametrize("share", [1, 0.5])
def test_a_stencil_and_its_addresses_fault_alike(share):
    size, sweeps = 16 * MIB, 4
    arrays = [
        ProgramArray(name="before", shape=4 * MIB, reads=Stream(sweeps), from_host=1),
        ProgramArray(name="after", shape=4 * MIB, writes=Stream(sweeps), from_host=1),
    ]
    program = Program(name="p", arrays=arrays, phases=[Phase(name="run", passes=sweeps)])
    at, row = np.arange(0, size, 1024), 1024
    around = np.stack([np.maximum(at - row, 0), at, np.minimum(at + row, size - row), size + at])
    addresses = np.tile(around.T.ravel(), sweeps)
    places = {"before": (0, size), "after": (size, size)}
    compared(program, addresses, places, share, writes=addresses >= size)


@pytest.mark.parametrize(
    ("share", "faults", "moved"),
    # Pages that a frontier leaves out come by density in evicted blocks; a stream has none.
    [(1, 0.02, 0.02), pytest.param(0.5, 0.2, 0.4, marks=pytest.mark.deep)],
)
def test_a_breadth_first_search_and_its_addresses_fault_alike(share, faults, moved):
    graph = rmat(16, seed=1).graph
    sizes = {"offsets": 8 * (graph.n_vertices + 1), "targets": 4 * graph.n_arcs,
             "distances": 4 * graph.n_vertices}  # fmt: skip
    places, begin = {}, 0
    for name, size in sizes.items():
        places[name] = begin, size
        begin += -(-size // BLOCK_BYTES) * BLOCK_BYTES
    addresses, kernels = frontier_addresses(graph, {name: at for name, (at, _) in places.items()})
    # A frontier reads whole pages, of which rows are parts.
    waves = [(len(np.unique(8 * frontier // 4096)), len(np.unique(4 * rows // 4096)))
             for frontier, _, rows in frontiers(graph)]  # fmt: skip
    visits = 4096 * np.sum(waves, axis=0) / [sizes["offsets"], sizes["targets"]]
    arrays = [
        ProgramArray(name="offsets", shape=graph.n_vertices + 1, dtype="u8", from_host=1,
                     reads=Stream(visits[0])),
        ProgramArray(name="targets", shape=graph.n_arcs, from_host=1, reads=Stream(visits[1])),
        ProgramArray(name="distances", shape=graph.n_vertices, from_host=1,
                     reads=Gather(graph.n_arcs)),
    ]  # fmt: skip
    program = Program(name="bfs", arrays=arrays, phases=[Phase(name="run", passes=visits[1])])
    batch = Driver().batch_size  # of which faults of so few blocks are multiples, nearly
    compared(program, addresses, places, share, faults, moved, least=batch, kernels=kernels)
