from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.events import Event
from louvain_um.profiling.book import Book
from louvain_um.profiling.capture import Recording
from louvain_um.profiling.events import COLUMNS, Cause, EventTable, Kind, Source
from louvain_um.profiling.join import owners, place
from louvain_um.profiling.merge import merge
from louvain_um.profiling.profiler import profile, recording
from louvain_um.profiling.session import SCHEMA, Lifetime, PageMap, PhaseSpan, Session, load
from louvain_um.profiling.source import Clock, SourceUnavailableError
from louvain_um.profiling.views.reading import Reading
from louvain_um.profiling.views.stages import by_phase

KIB = 1024


def life(name: str, address: int, nbytes: int, start: int, end: int) -> Lifetime:
    return Lifetime(
        name=name, group="graph", address=address, nbytes=nbytes, start_ns=start, end_ns=end
    )


def at(time: int, address: int, nbytes: int = 4096) -> dict[str, int]:
    return {"time": time, "address": address, "bytes": nbytes, "kind": Kind.HTOD}


def table(rows: list[dict[str, int]]) -> EventTable:
    return EventTable({name: [row[name] for row in rows] for name in rows[0]})


def a_session() -> Session:
    events = EventTable(
        {
            "time": [10, 20, 30],
            "kind": [Kind.HTOD, Kind.KERNEL, Kind.ACCESS],
            "address": [4096, 0, 8192],
            "bytes": [65536, 0, 0],
            "kernel": [-1, 0, -1],
            "count": [1, 1, 7],
        },
        ("move",),
    )
    phases = (PhaseSpan(phase="my own", level=0, iteration=-1, start_ns=5, end_ns=25),)
    return Session(
        metadata={"version": "0", "seconds": 1.5, "nan": float("nan"), "n": np.int64(3)},
        plan={"policy": "base"},
        lifetimes=(life("targets.0", 4096, 1 << 20, 0, 40),),
        phases=phases,
        events=place(events, phases),
        maps=(
            PageMap(
                array="targets.0",
                page_bytes=4096,
                edges=np.array([0, 20, 40]),
                counts=np.array([[1, 2], [3, 4]], np.uint32),
            ),
        ),
        notes=("a note",),
        energy={"joules": 2.0, "seconds": 1.5},
    )


@pytest.mark.parametrize("name", ["run.npz", "run.parquet"])
def test_a_session_comes_back_as_it_was(tmp_path: Path, name: str):
    session = a_session()
    path = tmp_path / name
    session.save(path)
    again = load(path)
    assert again.metadata == {"version": "0", "seconds": 1.5, "nan": None, "n": 3}
    assert (again.plan, again.energy, again.notes) == (session.plan, session.energy, ("a note",))
    assert again.lifetimes == session.lifetimes
    assert (again.events.kernels, again.events.phases) == (("move",), session.events.phases)
    for column in COLUMNS:
        assert np.array_equal(again.events[column], session.events[column])
        assert again.events[column].dtype == session.events[column].dtype
    assert np.array_equal(again.maps[0].counts, session.maps[0].counts)
    assert again.maps[0].total == 10
    assert [span.phase for span in again.phases] == ["my own"]
    assert str(again) == str(session)
    with pytest.raises(LouvainUmError, match="exists already"):
        session.save(path)
    session.save(path, force=True)
    assert os.listdir(tmp_path) == [name]


def test_what_is_no_session_is_refused_in_a_line(tmp_path: Path):
    text = tmp_path / "text.npz"
    text.write_text("hello")
    other = tmp_path / "other.npz"
    np.savez(other, x=[1])
    folder = tmp_path / "folder.parquet"
    folder.mkdir()
    for path in (text, other, folder, tmp_path / "absent.npz"):
        with pytest.raises(LouvainUmError) as error:
            load(path)
        assert str(error.value).startswith(str(path))
        assert "\n" not in str(error.value)
    with pytest.raises(LouvainUmError, match="name it so"):
        a_session().save(tmp_path / "x.csv")
    with pytest.raises(LouvainUmError, match="is no session"):
        a_session().save(folder, force=True)


SPOILT: list[tuple[str, object]] = [
    ("schema", "two"), ("schema", None), ("metadata", []), ("metadata", {"seconds": "x"}),
    ("metadata", {"sources": None}), ("metadata", {"graph": "x"}), ("plan", [1]), ("energy", 3),
    ("lifetimes", [life("x", 0, 1, 0, 1).__class__.__slots__]),
    ("lifetimes", [{**dict.fromkeys(("address", "nbytes", "start_ns", "end_ns"), 0),
                    "name": "x", "group": "nobody's"}]),
    ("lifetimes", [{**dict.fromkeys(("address", "nbytes", "start_ns", "end_ns"), -1),
                    "name": "x", "group": "graph"}]),
    ("phases", [{"phase": "move", "level": 0, "iteration": 0, "start_ns": "x", "end_ns": 1,
                 "modularity": 0.0}]),
    ("kernels", []), ("event_phases", []), ("maps", [["targets.0", 0, "access"]]),
    ("maps", [["targets.0", "x", "access"]]), ("maps", [["targets.0", 4096, "x"]]),
    ("events.time", np.zeros((3, 1))), ("events.kernel", np.array([0, 5, 0])),
    ("notes", [1]), ("metadata", {"device": 1}), ("metadata", {"modularity": []}),
    ("metadata", {"graph": {"arcs": "x"}}), ("metadata", {"peak_bytes": {"hash": None}}),
    ("metadata", {"terms": {"faults": None}}), ("metadata", {"sources": {"uvm": 1}}),
    ("metadata", {"about_sources": {"uvm": 1}}), ("energy", {"watts": [1.0], "times_ns": []}),
    ("metadata", {"about_sources": {"uvm": {"dropped": "x"}}}),
    ("metadata", {"about_sources": {"uvm": {"recorded": {"cpu_faults": None}}}}),
    ("phases", [{"phase": "move", "level": 1 << 40, "iteration": 0, "start_ns": 0, "end_ns": 1,
                 "modularity": 0.0}]),
    ("map.0.edges", np.array([40, 20, 0])), ("map.0.counts", np.ones((2, 2)) * np.nan),
]  # fmt: skip


@pytest.mark.parametrize(("part", "value"), SPOILT)
def test_a_damaged_session_is_refused_when_it_is_read(tmp_path: Path, part: str, value: object):
    path = tmp_path / "run.npz"
    a_session().save(path)
    with np.load(path) as data:
        arrays = {name: data[name] for name in data.files}
    header = json.loads(bytes(arrays["header"]))
    if part in header:
        header[part] = value
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    else:
        arrays[part] = np.asarray(value)
    np.savez(path, **arrays)
    with pytest.raises(LouvainUmError, match="record") as error:
        load(path)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    ("mark", "at", "value"),
    [(b"\1\2", 10, 99), (b"\1\2", 8, 1), (b"\1\2", 6, 99), (b"\5\6", 19, 127)],
    ids=["unknown method", "encrypted", "of a version to come", "pointing nowhere"],
)
def test_what_a_zip_file_can_say_and_none_reads_is_no_session(
    tmp_path: Path, mark: bytes, at: int, value: int
):
    path = tmp_path / "run.npz"
    a_session().save(path)
    data = bytearray(path.read_bytes())
    data[data.index(b"PK" + mark) + at] = value  # in the directory at its end
    path.write_bytes(data)
    with pytest.raises(LouvainUmError, match="not a session"):
        load(path)


def test_a_path_is_named_as_it_was_given(tmp_path: Path):
    with pytest.raises(LouvainUmError) as error:
        load(tmp_path / "Absent.NPZ")
    assert str(error.value) == f"{tmp_path}/Absent.NPZ: no such file or directory; check the path"


def test_parquet_says_what_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "run.parquet"
    a_session().save(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(LouvainUmError, match=r"pip install 'louvain-um\[formats\]'"):
        load(path)


def test_a_folder_that_cannot_be_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "run.parquet"
    a_session().save(path)
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        if Path(source).suffix == ".part":
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(LouvainUmError, match="nothing was written"):
        Session().save(path, force=True)
    monkeypatch.undo()
    assert load(path).notes == ("a note",)
    assert os.listdir(tmp_path) == ["run.parquet"]
    link = tmp_path / "link.parquet"
    link.symlink_to(path)
    Session(notes=("new",)).save(link, force=True)
    assert load(path).notes == ("new",)
    assert link.is_symlink()


def test_seconds_that_are_no_number_come_back_as_not_known(tmp_path: Path):
    Session(metadata={"seconds": float("nan")}).save(tmp_path / "run.npz")
    assert load(tmp_path / "run.npz").seconds == 0


def test_a_folder_that_is_no_session_is_not_said_to_be_missing(tmp_path: Path):
    with pytest.raises(LouvainUmError, match="a folder, but no session"):
        load(tmp_path)


@pytest.mark.parametrize(("schema", "remedy"), [(SCHEMA + 1, "update"), (SCHEMA - 1, "again")])
def test_another_version_is_named(tmp_path: Path, schema: int, remedy: str):
    path = tmp_path / "run.npz"
    a_session().save(path)
    with np.load(path) as data:
        arrays = dict(data)
    header = json.loads(bytes(arrays["header"]))
    header["schema"] = schema
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(LouvainUmError, match=remedy):
        load(path)


def test_a_damaged_session_is_named(tmp_path: Path):
    path = tmp_path / "run.npz"
    a_session().save(path)
    with np.load(path) as data:
        arrays = dict(data)
    del arrays["events.bytes"]
    np.savez(path, **arrays)
    with pytest.raises(LouvainUmError, match="damaged"):
        load(path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(LouvainUmError, match="not a session"):
        load(path)


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
    assert owners(events, arrays).tolist() == list(rows.values())
    # Any order of time gives the same.
    order = np.random.default_rng(0).permutation(len(rows))
    shuffled = owners(events.select(order), arrays)
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

    def expected(row: dict[str, int]) -> int:
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

    assert owners(table(rows), arrays).tolist() == [expected(row) for row in rows]


def test_kernels_and_copies_own_nothing():
    events = EventTable({"kind": [Kind.KERNEL, Kind.COPY], "time": [1, 1]})
    assert owners(events, [life("a", 0, 4096, 0, 9)]).tolist() == [-1, -1]


def test_events_get_phase_level_and_iteration_by_time():
    spans = [
        PhaseSpan(phase="move", level=2, iteration=-1, start_ns=10, end_ns=50),
        PhaseSpan(phase="move", level=2, iteration=0, start_ns=10, end_ns=30),
        PhaseSpan(phase="move", level=2, iteration=1, start_ns=30, end_ns=50),
        PhaseSpan(phase="compile", level=-1, iteration=-1, start_ns=20, end_ns=25),
    ]
    placed = place(EventTable({"time": [5, 10, 22, 27, 49, 50]}), spans)
    names = [placed.phases[p] if p >= 0 else None for p in placed["phase"]]
    assert names == [None, "move", "compile", "move", "move", None]
    assert placed["level"].tolist() == [-1, 2, -1, 2, 2, -1]
    assert placed["iteration"].tolist() == [-1, 0, 0, 0, 1, -1]
    known = place(EventTable({"time": [12], "phase": [0], "level": [5]}), spans)
    assert (known["phase"][0], known["level"][0]) == (0, 5)


def test_phases_may_have_any_number_of_names(tmp_path: Path):
    spans = [
        PhaseSpan(phase=f"step {n}", level=n, iteration=-1, start_ns=n, end_ns=n + 1)
        for n in range(300)
    ]
    columns = {"time": np.arange(300), "kind": np.full(300, Kind.HTOD), "bytes": np.ones(300),
               "source": np.full(300, Source.UVM)}  # fmt: skip
    placed = place(EventTable(columns), spans)
    Session(events=placed, phases=tuple(spans)).save(tmp_path / "run.npz")
    again = load(tmp_path / "run.npz")
    assert [again.events.phases[at] for at in again.events["phase"]] == [s.phase for s in spans]
    rows = by_phase(Reading(again)).rows
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
    owner = owners(events, arrays)
    less, ns, size = merge(events, owner, 500)
    assert len(less) <= 500
    assert ns > 1
    assert size > 1
    assert np.all(np.diff(less["time"]) >= 0)
    again = owners(less, arrays)
    for kind in (Kind.HTOD, Kind.DTOH, Kind.GPU_FAULT_GROUP):
        for cause in (Cause.USER, Cause.COHERENCE, Cause.PREFETCH):
            for column in ("bytes", "count", "rows"):
                for array in (0, 1):
                    before = events.where(kind, cause) & (owner == array)
                    after = less.where(kind, cause) & (again == array)
                    assert events[column][before].sum() == less[column][after].sum()


class Flood:
    """A source of many events."""

    name = "flood"

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.notes: list[str] = []

    def start(self, clock: Clock) -> None:
        self.clock = clock

    def drain(self, *, last: bool = False) -> EventTable | None:
        n = self.rows
        return EventTable(
            {
                "time": np.full(n, self.clock.now()),
                "kind": np.full(n, Kind.HTOD),
                "bytes": np.full(n, 4096),
                "address": (np.arange(n) + 1) << 12,
                "source": np.full(n, Source.CUPTI),
            }
        )

    def stop(self) -> None: ...

    def maps(self) -> tuple[PageMap, ...]:
        return ()

    def about(self) -> dict[str, object]:
        return {}


class Absent(Flood):
    name = "cupti"

    def start(self, clock: Clock) -> None:
        raise SourceUnavailableError("CUPTI: run as root")


def test_a_flood_is_merged_and_said_to_be():
    with Recording([Flood(5000)], most_events=1000) as run:
        pass
    session = run.session
    assert len(session.events) <= 1000
    assert session.events.total(Kind.HTOD) == 5000 * 4096
    assert any("merged" in note and "5,000" in note for note in session.notes)


def test_a_source_that_cannot_work_is_noted_and_the_others_go_on():
    with Recording([Absent(1), Flood(3)]) as run:
        pass
    session = run.session
    assert session.metadata["sources"]["cupti"] == "not available: CUPTI: run as root"
    assert session.metadata["sources"]["flood"] == "measured"
    assert session.notes == ("cupti recorded nothing: CUPTI: run as root",)
    assert len(session.events) == 3
    # What nobody could see is not a number.
    assert session.summary()["gpu_faults"] is None


class Dying(Flood):
    name = "uvm"

    def stop(self) -> None:
        raise RuntimeError("the GPU fell off the bus\nand more")


def test_a_source_that_dies_hides_no_error(tmp_path: Path):
    path = tmp_path / "run.npz"
    with (
        pytest.raises(ZeroDivisionError),
        Recording([Dying(2), Flood(3)], save_to=path) as run,
        run.phase("think"),
    ):
        raise ZeroDivisionError
    session = load(path)
    assert (
        "uvm could not be ended (the GPU fell off the bus); it may have seen more" in session.notes
    )
    assert session.events.total(Kind.HTOD) == 3 * 4096
    assert not session.metadata["complete"]


class Broken(Flood):
    name = "nvml"

    def drain(self, *, last: bool = False) -> EventTable | None:
        raise RuntimeError("it was unplugged")


def test_a_source_that_fails_on_the_way_is_noted_and_the_others_go_on():
    with Recording([Broken(1), Flood(1)]) as run:
        until = time.monotonic() + 10
        while len(run.session.events) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        assert run.notes == ["nvml failed (it was unplugged); what came later is lost"]
    assert len(run.session.events) > 2


def test_how_fast_a_run_was_is_known_when_it_has_ended():
    about = {"seconds": 2.0, "graph": {"arcs": 10}}
    assert Session(metadata=about).summary()["arcs_per_second"] == 5
    cut = Session(metadata=about | {"complete": False}, energy={"joules": 2.0})
    assert cut.summary()["arcs_per_second"] is cut.summary()["arcs_per_joule"] is None
    assert "arcs/s" not in str(cut)


def test_the_book_follows_arrays_as_they_shrink_and_return():
    book = Book(Clock())
    book(Event(kind="array", name="rows.1", group="scratch", address=4096, nbytes=400))
    book(Event(kind="freed", name="rows.1", group="scratch", address=4196, nbytes=300))
    book(Event(kind="freed", name="rows.1", group="scratch", address=4096, nbytes=100))
    book(Event(kind="array", name="rows.1", group="scratch", address=8192, nbytes=8))
    lives = book.lifetimes()
    assert [(a.address, a.nbytes, a.level) for a in lives] == [
        (4096, 400, 1),
        (4096, 100, 1),
        (8192, 8, 1),
    ]
    assert lives[0].end_ns == lives[1].start_ns <= lives[1].end_ns <= lives[2].start_ns


def test_iterations_told_afterwards_lie_where_they_were():
    book = Book(Clock())
    book(Event(kind="start", phase="move", level=0))
    time.sleep(0.03)
    for number, ago in ((0, 0.02), (1, 0.01)):
        book(Event(kind="iteration", phase="move", iteration=number, seconds_ago=ago))
    book(Event(kind="end", phase="move", level=0))
    whole, first, second = book.phases()
    assert (whole.iteration, first.iteration, second.iteration) == (-1, 0, 1)
    assert whole.start_ns == first.start_ns < first.end_ns == second.start_ns
    assert second.seconds == pytest.approx(0.01, abs=0.005)
    assert second.end_ns < whole.end_ns


def test_a_detection_is_profiled_on_the_cpu(tmp_path: Path):
    graph = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    told: list[Event] = []
    path = tmp_path / "run.npz"
    session = profile(graph, device="cpu", observer=told.append, save_to=path)
    about = session.metadata
    assert about["communities"] == 2
    assert about["complete"]
    assert about["graph"] == {"vertices": 6, "arcs": 14, "edges": 7, "weighted": False}
    assert {span.phase for span in session.phases} >= {"load", "move", "aggregate", "fetch"}
    assert any(span.iteration == 0 for span in session.phases)
    assert {array.group for array in session.lifetimes} >= {"graph", "community"}
    assert any(event.kind == "start" for event in told)
    assert session.summary()["arcs_per_second"] > 0
    assert load(path).metadata["communities"] == 2
    assert "<b>" in session._repr_html_()
    with pytest.raises(OptionError, match="tracer"):
        profile(graph, device="cpu", tracer=True)
    with pytest.raises(OptionError, match="sources"):
        profile(graph, device="cpu", sources=("papi",))


def test_own_code_is_recorded(tmp_path: Path):
    x = np.zeros(100)
    with recording(device="cpu", arrays={"x": x}) as run:
        with run.phase("think", level=3):
            run.array("y", x[:10], "scratch")
        run.freed("y")
        assert not run.session.metadata["complete"]
    session = run.session
    assert [(span.phase, span.level) for span in session.phases] == [("think", 3)]
    assert [(a.name, a.nbytes) for a in session.lifetimes] == [("x", 800), ("y", 80)]
    assert session.metadata["complete"]
    with pytest.raises(OptionError, match="CuPy or NumPy"), recording(device="cpu") as run:
        run.array("z", [1, 2])
    with pytest.raises(OptionError, match="group must be"), recording(device="cpu") as run:
        run.array("z", x, "mine")  # type: ignore[arg-type]
    with (
        pytest.raises(OptionError, match="level must lie"),
        recording(device="cpu") as run,
        run.phase("deep", level=1 << 15),
    ):
        pass
    with pytest.raises(OptionError, match="device must be"), recording(device="gpu"):
        pass
    with pytest.raises(OptionError, match="most_events"), recording(device="cpu", most_events=0):
        pass


def test_a_run_that_fails_leaves_what_it_had(tmp_path: Path):
    path = tmp_path / "run.npz"
    with (
        pytest.raises(RuntimeError),
        recording(device="cpu", save_to=path) as run,
        run.phase("think"),
    ):
        raise RuntimeError
    session = load(path)
    assert not session.metadata["complete"]
    assert "cut short" in session.notes[0]
    assert session.phases[0].phase == "think"


def test_a_run_that_is_refused_leaves_no_file(tmp_path: Path):
    path = tmp_path / "run.npz"
    with pytest.raises(RuntimeError), recording(device="cpu", save_to=path):
        raise RuntimeError
    assert not path.exists()


KILLED = """
import sys, time
import louvain_um.profiling.capture as capture
with capture.Recording([], save_to=sys.argv[1]) as run, run.phase("think"):
    print("go", flush=True)
    time.sleep(60)
"""


def test_a_run_killed_after_a_second_leaves_a_session(tmp_path: Path):
    path = tmp_path / "run.npz"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        until = time.monotonic() + 20
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.02)
        child.send_signal(signal.SIGKILL)
    session = load(path)
    assert not session.metadata["complete"]
    assert session.phases[0].phase == "think"


class Shell:
    """As much of IPython's shell as the magic needs."""

    def __init__(self) -> None:
        self.user_ns: dict[str, object] = {"x": np.zeros(4), "ran": 0}
        self.magics: dict[str, object] = {}

    def register_magic_function(self, function: object, kind: str, name: str) -> None:
        self.magics[name] = function

    def run_cell(self, cell: str) -> Any:
        exec(cell, self.user_ns)


def test_a_notebook_has_a_magic(tmp_path: Path):
    from louvain_um.profiling import load_ipython_extension

    shell = Shell()
    load_ipython_extension(shell)
    magic = shell.magics["louvain_profile"]
    path = tmp_path / "cell.npz"
    assert callable(magic)
    session = magic(f"x -o {path} --device cpu", "ran = 1")
    assert shell.user_ns["ran"] == 1
    assert shell.user_ns["session"] is session
    assert [array.name for array in load(path).lifetimes] == ["x"]
    for line in ("nobody", "-o", "--what", "'x"):
        with pytest.raises(OptionError):
            magic(line, "")


def test_a_cell_that_fails_leaves_what_it_had():
    from louvain_um.profiling import load_ipython_extension

    class Outcome:
        success = False

    class Failing(Shell):
        def run_cell(self, cell: str) -> Any:
            return Outcome()

    shell = Failing()
    load_ipython_extension(shell)
    magic: Any = shell.magics["louvain_profile"]
    assert magic("--device cpu", "1 / 0") is None
    session: Any = shell.user_ns["session"]
    assert not session.metadata["complete"]
    assert "cut short" in session.notes[0]
