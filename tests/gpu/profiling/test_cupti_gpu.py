"""Sources on a real device: every byte is accounted for, kernels are named, clocks agree."""

import ctypes
import time

import numpy as np
import pytest

import louvain_um as lu
from louvain_um import generators
from louvain_um.profiling import load, profile, recording
from louvain_um.profiling.session.events import Cause, Kind
from louvain_um.profiling.sources import cupti_records as records
from louvain_um.profiling.sources.cupti import Cupti, shared_buffers
from louvain_um.profiling.sources.uvm import Uvm

pytestmark = pytest.mark.gpu

NBYTES = 256 << 20
"""Managed memory of a test: far from what any device has."""

CODE = """
extern "C" __global__ void add_up(const unsigned* x, unsigned long long n, unsigned* out) {
    unsigned sum = 0;
    unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        sum += x[i];
    atomicAdd(out, sum);
}
template <class T> __global__ void scale(T* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
"""


@pytest.fixture(scope="module")
def kernels(gpu):
    cupy = pytest.importorskip("cupy")
    with gpu.current():
        return cupy.RawModule(code=CODE, name_expressions=["scale<float>"])


def managed():
    import cupy

    memory = cupy.cuda.malloc_managed(NBYTES)
    return cupy.ndarray((NBYTES // 4,), np.uint32, memory)


def on_host(array):
    pointer = (ctypes.c_uint32 * array.size).from_address(array.data.ptr)
    return np.ctypeslib.as_array(pointer)


def there_and_back(gpu, kernels, sources):
    """Write on the host, add up on the device, read on the host again."""
    import cupy

    with gpu.current():
        total = cupy.zeros(1, np.uint32)
        with recording(sources=sources) as run:
            array = managed()
            run.array("x", array, "scratch")
            with run.phase("fill"):
                on_host(array)[:] = 1
            with run.phase("add", level=3):
                kernels.get_function("add_up")((264,), (512,), (array, array.size, total))
                cupy.cuda.Device().synchronize()
            with run.phase("read"):
                assert int(on_host(array)[:: 4096 // 4].sum()) == NBYTES // 4096
        assert int(total[0]) == NBYTES // 4
    return run.session


@pytest.mark.alone
def test_the_driver_reports_every_byte(gpu, kernels):
    Uvm.check()
    session = there_and_back(gpu, kernels, ("uvm", "cupti", "nvml"))
    assert session.notes == ()
    events, about = session.events, session.metadata["about_sources"]["uvm"]
    assert events.total(Kind.HTOD) == events.total(Kind.DTOH) == NBYTES
    assert about["recorded"] == about["driver_totals"]
    assert about["dropped"] == 0
    assert session.unattributed == 0
    figures = session.summary()["by_group"]["scratch"]
    assert (figures["bytes_to_device"], figures["bytes_to_host"]) == (NBYTES, NBYTES)
    assert figures["gpu_faults"] >= figures["gpu_fault_groups"] > 0
    assert figures["cpu_faults"] > 0
    causes = set(events["cause"][events.where(Kind.HTOD)])
    assert causes <= {Cause.COHERENCE, Cause.PREFETCH}
    assert Cause.PREFETCH in causes


@pytest.mark.alone
def test_light_knows_the_same_totals(gpu, kernels):
    session = there_and_back(gpu, kernels, ("uvm-light",))
    figures = session.summary()
    assert (figures["bytes_to_device"], figures["bytes_to_host"]) == (NBYTES, NBYTES)
    assert figures["by_group"]["scratch"]["gpu_faults"] > 0
    assert figures["by_group"]["scratch"]["bytes_to_device"] is None
    assert session.events.total(Kind.HTOD) == 0
    assert len(session.notes) == 1


@pytest.mark.alone
def test_events_lie_in_the_phases_that_caused_them(gpu, kernels):
    session = there_and_back(gpu, kernels, ("uvm", "cupti"))
    events = session.events

    def phases(kind):
        rows = events["phase"][events.where(kind)]
        return {events.phases[phase] if phase >= 0 else "none" for phase in rows}

    assert phases(Kind.HTOD) == phases(Kind.GPU_FAULT_GROUP) == {"add"}
    assert phases(Kind.KERNEL) == {"add"}
    assert phases(Kind.DTOH) == {"read"}
    assert phases(Kind.CPU_FAULT) == {"fill", "read"}
    assert set(events["level"][events.where(Kind.KERNEL)]) == {3}
    kernel = events.select(events.where(Kind.KERNEL))
    assert [events.kernels[number] for number in kernel["kernel"]] == ["add_up"]
    # The kernel waits for its pages: they come while it runs, by both sources' clocks.
    start, end = kernel["time"][0], kernel["time"][0] + kernel["duration"][0]
    moved = events.select(events.where(Kind.HTOD))
    slack = 2_000_000
    assert moved["time"].min() > start - slack
    assert (moved["time"] + moved["duration"]).max() < end + slack


def test_cupti_alone_is_whole_or_says_what_it_lost(gpu, kernels):
    session = there_and_back(gpu, kernels, ("cupti",))
    about = session.metadata["about_sources"]["cupti"]
    counted = session.events.total(Kind.HTOD)
    assert 0 < counted <= NBYTES
    assert len(about["counters"]) >= 6
    assert about["recorded"]["bytes_to_device"] == counted
    if "driver_totals" in about and about["driver_totals"] != about["recorded"]:
        assert any("CUPTI recorded" in note for note in session.notes)
    elif "driver_totals" in about:
        assert session.notes == ()


def test_records_are_walked_as_cupti_walks_them(gpu, kernels, monkeypatch):
    walked, real = [], records.split

    def split(raw, valid, *rest):
        offsets, kinds = real(raw, valid, *rest)
        library = shared_buffers().library
        record, theirs = ctypes.c_void_p(0), []
        base = raw.ctypes.data
        while library.call("ActivityGetNextRecord", base, valid, ctypes.byref(record)) == 0:
            assert record.value is not None
            theirs.append(record.value - base)
        assert theirs == offsets.tolist()
        walked.extend(theirs)
        return offsets, kinds

    monkeypatch.setattr(records, "split", split)
    there_and_back(gpu, kernels, ("cupti",))
    assert len(walked) > 100


def test_kernels_and_copies_have_names_and_bytes(gpu, kernels):
    import cupy

    with gpu.current(), recording(sources=("cupti",)) as run:
        data = cupy.asarray(np.ones(1000, np.float32))
        kernels.get_function("scale<float>")((4,), (256,), (data, np.int32(1000)))
        data.get()
    events = run.session.events
    assert "scale<float>" in events.kernels
    assert events.total(Kind.COPY_TO_DEVICE) == events.total(Kind.COPY_TO_HOST) == 4000
    assert events.total(Kind.HTOD) == 0
    # What comes after belongs to no session.
    with gpu.current():
        cupy.asarray(np.ones(1000, np.float32))
        with recording(sources=("cupti",)) as run:
            pass
    assert len(run.session.events) == 0


def test_two_recordings_at_once_are_refused_and_the_first_goes_on(gpu, kernels):
    import cupy

    with gpu.current(), recording(sources=("cupti",)) as first:
        with recording(sources=("cupti",)) as second:
            pass
        cupy.asarray(np.ones(1000, np.float32))
    assert "recording" in second.session.metadata["sources"]["cupti"]
    assert first.session.events.total(Kind.COPY_TO_DEVICE) == 4000


@pytest.mark.alone
def test_a_detection_is_profiled(gpu, tmp_path):
    graph = generators.GENERATORS["lfr"](20_000).graph
    alone = lu.louvain(graph, device="cuda", memory="device")
    path = tmp_path / "run.npz"
    session = profile(graph, device="cuda", memory="device", save_to=path)
    about = session.metadata
    assert about["modularity"] == alone.modularity
    assert about["communities"] == alone.n_communities
    kernels = session.events.where(Kind.KERNEL)
    assert kernels.any()
    moving = session.events.phases.index("move")
    assert moving in set(session.events["phase"][kernels])
    unknown = any("energy is not known" in note for note in session.notes)
    assert unknown == (session.energy is None)  # of so short a run
    assert load(path).events.total(Kind.KERNEL, column="count") == kernels.sum()


@pytest.mark.alone
def test_energy_is_reported_of_half_a_second(gpu):
    graph = generators.GENERATORS["lfr"](20_000).graph
    with recording(sources=("nvml",)) as found:
        since = time.perf_counter()
        while time.perf_counter() < since + 0.5:
            lu.louvain(graph, device="cuda", memory="device")
    assert found.session.energy["joules"] > 1


def test_a_source_can_be_used_by_itself(gpu):
    with gpu.current():
        source = Cupti(gpu.index, counters=False)
        assert source.about
        assert source.counters == []
