"""Files that the package saves, and what reads each: for the fuzz of saved files."""

import contextlib
import io
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import louvain_um as lu
from louvain_um.errors import LouvainUmError
from louvain_um.generators import lfr
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.placement.policy.find import find_policy
from louvain_um.profiling.access.recorded_plans import explain_peak
from louvain_um.profiling.access.recorder import record
from louvain_um.profiling.access.recordings import recording_in
from louvain_um.profiling.facade import Session
from louvain_um.profiling.session import Lifetime, PageMap, PhaseSpan
from louvain_um.profiling.session.events import EventTable, Kind
from louvain_um.profiling.simulator import (
    Access,
    Allocate,
    Array,
    Free,
    HostTouches,
    Launch,
    Prefetch,
    Touches,
    Trace,
    simulate,
)
from louvain_um.profiling.sweep.points import Settings, Subject
from louvain_um.profiling.sweep.replay import Point, replay
from louvain_um.profiling.sweep.run import sweep as run_sweep
from tests.saved.mutations import damage


@dataclass(frozen=True)
class Saved:
    """A saved file, or a folder and the file of it that is damaged; `read` does all with it."""

    name: str
    whole: Path
    file: Path
    read: Callable[[Path], None]


def a_trace():
    arrays = (
        Array(name="targets.0", group="graph", nbytes=5 << 20),
        Array(name="labels", group="community", nbytes=1 << 20, starts="nowhere"),
        Array(name="queue", group="scratch", nbytes=40_000, starts="nowhere"),
    )
    scan = Touches.runs(
        [0, 1, 1], [0, 3, 9], [1280, 5, 1], [Access.READ, Access.ATOMIC, Access.GATHER]
    )
    steps = (
        Allocate(array=2), Launch(touches=scan, kernel="move", phase="move", level=0, iteration=0),
        HostTouches(touches=Touches.runs(0, 3, 4)), Prefetch(array=0, to="host", first=4, pages=9),
        Launch(touches=scan, compute_seconds=0.5, chain=3), Free(array=2),
    )  # fmt: skip
    return Trace(arrays, steps)


def a_session():
    arrays = [
        Lifetime(name=name, group="graph", address=4096 + (number << 22), nbytes=1 << 20,
                 start_ns=0, end_ns=40)
        for number, name in enumerate(("targets.0", "mine"))
    ]  # fmt: skip
    events = EventTable(
        {"time": [10, 20, 30], "duration": [5, 6, 0], "address": [4096, 0, 8192],
         "kind": [Kind.HTOD, Kind.KERNEL, Kind.GPU_FAULT_GROUP], "bytes": [65536, 0, 0],
         "kernel": [-1, 0, -1], "level": [0, 0, 0], "phase": [2, 2, 2], "count": [1, 1, 7]},
        ("move",),
    )  # fmt: skip
    maps = tuple(
        PageMap(array=life.name, page_bytes=4096, edges=np.array([0, 20, 40]),
                counts=np.arange(512, dtype=np.uint32).reshape(256, 2))
        for life in arrays
    )  # fmt: skip
    about = {
        "version": "0", "created": "2026-01-02T03:04:05", "device": "NVIDIA H200", "policy": "base",
        "seconds": 1.5, "complete": True, "sources": {"cupti": "measured"}, "method": "louvain",
        "graph": {"name": "g", "vertices": 9, "edges": 9, "arcs": 18, "weighted": False},
        "modularity": 0.5, "communities": 3, "timings": {"move": 1.0}, "peak_bytes": {"graph": 5},
        "budget_bytes": 1 << 30, "about_sources": {"cupti": {"events": 3, "dropped": 0}},
    }  # fmt: skip
    spans = (
        PhaseSpan(phase="move", level=0, iteration=-1, start_ns=5, end_ns=25, vertices=9, arcs=18),
        PhaseSpan(phase="move", level=0, iteration=0, start_ns=5, end_ns=15, moved=3),
    )
    plan = {"policy": "base", "arrays": [{"name": "targets.0", "group": "graph", "nbytes": 5}]}
    energy = {"joules": 2.0, "seconds": 1.5, "times_ns": [1, 2], "watts": [3.0, 4.0]}
    return Session(metadata=about, plan=plan, lifetimes=tuple(arrays), phases=spans, events=events,
                   maps=maps, notes=("a note",), energy=energy)  # fmt: skip


def read_recording(path):
    trace = recording_in(path)
    if trace is None:
        return
    explain_peak(trace)
    machine = load_machine("p4000")
    for policy in ("base", "adv2"):
        replay(trace, Point(graph="g", policy=policy, oversubscription=30.0, gpu="p4000"), machine)


def read_report(path):
    from louvain_um.cli.commands.report import write_report

    page = path.parent / "page.html"
    with contextlib.redirect_stdout(io.StringIO()):
        trace = path.parent / "trace.json" if path.suffix == ".npz" else None
        report = write_report([path], output=page, trace=trace, charts=None, force=True)
        report.summary()
        report.show()


def read_policy(path):
    policy = find_policy(str(path))
    with contextlib.suppress(LouvainUmError):
        simulate(a_trace(), "p4000", policy=policy)


def read_machine(path):
    machine = load_machine(path)
    simulate(a_trace(), machine, policy="base", capacity=8 << 20)
    replay(a_trace(), Point(graph="g", policy="auto", oversubscription=30.0, gpu="x"), machine)


def read_tracker(path):
    tracker = lu.Tracker.load(path)
    tracker.update(tracker.graph.apply(insert=([0, 1], [5, 7])))


def read_timed_edges(path):
    lu.read_stream(path, sort=True)


def saved_files(folder):
    """Yield one of each kind, written to a folder."""
    graph = lfr(300, seed=1).graph
    a_trace().save(folder / "trace.npz")
    record(graph).save(folder / "recording.npz")
    a_session().save(folder / "session.npz")
    for name in ("trace", "recording", "session"):
        path = folder / f"{name}.npz"
        yield Saved(f"simulate {name}", path, path, read_recording)
    yield Saved("report session", folder / "session.npz", folder / "session.npz", read_report)
    a_session().save(folder / "session.parquet")
    for file in sorted((folder / "session.parquet").iterdir()):
        yield Saved(f"report session {file.name}", folder / "session.parquet", file, read_report)
    sweep = folder / "sweep"
    settings = Settings(policies=("base", "adv2"), rates=(0.0, 30.0), gpus=("p4000",))
    swept = run_sweep([Subject(name="g", graph=graph)], settings, sweep)
    for file in sorted(sweep.iterdir()):
        yield Saved(f"report sweep {file.name}", sweep, file, read_report)
    rows = [dict(row) for row in swept.results]
    (folder / "results.json").write_text(json.dumps({"results": rows}))
    yield Saved("report simulate", folder / "results.json", folder / "results.json", read_report)
    following = lu.Tracker(lu.DynamicGraph(graph))
    following.save(folder / "tracker.npz")
    yield Saved("tracker", folder / "tracker.npz", folder / "tracker.npz", read_tracker)
    (folder / "calls.csv").write_text(
        "caller,callee,date,weight\n" + "ann,bob,2026-01-31,1\nbob,cid,2026-02-01,2.5\n" * 3
    )
    yield Saved("stream", folder / "calls.csv", folder / "calls.csv", read_timed_edges)
    (folder / "half.toml").write_text(
        'about = "half"\ngraph = "split(0.5)"\nhash = "device"\nothers = "managed"\n'
        '[arrays]\n"targets.0" = "host_mapped"\n'
    )
    yield Saved("policy", folder / "half.toml", folder / "half.toml", read_policy)
    for name in ("m.toml", "m.json"):
        load_machine("p4000").save(folder / name)
        yield Saved(f"machine {name}", folder / name, folder / name, read_machine)


def damaged(saved, seed, folder):
    """Return a copy of a saved file, damaged as the seed says."""
    rng = random.Random(f"{saved.name} {seed}")
    copy = folder / saved.whole.name
    if saved.whole.is_dir():
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(saved.whole, copy)
        target = copy / saved.file.name
        if saved.file.name == "points.jsonl":  # what it holds counts in a partial sweep alone
            for other in copy.iterdir():
                if other.name.startswith("results."):
                    other.unlink()
        if saved.file.suffix == ".csv":
            target.with_suffix(".parquet").unlink(missing_ok=True)
    else:
        target = copy
    target.write_bytes(damage(rng, saved.file))
    return copy


def failure_of(saved, seed, folder):
    """Return what was wrong about reading a damaged copy; None if nothing was."""
    path = damaged(saved, seed, folder)
    try:
        saved.read(path)
    except LouvainUmError as error:
        return f"more than a line: {error}" if "\n" in str(error) else None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None
