"""What of CUPTI and NVML can be tested without a GPU: records, clocks, refusals."""

import ctypes
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from louvain_um.profiling import Session
from louvain_um.profiling.session.events import Cause, Kind, Source
from louvain_um.profiling.sources import cupti
from louvain_um.profiling.sources.cupti import ANOTHER_PROFILER, REMEDIES, Cupti, Library
from louvain_um.profiling.sources.cupti_records import (
    CONCURRENT_KERNEL,
    KINDS,
    MEMCPY,
    OVERHEAD,
    UNIFIED_MEMORY,
    decode,
    demangle,
    short_name,
    split,
)
from louvain_um.profiling.sources.nvml import Nvml
from louvain_um.profiling.sources.source import SessionClock, SourceUnavailableError

SIZES = {UNIFIED_MEMORY: 104, CONCURRENT_KERNEL: 216, MEMCPY: 96, OVERHEAD: 56, 99: 32}


def record(kind, **fields):
    """Return a record: each field is offset, type and value (cupti_activity.h of CUDA 13)."""
    raw = np.zeros(SIZES[kind], np.uint8)
    raw[:4].view(np.uint32)[0] = kind
    for offset, form, value in fields.values():
        item = np.dtype(form).itemsize
        raw[offset : offset + item].view(form)[0] = value
    return raw.tobytes()


def counter(kind, value, start, end, address, flags, sender=0, receiver=0):
    return record(
        UNIFIED_MEMORY,
        counter=(4, "u4", kind),
        value=(8, "u8", value),
        start=(16, "u8", start),
        end=(24, "u8", end),
        address=(32, "u8", address),
        sender=(40, "u4", sender),
        receiver=(44, "u4", receiver),
        flags=(56, "u4", flags),
    )


NAME = ctypes.create_string_buffer(b"_Z5sweepILi3EjEvPT0_S1_")


def buffer(*records):
    """Return a buffer of records, its valid bytes, and the bytes of the record at an offset."""
    ends = np.cumsum([len(each) for each in records])
    starts = [0, *ends[:-1]]
    raw = np.zeros(int(ends[-1]) + 512, np.uint8)
    raw[: ends[-1]] = np.frombuffer(b"".join(records), np.uint8)
    lengths = {int(at): len(each) for at, each in zip(starts, records, strict=True)}
    return raw, int(ends[-1]), lengths


def test_records_of_several_kinds_become_events():
    raw, valid, lengths = buffer(
        counter(Kind.HTOD, 65536, 100, 150, 1 << 21, Cause.PREFETCH),
        record(
            CONCURRENT_KERNEL,
            start=(16, "u8", 90),
            end=(24, "u8", 190),
            name=(104, "u8", ctypes.addressof(NAME)),
        ),
        record(99),  # an unrequested kind is skipped
        counter(Kind.GPU_FAULT_GROUP, 7, 95, 99, 4096, 1),
        counter(Kind.CPU_FAULT, 0x55AA, 50, 0, 8192, 2),
        counter(Kind.REMOTE_MAP, 4096, 60, 0, 12288, 3),
        record(
            MEMCPY,
            copy=(4, "u1", 2),
            bytes=(8, "u8", 400),
            start=(16, "u8", 200),
            end=(24, "u8", 210),
        ),
        record(OVERHEAD, start=(24, "u8", 10), end=(32, "u8", 25)),
    )
    sizes = np.zeros(KINDS, np.int64)
    learnt = []

    def learn(at):
        learnt.append(at)
        return lengths[at]

    offsets, kinds = split(raw, valid, sizes, learn)
    assert offsets.tolist() == list(lengths)
    assert len(learnt) == len(set(kinds))  # each kind's size is asked for once
    events, overhead = decode(raw, offsets, kinds)
    assert overhead == 15
    assert set(events["source"]) == {Source.CUPTI}
    found = {Kind(int(k)): i for i, k in enumerate(events["kind"])}
    row = {name: events[name][found[Kind.HTOD]] for name in ("time", "duration", "bytes", "cause")}
    assert row == {"time": 100, "duration": 50, "bytes": 65536, "cause": Cause.PREFETCH}
    assert events.kernels == ("sweep<3, unsigned int>",)
    assert events["duration"][found[Kind.KERNEL]] == 100
    assert events["kernel"][found[Kind.HTOD]] == -1
    assert events["count"][found[Kind.GPU_FAULT_GROUP]] == 7
    assert events["bytes"][found[Kind.GPU_FAULT_GROUP]] == 0
    # A fault of the CPU carries an address of code, which is neither bytes nor a duration.
    fault = found[Kind.CPU_FAULT]
    assert (events["count"][fault], events["bytes"][fault], events["duration"][fault]) == (1, 0, 0)
    assert events["cause"][found[Kind.REMOTE_MAP]] == Cause.UNKNOWN
    assert events["bytes"][found[Kind.COPY_TO_HOST]] == 400


HOST = 0xFFFF_FFFF
"""Stands for the CPU; no event is of it."""


def test_events_have_the_number_of_their_gpu():
    ends = {
        Kind.HTOD: (HOST, 3), Kind.DTOH: (4, HOST), Kind.DTOD: (4, 5),
        Kind.GPU_FAULT_GROUP: (6, HOST), Kind.THROTTLING: (6, HOST), Kind.REMOTE_MAP: (7, HOST),
        Kind.THRASHING: (0b11, HOST), Kind.CPU_FAULT: (HOST, HOST),
    }  # fmt: skip
    raw, valid, lengths = buffer(
        *(counter(kind, 1, 1, 2, 4096, 0, *each) for kind, each in ends.items()),
        record(CONCURRENT_KERNEL, device=(40, "u4", 8)),
        record(MEMCPY, device=(32, "u4", 9)),
    )
    offsets, kinds = split(raw, valid, np.zeros(KINDS, np.int64), lengths.get)
    events, _ = decode(raw, offsets, kinds, device=2)
    assert dict(zip(events["kind"], events["device"], strict=True)) == {
        Kind.HTOD: 3, Kind.DTOH: 4, Kind.DTOD: 5, Kind.GPU_FAULT_GROUP: 6, Kind.THROTTLING: 6,
        Kind.REMOTE_MAP: 7, Kind.THRASHING: 2, Kind.CPU_FAULT: 2, Kind.KERNEL: 8, Kind.COPY: 9,
    }  # fmt: skip


def test_a_buffer_that_cannot_be_read_is_left_in_peace():
    raw, valid, _ = buffer(counter(Kind.HTOD, 1, 1, 2, 3, 2), record(99))
    offsets, _ = split(raw, valid, np.zeros(KINDS, np.int64), lambda at: 104 if at == 0 else 0)
    assert offsets.tolist() == [0]


def test_names_of_kernels_are_short():
    assert short_name("void a::f<int, (bool)1>(T*, int (*)(int))") == "a::f<int, (bool)1>"
    assert short_name("cupy_add__int64_int64") == "cupy_add__int64_int64"
    assert demangle(b"plain") == "plain"
    assert demangle(b"_Znonsense") == "_Znonsense"


def test_a_library_that_is_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("LOUVAIN_UM_CUPTI", "/nowhere/libcupti.so")
    with pytest.raises(SourceUnavailableError, match="pip install nvidia-cuda-cupti"):
        Library()
    broken = tmp_path / "libcupti.so"
    broken.write_text("no library")
    monkeypatch.setenv("LOUVAIN_UM_CUPTI", str(broken))
    with pytest.raises(SourceUnavailableError, match=r"libcupti\.so"):
        Library()


class Refusing:
    """A libcupti that refuses with one status."""

    def __init__(self, status):
        self.status = status

    def __getattr__(self, name):
        if name == "cuptiGetResultString":
            return self.text
        if name.startswith("cupti"):
            function = SimpleNamespace(argtypes=None)
            return Call(self.status) if function else None
        raise AttributeError(name)

    @staticmethod
    def text(status, pointer):
        ctypes.cast(pointer, ctypes.POINTER(ctypes.c_char_p))[0] = b"CUPTI_ERROR_SOMETHING"
        return 0


class Call:
    argtypes: Any = None

    def __init__(self, status):
        self.status = status

    def __call__(self, *args):
        return self.status


@pytest.mark.parametrize("status", [*REMEDIES, 999])
def test_every_refusal_says_what_to_do(monkeypatch, status):
    monkeypatch.setattr(cupti, "_open", lambda: ("stub", Refusing(status)))
    loaded = Library()
    with pytest.raises(SourceUnavailableError) as error:
        loaded.check("ActivityEnable", 25)
    text = str(error.value)
    assert text.startswith("CUPTI: ")
    assert "\n" not in text
    if status == ANOTHER_PROFILER:
        assert "nsys" in text
    if status == 999:
        assert "CUPTI_ERROR_SOMETHING" in text


def test_times_follow_the_session_s_clock():
    source = Cupti()
    source._pairs = [(1_000_000_000, 50)]
    assert source._convert(np.array([1_000_000_000, 1_000_000_200])).tolist() == [50, 250]
    # Their clock runs 1 in 10⁶ faster than ours.
    source._pairs.append((11_000_000_000, 50 + 9_999_990_000))
    assert source._convert(np.array([11_000_000_000])).tolist() == [9_999_990_050]


class FakeNvml:
    def __init__(self, *, energy=True, power=True, status=0, step=1e-5):
        self.energy, self.power, self.status, self.step = energy, power, status, step
        self.began = time.perf_counter()

    NVML_ERROR_NO_PERMISSION = 4
    NVML_ERROR_LIBRARY_NOT_FOUND = 12

    class NVMLError(Exception):
        def __init__(self, value):
            super().__init__(f"status {value}")
            self.value = value

    def nvmlInit(self):  # noqa: N802
        if self.status:
            raise self.NVMLError(self.status)

    def nvmlShutdown(self):  # noqa: N802
        pass

    def nvmlDeviceGetHandleByPciBusId(self, bus):  # noqa: N802
        if bus != "0000:01:00.0":
            raise self.NVMLError(6)
        return bus

    def nvmlDeviceGetTotalEnergyConsumption(self, device):  # noqa: N802
        if not self.energy:
            raise self.NVMLError(3)
        steps = int((time.perf_counter() - self.began) / self.step)
        return round(steps * self.step * 1e5)

    def nvmlDeviceGetPowerUsage(self, device):  # noqa: N802
        if not self.power:
            raise self.NVMLError(3)
        return 100_000


@pytest.mark.parametrize(("energy", "counter"), [(True, "total energy"), (False, "integrated")])
def test_energy_is_counted_or_integrated(energy, counter):
    source = Nvml("0000:01:00.0", FakeNvml(energy=energy), period=0.005)
    source.start(SessionClock())
    time.sleep(0.1)
    source.stop()
    found = source.energy()
    assert found["counter"].startswith(counter)
    assert found["joules"] == pytest.approx(100 * found["seconds"], rel=0.05)
    assert len(found["watts"]) == len(found["times_ns"]) > 3


def test_energy_that_is_not_reported_is_not_made_up(monkeypatch):
    with pytest.raises(SourceUnavailableError, match="neither energy nor power"):
        Nvml("0000:01:00.0", FakeNvml(energy=False, power=False)).start(SessionClock())
    with pytest.raises(SourceUnavailableError, match="root"):
        Nvml("0000:01:00.0", FakeNvml(status=4)).start(SessionClock())
    with pytest.raises(SourceUnavailableError, match="status 6"):
        Nvml("0000:02:00.0", FakeNvml()).start(SessionClock())
    with pytest.raises(SourceUnavailableError, match="driver"):
        Nvml("0000:01:00.0", FakeNvml(status=12)).start(SessionClock())
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(SourceUnavailableError, match="pip install"):
        Nvml("0000:01:00.0").start(SessionClock())


def test_a_run_too_short_for_the_counter_cost_no_zero_joules():
    source = Nvml("0000:01:00.0", FakeNvml(step=1000.0))
    source.start(SessionClock())
    source.stop()
    assert source.energy() is None
    assert "energy is not known" in source.notes[0]
    recorded = Session(energy={"joules": 0.0, "seconds": 0.01})  # before that was seen to
    assert recorded.summary()["joules"] is None
    assert "0.0 J" not in str(recorded)


def test_samples_stay_few(monkeypatch):
    monkeypatch.setattr("louvain_um.profiling.sources.nvml.MOST_SAMPLES", 20)
    source = Nvml("0000:01:00.0", FakeNvml(), period=0.0005)
    source.start(SessionClock())
    time.sleep(0.1)
    source.stop()
    assert len(source.samples) < 20
    assert source.period > 0.0005
