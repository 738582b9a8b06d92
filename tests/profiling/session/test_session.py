import json
import os
import pickle
import sys
from dataclasses import replace

import numpy as np
import pytest
from session_cases import a_session, life

from louvain_um.errors import LouvainUmError
from louvain_um.profiling import Session, load
from louvain_um.profiling.session import SessionData
from louvain_um.profiling.session.data import SCHEMA
from louvain_um.profiling.session.events import COLUMNS
from louvain_um.profiling.simulator import Array, Launch, Touches, Trace


@pytest.mark.parametrize("name", ["run.npz", "run.parquet"])
def test_a_session_comes_back_as_it_was(tmp_path, name):
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


def test_what_is_no_session_is_refused_in_a_line(tmp_path):
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
    with pytest.raises(LouvainUmError, match="choose such a name"):
        a_session().save(tmp_path / "x.csv")
    with pytest.raises(LouvainUmError, match="is not a session"):
        a_session().save(folder, force=True)


SPOILT: list[tuple[str, object]] = [
    ("schema", "two"), ("schema", None), ("metadata", []), ("metadata", {"seconds": "x"}),
    ("metadata", {"sources": None}), ("metadata", {"graph": "x"}), ("plan", [1]), ("energy", 3),
    ("lifetimes", [life("x", 0, 1, 0, 1).__class__.__slots__]),
    ("lifetimes", [{**dict.fromkeys(("address", "nbytes", "start_ns", "end_ns"), 0),
                    "name": "x", "group": "no\nword"}]),
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


def saved(path, change):
    """Save a session whose header and arrays a function has changed."""
    a_session().save(path)
    with np.load(path) as data:
        arrays = dict(data)
    header = json.loads(bytes(arrays["header"]))
    change(header, arrays)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **arrays)


@pytest.mark.parametrize(("part", "value"), SPOILT)
def test_a_damaged_session_is_refused_when_it_is_read(tmp_path, part, value):
    path = tmp_path / "run.npz"
    saved(path, lambda *parts: parts[part not in parts[0]].update({part: value}))
    with pytest.raises(LouvainUmError, match="record") as error:
        load(path)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    ("mark", "at", "value"),
    [(b"\1\2", 10, 99), (b"\1\2", 8, 1), (b"\1\2", 6, 99), (b"\5\6", 19, 127)],
    ids=["unknown method", "encrypted", "of a version to come", "pointing nowhere"],
)
def test_what_a_zip_file_can_say_and_none_reads_is_no_session(tmp_path, mark, at, value):
    path = tmp_path / "run.npz"
    a_session().save(path)
    data = bytearray(path.read_bytes())
    data[data.index(b"PK" + mark) + at] = value  # in the directory at its end
    path.write_bytes(data)
    with pytest.raises(LouvainUmError, match="not a session"):
        load(path)


def test_parquet_says_what_reads_it(tmp_path, monkeypatch):
    path = tmp_path / "run.parquet"
    a_session().save(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(LouvainUmError, match=r"pip install .*\[formats\]'"):
        load(path)


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    path, link = tmp_path / "run.parquet", tmp_path / "link.parquet"
    a_session().save(path)
    link.symlink_to(path)
    Session(notes=("new",)).save(link, force=True)
    assert load(path).notes == ("new",)
    assert link.is_symlink()


def test_a_session_is_plain_data_that_saves_and_shows_itself():
    session = a_session()
    assert isinstance(session, SessionData)
    plain = SessionData(metadata=session.metadata, lifetimes=session.lifetimes)
    assert Session.of(plain).lifetimes == session.lifetimes
    assert isinstance(replace(session, notes=()), Session)
    copy = pickle.loads(pickle.dumps(session))
    assert (type(copy), copy.notes) == (Session, session.notes)


def test_seconds_that_are_no_number_come_back_as_not_known(tmp_path):
    Session(metadata={"seconds": float("nan")}).save(tmp_path / "run.npz")
    assert load(tmp_path / "run.npz").seconds == 0


def test_a_folder_that_is_no_session_is_not_said_to_be_missing(tmp_path):
    with pytest.raises(LouvainUmError, match="a folder, but no session; name what is in it"):
        load(tmp_path)
    (tmp_path / "report.html").touch()
    with pytest.raises(LouvainUmError, match=r"a folder, but no session; open its report, .*html"):
        load(tmp_path)


@pytest.mark.parametrize(("schema", "remedy"), [(SCHEMA + 1, "update"), (SCHEMA - 1, "again")])
def test_another_version_is_named(tmp_path, schema, remedy):
    path = tmp_path / "run.npz"
    saved(path, lambda header, arrays: header.update(schema=schema))
    with pytest.raises(LouvainUmError, match=remedy):
        load(path)


def test_a_damaged_session_is_named(tmp_path):
    path = tmp_path / "run.npz"
    saved(path, lambda header, arrays: arrays.pop("events.bytes"))
    with pytest.raises(LouvainUmError, match="damaged"):
        load(path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(LouvainUmError, match="not a session"):
        load(path)


def test_events_that_name_no_gpu_are_of_the_first(tmp_path):
    path = tmp_path / "run.npz"
    saved(path, lambda header, arrays: arrays.pop("events.device"))
    again = load(path).events
    assert len(again) == len(a_session().events)
    assert again.devices == [0]


def test_a_recording_of_accesses_leads_to_simulate(tmp_path):
    data = Array(name="data", group="graph", nbytes=1 << 20)
    trace = Trace((data,), (Launch(touches=Touches.runs(0, 0, data.pages)),))
    trace.save(tmp_path / "data.npz")
    with pytest.raises(LouvainUmError, match="a recording of accesses, not a session; replay"):
        load(tmp_path / "data.npz")
