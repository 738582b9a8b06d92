"""Counts of kernels whose accesses are known, and of the engine's by its own arithmetic."""

from pathlib import Path

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.core import rules
from louvain_um.errors import LouvainUmError
from louvain_um.events import Event
from louvain_um.gpu.runtime.compile import Kernels
from louvain_um.placement.program import Gather, Phase, Stream
from louvain_um.profiling.access.recordings import of_session
from louvain_um.profiling.session.events import PHASES, Source
from louvain_um.profiling.sources.tracer import AccessCounts, Tracer
from louvain_um.profiling.sources.tracer.snippet import USES

pytestmark = pytest.mark.gpu


N = 1000
PAGE = 4096
SOURCES = Kernels(
    Path(__file__).parent, lambda source, types: {"forms": ["touch"], "unknown": ["shout"]}[source]
)
ARRAYS = {
    "reads": 4 * (N + 1),
    "wide": 16 * N,
    "writes": 4 * N,
    "pairs": 8 * N,
    "sums": 4 * (N + 2),
    "sums64": 8 * (N + 1),
    "guarded": 4 * (N + 1),
    "mixed": 4 * N,
    "copied": 16 * N,
    "bulk": 1 << 15,
    "strided": PAGE * N,
    "hidden": 4 * N,
    "one": 8,
}
"""The arguments of the kernel and their bytes."""

THIRDS = -(-N // 3)
EXPECTED = {
    "reads": AccessCounts(reads=5 * N),
    "wide": AccessCounts(reads=N),
    "writes": AccessCounts(writes=3 * N),
    "pairs": AccessCounts(writes=N),
    "sums": AccessCounts(atomics=4 * N),
    "sums64": AccessCounts(atomics=2 * N),
    "guarded": AccessCounts(reads=THIRDS, writes=N - THIRDS),
    "mixed": AccessCounts(reads=N // 2),
    "copied": AccessCounts(reads=N),
    "bulk": AccessCounts(writes=3),
    "strided": AccessCounts(writes=N),
    "one": AccessCounts(reads=1, writes=1),
}


@pytest.fixture(autouse=True)
def _cache(gpu, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("LOUVAIN_UM_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def touch(launches=1, **options):
    """Return what a tracer saw of the kernel, and its arrays."""
    import cupy

    # All in one piece of memory, so that arrays share pages; only "hidden" is not declared.
    starts = np.cumsum([0, *(-(-size // 256) * 256 for size in ARRAYS.values())])
    whole = cupy.zeros(int(starts[-1]), np.uint8)
    arrays = {
        name: whole[start : start + size]
        for (name, size), start in zip(ARRAYS.items(), starts, strict=False)
    }
    if cupy.cuda.Device().compute_capability < "90":
        pytest.skip("bulk copies need a device of generation 9.0")
    with Tracer(**options) as tracer:
        for name, array in arrays.items():
            if name != "hidden":
                tracer.observe(
                    Event(
                        kind="array", name=name, group="graph", address=array.data.ptr,
                        nbytes=array.nbytes,
                    )
                )  # fmt: skip
        kernel = tracer.instrument(SOURCES).get("forms", "touch")
        tracer.observe(Event(kind="start", phase="move", level=3))
        for _ in range(launches):
            kernel((4,), (256,), (np.uint32(N), *arrays.values()))
        tracer.observe(Event(kind="end", phase="move", level=3))
    return tracer.result(), arrays


@pytest.mark.parametrize("period", [0, 7])
def test_every_form_of_access_is_counted_exactly(period):
    trace, _ = touch(period=period)
    assert trace.counts == EXPECTED
    assert trace.elsewhere == AccessCounts(writes=N)
    assert any("1,000 accesses" in note and "in no array" in note for note in trace.notes)


def test_the_kernel_does_what_it_does_without():
    import cupy

    _, traced = touch()
    plain = {name: cupy.zeros(size, np.uint8) for name, size in ARRAYS.items()}
    SOURCES.get("forms", "touch")((4,), (256,), (np.uint32(N), *plain.values()))
    for name, array in plain.items():
        assert np.array_equal(array.get(), traced[name].get()), name


def test_pages_and_times_add_up():
    trace, _ = touch(launches=3)
    maps = {page.array: page for page in trace.maps}
    assert {name: page.total for name, page in maps.items()} == {
        name: 3 * uses.total for name, uses in EXPECTED.items()
    }
    assert maps["strided"].page_bytes == PAGE
    assert maps["strided"].counts.sum(axis=1).tolist() == [3] * N
    assert maps["bulk"].counts.sum(axis=1).tolist() == [3, 3, 3, 0, 0, 0, 0, 0]
    assert maps["wide"].counts.sum(axis=1).tolist() == [768, 768, 768, 696]
    for page in maps.values():
        assert page.edges[0] >= 0
        assert (np.diff(page.edges) > 0).all()


def test_rows_tell_array_phase_and_level():
    trace, arrays = touch()
    events = trace.events
    found = dict(zip(events["address"].tolist(), events["count"].tolist(), strict=True))
    assert found == {0: N} | {
        array.data.ptr: EXPECTED[name].total for name, array in arrays.items() if name != "hidden"
    }
    assert set(events["phase"].tolist()) == {PHASES.index("move")}
    assert set(events["level"].tolist()) == {3}


def test_few_counters_make_large_pages_and_lose_nothing():
    trace, _ = touch(counter_bytes=1 << 16, bins=16)
    maps = {page.array: page for page in trace.maps}
    assert trace.counts == EXPECTED
    assert {name: page.total for name, page in maps.items()} == {
        name: uses.total for name, uses in EXPECTED.items()
    }
    assert maps["strided"].page_bytes > PAGE
    assert sum(page.counts.nbytes for page in maps.values()) <= 1 << 16


def test_a_log_of_everything_and_one_that_is_full():
    trace, arrays = touch(period=1, records=1 << 16)
    total = sum(uses.total for uses in EXPECTED.values()) + N
    # The log is of instructions: a bulk copy is sampled with each page that it counts in.
    assert len(trace.log) == total
    assert trace.dropped == 0
    strided = arrays["strided"].data.ptr
    mine = trace.log[(trace.log["address"] - np.uint64(strided)) < ARRAYS["strided"]]
    assert sorted(mine["address"]) == [strided + PAGE * i for i in range(N)]
    assert {USES[use] for use in mine["use"]} == {"write"}
    assert {trace.kernels[kernel] for kernel in mine["kernel"]} == {trace.kernels[1]}
    assert int(trace.log["time"].astype(np.int64).min()) > 0

    trace, _ = touch(period=1, records=100)
    assert len(trace.log) == 100
    assert trace.dropped == total - 100


def test_a_sample_is_about_one_in_so_many():
    trace, _ = touch(launches=20, period=16)
    total = 20 * (sum(uses.total for uses in EXPECTED.values()) + N)
    assert 0.8 < len(trace.log) * 16 / total < 1.25


def test_bins_are_joined_when_time_runs_on(monkeypatch):
    trace, _ = touch(launches=200, bins=4, seconds=1e-6)
    assert trace.counts == {
        name: AccessCounts(*(200 * count for count in uses)) for name, uses in EXPECTED.items()
    }
    assert all(
        page.total == 200 * EXPECTED[page.array].total and page.counts.shape[1] <= 4
        for page in trace.maps
    )


def test_a_kernel_with_unknown_instructions_is_left_and_named():
    import cupy

    with Tracer() as tracer:
        out = cupy.zeros(1, np.uint32)
        tracer.instrument(SOURCES).get("unknown", "shout")((1,), (1,), (out,))
        assert out.get()[0] == 1
    assert tracer.register.left == {"unknown.cu: shout": "call of vprintf"}


def test_counting_ends_with_the_tracer():
    with Tracer() as tracer:
        kernel = tracer.instrument(SOURCES).get("unknown", "shout")
    del kernel
    import cupy

    with Tracer() as tracer:
        kernel = tracer.instrument(SOURCES).get("forms", "touch")
    arrays = [cupy.zeros(size, np.uint8) for size in ARRAYS.values()]
    with pytest.raises(LouvainUmError, match="after its tracer stopped"):
        kernel((4,), (256,), (np.uint32(N), *arrays))


def torus(side):
    v = np.arange(side * side)
    right, down = v // side * side + (v + 1) % side, (v + side) % (side * side)
    return lu.Graph.from_edges(np.concatenate([v, v]), np.concatenate([right, down]))


def planted(weighted):
    rng = np.random.default_rng(3)
    ends = rng.integers(0, 20, (60_000, 2)) + 20 * rng.integers(0, 300, (60_000, 1))
    hub = np.stack([np.zeros(3000, np.int64), rng.permutation(6000)[:3000]], axis=1)
    pairs = np.concatenate([ends, hub])
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    weights = rng.integers(1, 9, len(pairs)) if weighted else None
    return lu.Graph.from_edges(pairs[:, 0], pairs[:, 1], weights)


@pytest.mark.parametrize(("weighted", "detect"), [(False, lu.louvain), (True, lu.leiden)])
def test_labels_are_the_same(detect, weighted):
    graph = planted(weighted)
    expected = detect(graph, device="cuda")
    with Tracer() as tracer:
        found = detect(graph, device="cuda", observer=tracer.observe)
    assert np.array_equal(found.labels, expected.labels)
    trace = tracer.result()
    assert trace.counts["targets.0"].reads >= graph.n_arcs
    assert trace.elsewhere.total <= 0.001 * sum(uses.total for uses in trace.counts.values())
    assert {page.array: page.total for page in trace.maps} == {
        name: uses.total for name, uses in trace.counts.items() if uses.total
    }
    assert sum(trace.events["count"]) == trace.elsewhere.total + sum(
        uses.total for uses in trace.counts.values()
    )


def test_reads_of_targets_are_the_arcs_that_moving_visits():
    """Deciding reads the target of each visited arc once, waking those of each vertex moved."""
    graph = torus(64)
    seen = list[Event]()
    with Tracer() as tracer:

        def observer(event):
            seen.append(event)
            tracer.observe(event)

        found = lu.louvain(graph, device="cuda", max_level=1, observer=observer)
    moved = sum(
        event.moved
        for event in seen
        if event.kind == "iteration" and rules.prunes(True, event.iteration)
    )
    where = next(e.address for e in seen if e.kind == "array" and e.name == "targets.0")
    events = tracer.result().events
    rows = (
        (events["address"] == where)
        & (events["phase"] == PHASES.index("move"))
        & (events["level"] == 0)
    )
    assert events["count"][rows].sum() == found.levels[0].arcs_visited + 4 * moved


@pytest.mark.parametrize("weighted", [False, True])
def test_bytes_read_in_place_are_those_that_were_traced(weighted):
    graph = planted(weighted)
    addresses = dict[str, int]()
    with Tracer() as tracer:

        def observer(event):
            if event.kind == "array":
                addresses[event.name] = event.address
            tracer.observe(event)

        found = lu.louvain(graph, device="cuda", memory="zero_copy", max_level=1, observer=observer)
    events = tracer.result().events
    moving = (events["phase"] == PHASES.index("move")) & (events["level"] == 0)
    widths = {"targets.0": 4}
    if graph.weights is not None:
        widths["weights.0"] = graph.weights.itemsize
    counted = {
        row["array"]: row["bytes"]
        for row in found.provenance["read_in_place"]
        if row["phase"] == "move" and row["level"] == 0
    }
    for name, width in widths.items():
        traced = width * events["count"][moving & (events["address"] == addresses[name])].sum()
        assert counted[name] == pytest.approx(traced, rel=0.02)


def test_a_session_knows_whose_accesses_they_are():
    from louvain_um.profiling import profile

    session = profile(planted(False), device="cuda", memory="device", sources=(), tracer=True)
    rows = session.events["source"] == Source.TRACER
    owners = session.event_arrays()[rows]
    counts = session.events["count"][rows]
    assert counts[owners < 0].sum() <= 0.001 * counts.sum()
    found = {}
    for owner, count in zip(owners.tolist(), counts.tolist(), strict=True):
        if owner >= 0:
            name = session.lifetimes[owner].name
            found[name] = found.get(name, 0) + count
    assert found == {page.array: page.total for page in session.maps}
    assert session.metadata["sources"]["tracer"] == "measured"


COUNT = 1 << 20

SOURCE = r"""
extern "C" __global__ void twice(const float* x, float* y, unsigned long long count) {
  unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  if (i < count) y[i] = 2 * x[i];
}
extern "C" __global__ void pick(const unsigned* at, const float* x, float* y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[at[i] % 524288u];
}
"""


def launched(kernel, *args):
    kernel((COUNT // 256,), (256,), args)


def test_kernels_of_any_kind_are_counted_by_array(gpu):
    import cupy

    old = cupy.RawKernel(SOURCE, "twice")
    scale = cupy.ElementwiseKernel("float32 x", "float32 y", "y = 3 * x", "scale_by_three")
    x, y = (cupy.arange(COUNT, dtype=np.float32) for _ in range(2))
    launched(old, x, y, np.uint64(COUNT))
    scale(x, y)
    with Tracer(programs=True) as tracer, lu.Placer(device=gpu.index) as place:
        from louvain_um.events import observing

        with observing(tracer.observe):
            a = place.array("a", COUNT, source=np.arange(COUNT, dtype=np.float32), reads=Stream())
            b = place.array("b", COUNT, writes=Stream())
            place.solve()
            with place.phase("iterate"):
                launched(old, a, b, np.uint64(COUNT))
                scale(a, b)
                new = cupy.RawModule(code=SOURCE).get_function("twice")
                launched(new, a, b, np.uint64(COUNT))
                assert np.array_equal(b.get(), 2 * np.arange(COUNT, dtype=np.float32))
    counts = tracer.result().counts
    assert (counts["a"].reads, counts["a"].writes) == (3 * COUNT, 0)
    assert (counts["b"].reads, counts["b"].writes) == (0, 3 * COUNT)
    launched(old, x, y, np.uint64(COUNT))
    launched(new, x, y, np.uint64(COUNT))
    scale(x, y)
    assert np.array_equal(y.get(), 3 * np.arange(COUNT, dtype=np.float32))


def test_a_recorded_program_becomes_a_trace(gpu):
    import cupy

    kernel = cupy.RawKernel(SOURCE, "twice")
    with lu.recording(tracer=True, sources=()) as run, lu.Placer(device=gpu.index) as place:
        x = place.array("x", COUNT, group="mine", source=np.ones(COUNT, np.float32))
        y = place.array("y", COUNT, group="mine")
        with place.phase("iterate"):
            launched(kernel, x, y, np.uint64(COUNT))
    session = run.session
    assert {life.name: life.group for life in session.lifetimes} == {"x": "mine", "y": "mine"}
    trace = of_session(session)
    assert {array.name: array.starts for array in trace.arrays} == {"x": "host", "y": "nowhere"}
    assert {step.phase for step in trace.steps} == {"iterate"}


def test_a_placer_learns_accesses(gpu):
    import cupy

    kernel = cupy.RawKernel(SOURCE, "pick")
    rng = np.random.default_rng(0)
    phases = [Phase(name="iterate", passes=10)]
    with lu.Placer(device=gpu.index, phases=phases) as place:
        at = place.array("at", COUNT, np.uint32, source=rng.integers(0, 1 << 32, COUNT, np.uint32))
        x = place.array("x", COUNT, source=np.arange(COUNT, dtype=np.float32))
        y = place.array("y", COUNT)
        with place.learn("iterate", Tracer(programs=True)):
            launched(kernel, at, x, y)
        specs = {name: slot.spec for name, slot in place.slots.items()}
        (streamed,) = specs["at"].reads["iterate"]
        assert isinstance(streamed, Stream)
        assert streamed.passes == pytest.approx(10)
        (gathered,) = specs["x"].reads["iterate"]
        assert isinstance(gathered, Gather)
        assert gathered.count == 10 * COUNT
        assert gathered.share == pytest.approx(0.5, abs=0.02)
        assert specs["y"].writes["iterate"][0].passes == pytest.approx(10)
        with place.phase("iterate"):
            launched(kernel, at, x, y)
            assert float(y[0]) == float(at[0] % 524288)
