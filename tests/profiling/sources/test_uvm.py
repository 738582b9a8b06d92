"""The driver's event queue without a driver: entries, the ring, refusals."""

import numpy as np
import pytest

from louvain_um.profiling.record.capture import Recording
from louvain_um.profiling.session.events import Cause, Kind, Source
from louvain_um.profiling.sources import uvm, uvm_driver
from louvain_um.profiling.sources.source import SessionClock, SourceUnavailableError
from louvain_um.profiling.sources.uvm import Totals, Uvm
from louvain_um.profiling.sources.uvm_driver import (
    COUNTERS,
    CPU_FAULT,
    DEVICE,
    ENTRY_BYTES,
    EVICTION,
    GPU_FAULT,
    MAP_REMOTE,
    MIGRATION,
    REPLAY,
    THRASHING,
    THROTTLING_END,
    THROTTLING_START,
    Decoder,
    EventQueue,
    NoAddressSpaceError,
    listen,
)

PAGE, REGION = 4096, 65536
BASE = 1 << 40


def entry(kind, **fields):
    """Return an entry: each field is offset, type and value (uvm_types.h, version 1)."""
    raw = np.zeros(ENTRY_BYTES, np.uint8)
    raw[0] = kind
    for offset, form, value in fields.values():
        raw[offset : offset + np.dtype(form).itemsize].view(form)[0] = value
    return raw


def migration(source, target, address, size, queued, start):
    return entry(
        MIGRATION,
        cause=(1, "u1", Cause.EVICTION if target == 0 else Cause.COHERENCE),
        source=(2, "u1", source),
        target=(3, "u1", target),
        address=(8, "u8", address),
        bytes=(16, "u8", size),
        queued=(24, "u8", queued),
        start=(48, "u8", start),
        end=(56, "u8", start + 40 if start else 0),
    )


def fault(batch, address, time):
    return entry(
        GPU_FAULT, address=(8, "u8", address), time=(16, "u8", time), batch=(32, "u4", batch)
    )


def replay(batch, time):
    return entry(REPLAY, batch=(4, "u4", batch), time=(8, "u8", time))


def test_migrations_have_direction_cause_and_the_gpu_s_time():
    early = 10**18  # the GPU's clock began long ago
    events = Decoder().decode(
        np.stack(
            [
                migration(0, 1, BASE, 2 * PAGE, 1000, early + 1005),
                migration(0, 1, BASE + REGION, PAGE, 1000, early + 1100),
                migration(1, 0, BASE, 2 << 20, 2000, early + 2030),
                migration(1, 2, BASE, PAGE, 3000, 0),  # without the GPU's clock
            ]
        )
    )
    assert set(events["source"]) == {Source.UVM}
    kinds = [Kind(int(kind)) for kind in events["kind"]]
    assert kinds == [Kind.HTOD, Kind.HTOD, Kind.DTOH, Kind.DTOD]
    assert events["time"].tolist() == [1000, 1095, 2025, 3000]
    assert events["duration"].tolist() == [40, 40, 40, 0]
    assert events.total(Kind.HTOD, Cause.COHERENCE) == 3 * PAGE
    assert events.total(Kind.DTOH, Cause.EVICTION) == 2 << 20


def test_faults_come_in_groups_split_by_region():
    decoder = Decoder()
    events = decoder.decode(
        np.stack(
            [
                fault(7, BASE + 8, 100),
                fault(7, BASE + PAGE, 100),
                fault(7, BASE + 5 * REGION, 101),
                fault(7, BASE, 102),
                replay(7, 150),
                fault(8, BASE, 200),
                replay(8, 230),
            ]
        )
    )
    assert set(events["kind"]) == {Kind.GPU_FAULT_GROUP}
    assert events.total(Kind.GPU_FAULT_GROUP, column="count") == 5
    assert events.total(Kind.GPU_FAULT_GROUP, column="rows") == 2  # groups
    assert sorted(zip(events["address"].tolist(), events["count"].tolist(), strict=True)) == [
        (BASE, 1),
        (BASE + 8, 3),
        (BASE + 5 * REGION, 1),
    ]
    assert sorted(events["duration"].tolist()) == [0, 30, 50]
    # A group that goes on in the next piece of the queue is not counted twice.
    rest = decoder.decode(np.stack([fault(8, BASE + PAGE, 210), fault(9, BASE, 300)]))
    assert rest.total(Kind.GPU_FAULT_GROUP, column="count") == 2
    assert rest.total(Kind.GPU_FAULT_GROUP, column="rows") == 1


def test_the_other_entries_become_events_of_their_kind():
    decoder = Decoder()
    events = decoder.decode(
        np.stack(
            [
                entry(CPU_FAULT, address=(8, "u8", BASE), time=(16, "u8", 1)),
                entry(
                    THRASHING, address=(16, "u8", BASE), bytes=(24, "u8", PAGE), time=(32, "u8", 2)
                ),
                entry(THROTTLING_START, address=(8, "u8", BASE), time=(16, "u8", 3)),
                entry(
                    MAP_REMOTE, address=(8, "u8", BASE), bytes=(16, "u8", PAGE), time=(24, "u8", 4)
                ),
                entry(
                    EVICTION, address=(8, "u8", BASE), bytes=(24, "u8", 2 << 20), time=(32, "u8", 5)
                ),
            ]
        )
    )
    kinds = [Kind(int(kind)) for kind in events["kind"]]
    assert kinds == [Kind.CPU_FAULT, Kind.THRASHING, Kind.REMOTE_MAP, Kind.EVICTION]
    assert events["time"].tolist() == [1, 2, 4, 5]
    assert set(events["address"]) == {BASE}
    assert events.total(Kind.REMOTE_MAP) == PAGE
    assert events.total(Kind.EVICTION) == 2 << 20
    later = decoder.decode(
        entry(THROTTLING_END, address=(8, "u8", BASE), time=(16, "u8", 13))[None]
    )
    assert (later["kind"][0], later["time"][0], later["duration"][0]) == (Kind.THROTTLING, 3, 10)
    assert len(decoder.decode(np.empty((0, ENTRY_BYTES), np.uint8))) == 0


class Driver:
    """The driver's side of a tracker."""

    def __init__(self, monkeypatch, status=0, version=0, accepted=(10,)):
        self.status, self.version = status, version
        self.flags: list[int] = []
        self.closed = 0
        monkeypatch.setattr(uvm_driver.os, "open", lambda path, flags: 1234)
        monkeypatch.setattr(uvm_driver.os, "close", self.close)
        monkeypatch.setattr(uvm_driver, "_driver_files", lambda: [9, *accepted])
        monkeypatch.setattr(uvm_driver, "_ask", self.ask)

    def close(self, file):
        self.closed += 1

    def ask(self, file, number, request):
        if number == uvm_driver.INIT:
            if request.driver == 9:
                raise NoAddressSpaceError("no managed memory")
            if self.status:
                raise SourceUnavailableError("the driver refused")
            request.version = self.version
        elif number != uvm_driver.FLUSH:
            self.flags.append(request.flags)

    @staticmethod
    def put(tracker, *entries):
        """Write entries as the driver does, dropping those that find no room."""
        places = tracker.control[:16].view(np.uint32)
        size = len(tracker.queue)
        for each in entries:
            get, at = int(places[1]), int(places[3])
            if (at + 1) % size == get:
                tracker.control[16:528].view(np.uint64)[each[0]] += 1
                continue
            tracker.queue[at] = each
            places[2] = places[3] = (at + 1) % size


def test_the_ring_wraps_and_counts_what_it_drops(monkeypatch):
    driver = Driver(monkeypatch)
    (tracker,) = listen(8)
    assert tracker.driver == 10  # the first file serves no managed memory
    assert driver.flags == [sum(1 << number for number in uvm_driver.WANTED)]
    seen = []
    for turn in range(5):
        driver.put(tracker, *(entry(CPU_FAULT, time=(16, "u8", 10 * turn + i)) for i in range(5)))
        seen += tracker.take()[:, 16:24].copy().view(np.uint64)[:, 0].tolist()
    assert seen == [10 * turn + i for turn in range(5) for i in range(5)]
    assert tracker.dropped == 0
    driver.put(tracker, *(entry(MIGRATION) for _ in range(10)))
    assert (len(tracker.take()), tracker.dropped) == (7, 3)


def test_what_did_not_arrive_is_distinguished_from_the_driver_s_totals(monkeypatch):
    Driver(monkeypatch)
    totals = Totals()
    totals.trackers[0].control[:8].view(np.int64)[0] = 3 * PAGE
    totals.add(Decoder().decode(migration(0, 1, BASE, PAGE, 1, 2)[None]))
    totals.close()
    assert totals.about()["driver_totals"] == {
        "bytes_to_device": 3 * PAGE, "bytes_to_host": 0, "cpu_faults": 0,
    }  # fmt: skip
    assert totals.missing() == "4,096 of 12,288 bytes to device"


def test_the_source_brings_everything_in_and_lets_go(monkeypatch):
    driver = Driver(monkeypatch)
    monkeypatch.setattr(uvm, "ENTRIES", 64)
    source = Uvm()
    source.start(SessionClock())
    put = [migration(0, 1, BASE, PAGE, 1, 0), fault(1, BASE, 2), replay(1, 3)]
    driver.put(source.queues[0], *put)
    source.totals.trackers[0].control[:8].view(np.int64)[0] = PAGE
    source.stop()
    table = source.drain(last=True)
    assert table.total(Kind.HTOD) == PAGE
    assert source.lost() == ""
    assert source.about()["driver_totals"] == {
        **dict.fromkeys(COUNTERS, 0), "bytes_to_device": PAGE,
    }  # fmt: skip
    assert source.drain(last=True) is None
    assert driver.closed == 4  # two trackers, and two that the first file refused


def test_of_two_address_spaces_both_are_heard(monkeypatch):
    driver = Driver(monkeypatch, accepted=(10, 12))
    monkeypatch.setattr(uvm, "ENTRIES", 64)
    source = Uvm()
    source.start(SessionClock())
    assert [queue.driver for queue in source.queues] == [10, 12]
    driver.put(source.queues[1], migration(0, 1, BASE, PAGE, 1, 0))
    source.totals.trackers[1].control[:8].view(np.int64)[0] = PAGE
    source.stop()
    table = source.drain(last=True)
    assert table.total(Kind.HTOD) == PAGE
    assert source.lost() == ""


def test_light_leaves_migrations_out_and_says_so(monkeypatch):
    driver = Driver(monkeypatch)
    monkeypatch.setattr(uvm, "ENTRIES", 64)
    source = Uvm(migrations=False)
    with Recording([source]) as run:
        assert driver.flags[1] & 1 << MIGRATION == 0
        driver.put(source.queues[0], fault(1, BASE, 2), replay(1, 3))
        source.totals.trackers[0].control[:8].view(np.int64)[0] = 5 * PAGE
    session = run.session
    figures = session.summary()
    assert (figures["bytes_to_device"], figures["bytes_to_host"]) == (5 * PAGE, 0)
    assert figures["gpu_faults"] == 1
    assert all(group["bytes_to_device"] is None for group in figures["by_group"].values())
    assert any("only total bytes" in note for note in session.notes)


def test_refusals_say_what_to_do(monkeypatch):
    monkeypatch.setattr(uvm_driver, "DEVICE", "/nowhere/nvidia-uvm-tools")
    with pytest.raises(SourceUnavailableError, match="container, start it with --device"):
        Uvm.check()
    driver = Driver(monkeypatch, status=1)
    with pytest.raises(SourceUnavailableError, match="refused"):
        EventQueue(10)
    assert driver.closed == 1
    Driver(monkeypatch, version=2)
    with pytest.raises(SourceUnavailableError, match="not known"):
        EventQueue(10, 8)
    Driver(monkeypatch, accepted=())
    with pytest.raises(SourceUnavailableError, match="no managed memory of this process yet"):
        Uvm.check()


def test_a_refusal_of_one_address_space_is_reported(monkeypatch):
    driver, ask = Driver(monkeypatch, accepted=(10, 12)), Driver.ask

    def refuse_second(file, number, request):
        if number == uvm_driver.INIT and request.driver == 12:
            raise SourceUnavailableError("the driver refused (status 0x51)")
        ask(driver, file, number, request)

    monkeypatch.setattr(uvm_driver, "_ask", refuse_second)
    with pytest.raises(SourceUnavailableError, match="0x51"):
        Uvm.check()
    assert driver.closed == 3  # of 9, 12, and what was heard already
    assert DEVICE == "/dev/nvidia-uvm-tools"
