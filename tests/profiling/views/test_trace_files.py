import gzip
import json

import pytest

from louvain_um.errors import LouvainUmError
from louvain_um.profiling.session.events import Kind
from louvain_um.profiling.views import timeline
from louvain_um.profiling.views.timeline import TrackSlice, trace, write
from tests.profiling.views.made import MS, cpu_run, paged_run


def test_a_trace_has_a_track_for_everything():
    found = trace(paged_run())
    events = found["traceEvents"]
    names = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert {"run", "phases", "iterations", "kernels", "memory: graph"} <= names
    assert {"to the device", "GPU faults", "evictions", "power"} <= names
    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events
              if e["ph"] == "M" and e["name"] == "thread_name"}  # fmt: skip
    moved = [e for e in events if tracks.get((e["pid"], e["tid"])) == "to the device"]
    moved = [e for e in moved if e["ph"] in "Xi"]
    assert sum(e["args"]["bytes"] for e in moved) == paged_run().summary()["bytes_to_device"]
    assert {e["args"]["cause"] for e in moved} >= {"density prefetcher", "request of the program"}
    phases = [e for e in events if tracks.get((e["pid"], e["tid"])) == "phases" and e["ph"] == "X"]
    assert [(e["name"], e["ts"], e["dur"]) for e in phases][:2] == [
        ("load", 0.0, 10_000.0), ("move 0", 10_000.0, 50_000.0),
    ]  # fmt: skip
    json.dumps(found, allow_nan=False)


def test_what_is_modelled_is_called_so():
    def names_and_evidence(session):
        events = trace(session)["traceEvents"]
        names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
        return names, {e["args"]["evidence"] for e in events if e["ph"] in "Xi"}

    simulated = paged_run(sources={"simulator": "modelled"})
    names, found = names_and_evidence(simulated)
    assert {"run (modelled)", "GPU (modelled)", "memory: graph (modelled)"} <= names
    assert {name for name in names if "(modelled)" not in name} == {"power"}  # not simulated
    assert found == {"modelled (simulator)"}
    names, found = names_and_evidence(paged_run())
    # Residency is derived from migrations.
    assert {name for name in names if "(modelled)" in name} == {
        "managed on the device, bytes (modelled)"
    }
    assert found == {"measured (engine)", "measured (uvm)", "measured (cupti)"}


def test_slices_of_a_track_never_overlap():
    ends = {}
    # Phases hold their iterations on another track.
    for event in trace(paged_run())["traceEvents"]:
        if event["ph"] == "X":
            track = event["pid"], event["tid"]
            assert event["ts"] >= ends.get(track, 0) - 1e-6
            ends[track] = event["ts"] + event["dur"]


def test_too_many_events_are_merged_and_it_is_said(monkeypatch):
    monkeypatch.setattr(timeline, "MOST", 60)
    found = trace(paged_run())
    moved = [e for e in found["traceEvents"] if e["ph"] in "Xi" and "bytes" in e["args"]]
    assert len(moved) < len(paged_run().events)
    assert "events were merged into" in found["otherData"]["notes"]
    brought = sum(e["args"]["bytes"] for e in moved if e["name"].startswith("to the device"))
    assert brought == paged_run().summary()["bytes_to_device"]


def test_files_by_their_names(tmp_path):
    for name in ("t.json", "t.json.gz"):
        paged_run().timeline(tmp_path / name)
        with pytest.raises(LouvainUmError, match="exists already"):
            write(paged_run(), tmp_path / name)
    plain = json.loads((tmp_path / "t.json").read_text())
    assert plain == json.loads(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))
    write(cpu_run(), tmp_path / "t.json", force=True)
    assert json.loads((tmp_path / "t.json").read_text()) != plain
    with pytest.raises(LouvainUmError, match=r"must end in \.json, \.json\.gz"):
        paged_run().timeline(tmp_path / "run.txt")


def test_nothing_of_a_session_is_left_out():
    session = paged_run()
    shown = [item for item in timeline.items(session) if isinstance(item, TrackSlice)]
    expected = len(session.events) + len(session.phases)
    assert len(shown) == expected
    assert max(item.time + item.duration for item in shown) == 100 * MS
    assert Kind.KERNEL in session.events["kind"]
