"""Runs and own code leave a session, however they end."""

import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.errors import OptionError
from louvain_um.events import Event
from louvain_um.generators import rmat
from louvain_um.placement.policy.policy import Policy
from louvain_um.placement.program import Program, ProgramArray, Stream
from louvain_um.profiling import Session, load
from louvain_um.profiling.record.capture import Recording, Timeline
from louvain_um.profiling.record.jobs import noting_launches
from louvain_um.profiling.record.profiler import check, profile, recording
from louvain_um.profiling.session.events import EventTable, Kind, Source
from louvain_um.profiling.sources import cpu_recorder
from louvain_um.profiling.sources.source import SessionClock, SourceUnavailableError
from louvain_um.profiling.views.session.analysis import evidence


class Flood:
    name = "flood"

    def __init__(self, rows):
        self.rows = rows
        self.notes: list[str] = []

    def start(self, clock):
        self.clock = clock

    def drain(self, *, last=False):
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

    def stop(self): ...

    def maps(self):
        return ()

    def about(self):
        return {}


class Absent(Flood):
    name = "cupti"

    def start(self, clock):
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
    # What no source recorded is not a number.
    assert session.summary()["gpu_faults"] is None


class Dying(Flood):
    name = "uvm"

    def stop(self):
        raise RuntimeError("the GPU fell off the bus\nand more")


def test_a_source_that_dies_hides_no_error(tmp_path):
    path = tmp_path / "run.npz"
    with (
        pytest.raises(ZeroDivisionError),
        Recording([Dying(2), Flood(3)], save_to=path) as run,
        run.phase("think"),
    ):
        raise ZeroDivisionError
    session = load(path)
    assert (
        "uvm could not be stopped (the GPU fell off the bus); its last events may be missing"
        in session.notes
    )
    assert session.events.total(Kind.HTOD) == 3 * 4096
    assert not session.metadata["complete"]


class Broken(Flood):
    name = "nvml"

    def drain(self, *, last=False):
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


def test_the_timeline_follows_arrays_as_they_shrink_and_return():
    timeline = Timeline(SessionClock())
    timeline(Event(kind="array", name="rows.1", group="scratch", address=4096, nbytes=400))
    timeline(Event(kind="freed", name="rows.1", group="scratch", address=4196, nbytes=300))
    timeline(Event(kind="freed", name="rows.1", group="scratch", address=4096, nbytes=100))
    timeline(Event(kind="array", name="rows.1", group="scratch", address=8192, nbytes=8))
    lives = timeline.lifetimes()
    assert [(a.address, a.nbytes, a.level) for a in lives] == [
        (4096, 400, 1),
        (4096, 100, 1),
        (8192, 8, 1),
    ]
    assert lives[0].end_ns == lives[1].start_ns <= lives[1].end_ns <= lives[2].start_ns


def test_a_session_holds_the_plan_that_the_engine_announced():
    plan = lu.plan(n_vertices=1000, n_arcs=5000, machine="h200")
    with Recording([]) as run:
        assert run.snapshot().plan is None
        run(Event(kind="plan", phase="load", plan=plan))
        assert run.snapshot().plan == plan.to_dict()
    assert run.session.plan == plan.to_dict()


def test_iterations_reported_afterwards_lie_where_they_were():
    timeline = Timeline(SessionClock())
    timeline(Event(kind="start", phase="move", level=0))
    time.sleep(0.03)
    for number, ago in ((0, 0.02), (1, 0.01)):
        timeline(Event(kind="iteration", phase="move", iteration=number, seconds_ago=ago))
    timeline(Event(kind="end", phase="move", level=0))
    whole, first, second = timeline.phases()
    assert (whole.iteration, first.iteration, second.iteration) == (-1, 0, 1)
    assert whole.start_ns == first.start_ns < first.end_ns == second.start_ns
    assert second.seconds == pytest.approx(0.01, abs=0.005)
    assert second.end_ns < whole.end_ns


def test_a_detection_is_profiled_on_the_cpu(tmp_path):
    graph = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    events = []
    path = tmp_path / "run.npz"
    session = profile(graph, device="cpu", observer=events.append, save_to=path)
    about = session.metadata
    assert about["communities"] == 2
    assert about["complete"]
    assert about["graph"] == {"vertices": 6, "arcs": 14, "edges": 7, "weighted": False}
    assert {span.phase for span in session.phases} >= {"load", "move", "aggregate", "fetch"}
    assert any(span.iteration == 0 for span in session.phases)
    assert {array.group for array in session.lifetimes} >= {"graph", "community"}
    assert any(event.kind == "start" for event in events)
    assert session.summary()["arcs_per_second"] > 0
    assert load(path).metadata["communities"] == 2
    assert "<b>" in session._repr_html_()
    with pytest.raises(OptionError, match="tracer"):
        profile(graph, device="cpu", tracer=True)
    with pytest.raises(OptionError, match="sources"):
        profile(graph, device="cpu", sources=("papi",))


def test_accesses_of_a_cpu_run_are_modelled(tmp_path):
    session = profile(lu.Graph.from_edges([0, 1, 2], [1, 2, 0]), device="cpu")
    assert session.metadata["sources"] == {"engine": "measured", "recorder": "modelled"}
    assert evidence(session, "access") == "modelled (recorder)"
    assert evidence(session, "time") == "measured (engine)"
    assert any("accesses are modelled" in note for note in session.notes)


def test_accesses_lie_within_the_phases_that_made_them():
    session = profile(rmat(8, seed=1).graph, device="cpu")
    spans = [(s.start_ns, s.end_ns) for s in session.phases if s.iteration < 0]
    assert session.maps
    for page in session.maps:
        accessed = np.flatnonzero(page.counts.sum(axis=0))
        begin, end = page.edges[:-1][accessed], page.edges[1:][accessed]
        inside = [any(a <= b and e <= z for a, z in spans) for b, e in zip(begin, end, strict=True)]
        assert all(inside), page.array


def test_a_session_names_a_policy_that_was_an_object_or_a_file(tmp_path, monkeypatch):
    from louvain_um import api
    from louvain_um.gpu.runtime import device as devices
    from louvain_um.profiling.record import profiler

    found = devices.Choice(kind="cuda", index=0, reason="asked for")
    monkeypatch.setattr(profiler, "pick", lambda wanted: found)
    outcome = SimpleNamespace(
        provenance={}, timings={"total": 1.0}, modularity=0.5, n_communities=2, levels=(), memory={}
    )
    monkeypatch.setattr(api, "run", lambda *_: outcome)
    monkeypatch.setattr(profiler, "choose_sources", lambda *_, **__: ([], {}))
    file = tmp_path / "mine.toml"
    file.write_text('graph = "pinned"\n')
    graph = lu.Graph.from_edges([0, 1, 2], [1, 2, 0])
    for policy in (file, str(file), Policy(name="mine", placements={"graph": "pinned"})):
        session = profile(graph, device="cuda", memory=policy, sources=())
        session.save(tmp_path / "s.npz", force=True)
        assert load(tmp_path / "s.npz").metadata["policy"] == "mine"
    with pytest.raises(OptionError, match="no memory policy"):
        check(tmp_path / "t.npz", device="cuda", memory="adv10")


def test_own_code_is_recorded(tmp_path):
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
        run.array("z", x, "")
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


def test_an_interrupt_before_accesses_are_counted_is_raised(monkeypatch):
    def interrupt(launches):
        raise KeyboardInterrupt

    monkeypatch.setattr(cpu_recorder, "enumerate", interrupt, raising=False)
    with pytest.raises(KeyboardInterrupt):
        lu.profile(rmat(6).graph, device="cpu")


def test_a_run_that_is_refused_leaves_no_file(tmp_path):
    path = tmp_path / "run.npz"
    with pytest.raises(RuntimeError), recording(device="cpu", save_to=path):
        raise RuntimeError
    assert not path.exists()
    directed = lu.Graph.from_edges([0, 1], [1, 2], kind="directed")
    with pytest.raises(OptionError, match="the graph is directed"):
        profile(directed, device="cpu", save_to=path)
    assert not path.exists()


KILLED = """
import sys, time
import louvain_um.profiling.record.capture as capture
with capture.Recording([], save_to=sys.argv[1]) as run, run.phase("think"):
    print("go", flush=True)
    time.sleep(60)
"""


def test_a_run_killed_after_a_second_leaves_a_session(tmp_path):
    path = tmp_path / "run.npz"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE
    ) as child:
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

    def __init__(self):
        self.user_ns: dict[str, object] = {"x": np.zeros(4), "ran": 0}
        self.magics: dict[str, object] = {}

    def register_magic_function(self, function, kind, name):
        self.magics[name] = function

    def run_cell(self, cell):
        exec(cell, self.user_ns)


def test_a_notebook_has_a_magic(tmp_path):
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
        def run_cell(self, cell):
            return Outcome()

    shell = Failing()
    load_ipython_extension(shell)
    magic: Any = shell.magics["louvain_profile"]
    assert magic("--device cpu", "1 / 0") is None
    session: Any = shell.user_ns["session"]
    assert not session.metadata["complete"]
    assert "cut short" in session.notes[0]


ABANDONED = """
import atexit, sys
from louvain_um.profiling.record.capture import Recording
recording = Recording([])
atexit.register(lambda: print(recording._pump.is_alive()))
recording.__enter__()
sys.exit(7)
"""


def test_the_thread_of_an_abandoned_recording_ends_before_the_interpreter():
    ran = subprocess.run([sys.executable, "-c", ABANDONED], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (7, "False\n", "")


def test_launches_of_plans_are_noted():
    data = ProgramArray(name="data", shape=1 << 20, reads=Stream(), by_rows=3)
    program = Program(name="scan", arrays=[data])
    plans = {
        (3, 3): lu.plan(program, memory="device", device_budget="45%", machine="h200"),
        (3, 1): lu.plan(program, device_budget="45%", machine="h200"),
        (1, 1): lu.plan(n_vertices=10**6, n_arcs=10**7, machine="h200"),
    }
    for (before, after), plan in plans.items():
        found, seen = {}, []
        noting_launches(found, seen.append)(Event(kind="plan", plan=plan))
        assert found == {"launches": {"before": before, "after": after}}
        assert len(seen) == 1
