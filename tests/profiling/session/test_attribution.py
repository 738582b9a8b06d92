"""Events find their arrays and phases, and are merged where they are too many."""

import numpy as np
from session_cases import at, life, table

from louvain_um.profiling import Session, load
from louvain_um.profiling.session import PhaseSpan
from louvain_um.profiling.session.data import event_arrays, with_phases
from louvain_um.profiling.session.events import Cause, EventTable, Kind, Source, merge
from louvain_um.profiling.views.session.analysis import SessionAnalysis
from louvain_um.profiling.views.session.phase_tables import by_phase

KIB = 1024
MIB = 1 << 20


def test_events_belong_to_the_array_alive_then_or_the_last_there():
    arrays = [
        life("a", 4096, 8 * KIB, 10, 20),
        life("b", 4096, 4 * KIB, 30, 40),
        life("c", 4 * MIB, 4 * KIB, 0, 50),
    ]
    rows = {
        (12, 4096, 4096): 0,
        (12, 8192, 4096): 0,
        (25, 8192, 4096): 0,  # a has gone, its pages have not
        (32, 4096, 4096): 1,
        (32, 8192, 4096): 0,  # b covers but the first half of a
        (45, 4096, 4096): 1,
        (12, 2048, 4096): 0,  # begins before a, ends in it
        (12, 16 * KIB, 4096): 0,  # behind a, in its block
        (12, 2 * MIB, 4096): -1,  # in the next
        (12, 3 * MIB, 2 * MIB): 2,
        (5, 4096, 4096): 0,  # made ready for a
        (12, 4 * MIB + 8 * KIB, 4096): 2,
        (12, 64 * MIB, 4096): -1,
    }
    events = table([at(*row) for row in rows])
    assert event_arrays(events, arrays).tolist() == list(rows.values())
    # Any order of time gives the same.
    order = np.random.default_rng(0).permutation(len(rows))
    shuffled = event_arrays(events.select(order), arrays)
    assert shuffled.tolist() == np.array(list(rows.values()))[order].tolist()


def test_owners_agree_with_a_search_one_by_one():
    rng = np.random.default_rng(7)
    arrays, now = [], 0
    for number in range(120):
        start = now = now + int(rng.integers(1, 5))
        size = int(rng.integers(1, 4)) * 4096
        arrays.append(life(f"a{number}", int(rng.integers(1, 9)) << 21, size, start, start + 3))
        now = start + 3
    rows = [
        at(int(t), int(slot) << 21 | int(page) << 12)
        for t, slot, page in rng.integers([0, 1, 0], [now, 10, 4], (500, 3))
    ]

    def expected(row):
        slot = [(i, a) for i, a in enumerate(arrays) if a.address == row["address"] >> 21 << 21]
        past = [(i, a) for i, a in slot if a.start_ns <= row["time"]]
        covers = [
            [i for i, a in some if row["address"] < a.address + a.nbytes] for some in (past, slot)
        ]
        if covers[0]:
            return covers[0][-1]
        if past:  # what fills up the block of the one that reaches farthest
            return max((a.nbytes, i) for i, a in past)[1]
        if covers[1]:
            return covers[1][0]
        return min(((-a.nbytes, i) for i, a in slot), default=(0, -1))[1]

    assert event_arrays(table(rows), arrays).tolist() == [expected(row) for row in rows]


def test_kernels_and_copies_own_nothing():
    events = EventTable({"kind": [Kind.KERNEL, Kind.COPY], "time": [1, 1]})
    assert event_arrays(events, [life("a", 0, 4096, 0, 9)]).tolist() == [-1, -1]


def test_events_get_phase_level_and_iteration_by_time():
    spans = [
        PhaseSpan(phase="move", level=2, iteration=-1, start_ns=10, end_ns=50),
        PhaseSpan(phase="move", level=2, iteration=0, start_ns=10, end_ns=30),
        PhaseSpan(phase="move", level=2, iteration=1, start_ns=30, end_ns=50),
        PhaseSpan(phase="compile", level=-1, iteration=-1, start_ns=20, end_ns=25),
    ]
    placed = with_phases(EventTable({"time": [5, 10, 22, 27, 49, 50]}), spans)
    names = [placed.phases[p] if p >= 0 else None for p in placed["phase"]]
    assert names == [None, "move", "compile", "move", "move", None]
    assert placed["level"].tolist() == [-1, 2, -1, 2, 2, -1]
    assert placed["iteration"].tolist() == [-1, 0, 0, 0, 1, -1]
    known = with_phases(EventTable({"time": [12], "phase": [0], "level": [5]}), spans)
    assert (known["phase"][0], known["level"][0]) == (0, 5)


def test_phases_may_have_any_number_of_names(tmp_path):
    spans = [
        PhaseSpan(phase=f"step {n}", level=n, iteration=-1, start_ns=n, end_ns=n + 1)
        for n in range(300)
    ]
    columns = {"time": np.arange(300), "kind": np.full(300, Kind.HTOD), "bytes": np.ones(300),
               "source": np.full(300, Source.UVM)}  # fmt: skip
    placed = with_phases(EventTable(columns), spans)
    Session(events=placed, phases=tuple(spans)).save(tmp_path / "run.npz")
    again = load(tmp_path / "run.npz")
    assert [again.events.phases[at] for at in again.events["phase"]] == [s.phase for s in spans]
    rows = by_phase(SessionAnalysis(again)).rows
    assert [(row["phase"], row["level"], row["bytes_to_device"]) for row in rows] == [
        (f"step {n}", n, 1) for n in range(300)
    ]


def test_merging_keeps_every_total():
    rng = np.random.default_rng(1)
    rows = 20_000
    events = EventTable(
        {
            "time": np.sort(rng.integers(0, 10**9, rows)),
            "kind": rng.choice([Kind.HTOD, Kind.DTOH, Kind.GPU_FAULT_GROUP], rows),
            "cause": rng.integers(1, 4, rows),
            "address": rng.integers(1, 1 << 30, rows) & ~4095,
            "bytes": rng.integers(1, 100, rows) * 4096,
            "count": rng.integers(1, 9, rows),
        }
    )
    arrays = [life("a", 0, 1 << 29, 0, 10**9), life("b", 1 << 29, 1 << 29, 0, 10**9)]
    owner = event_arrays(events, arrays)
    less, ns, size = merge(events, owner, 500)
    assert len(less) <= 500
    assert ns > 1
    assert size > 1
    assert np.all(np.diff(less["time"]) >= 0)
    again = event_arrays(less, arrays)
    for kind in (Kind.HTOD, Kind.DTOH, Kind.GPU_FAULT_GROUP):
        for cause in (Cause.USER, Cause.COHERENCE, Cause.PREFETCH):
            for column in ("bytes", "count", "rows"):
                for array in (0, 1):
                    before = events.where(kind, cause) & (owner == array)
                    after = less.where(kind, cause) & (again == array)
                    assert events[column][before].sum() == less[column][after].sum()
