"""Policies × oversubscription × graphs: measured on a GPU, replayed on simulated ones, or both."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from louvain_um.core import parallel
from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO
from louvain_um.placement.program import Program
from louvain_um.profiling.simulator import Trace, load_trace
from louvain_um.profiling.sweep.files import SweepFolder, refuse_loss
from louvain_um.profiling.sweep.points import Settings, Subject, points
from louvain_um.profiling.sweep.replay import FinishedReplays, Point, replay
from louvain_um.profiling.sweep.replay_tables import (
    FAULTS_AT,
    assumptions_of,
    groups,
    in_hindsight,
    iterations,
    nearest_groups,
    remarks,
    unknown_arrays,
)
from louvain_um.profiling.sweep.results import Sweep
from louvain_um.profiling.thesis.published import against_thesis

__all__ = ["Settings", "Subject", "render", "sweep"]

ProgressCallback = Callable[["Progress"], None]


def sweep(
    subjects: Sequence[Subject],
    settings: Settings,
    folder: str | Path,
    *,
    force: bool = False,
    tell: ProgressCallback = lambda progress: None,
    notes: Sequence[str] = (),
) -> Sweep:
    """Run every point that is not in the folder yet; write tables and the report.

    Parameters
    ----------
    subjects : sequence of Subject
    settings : Settings
    folder : path
        Keeps finished points: a sweep that was stopped continues there, and a report on its
        folder shows the points finished so far.
    force : bool
        Start again from nothing. Without it, a folder is refused whose results the new tables
        would not hold: those of other settings, or edited ones.
    tell : callable
        Called with the progress of the sweep.
    notes : sequence of str
        Shown in the report.

    Returns
    -------
    Sweep
        The tables; the folder holds them as `results`, `groups` and `iterations` (.csv, .parquet),
        `notes.txt`, `report.html` (with Jinja), and the recordings.

    Raises
    ------
    LouvainUmError
        The folder cannot be used.
    """
    names = [subject.name for subject in subjects]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise OptionError(remedy=f"two graphs are named {twice}; rename a file")
    if settings.device is not None and any(isinstance(s.graph, Program) for s in subjects):
        raise OptionError(
            "device", settings.device, "leave device out, and name a machine",
            problem="a declared program has no kernels to measure",
        )  # fmt: skip
    machines = {gpu: load_machine(gpu) for gpu in settings.gpus}
    with SweepFolder(folder, force=force) as store:
        plan = [(s, list(points(s, settings, machines))) for s in subjects]
        every = [key for _, keys in plan for key in keys]
        if not force:
            refuse_loss(store, every)
        texts = [*notes, *assumptions_of(subjects, settings, machines)]
        if any(key not in store for key in every):
            store.begin(every, texts)
        counter = ProgressCounter(len(every), [key for key in every if key in store], tell)
        for subject, keys in plan:
            missing = [key for key in keys if key not in store]
            modelled = [key for key in missing if key["evidence"] == "modelled"]
            if modelled:
                counter.report(f"recording {subject.name}")
                trace = recording_of(subject, settings, Path(folder), fresh=force)
                _replay(store, subject, trace, modelled, machines, settings, counter)
            measured = [key for key in missing if key["evidence"] == "measured"]
            if measured:
                _measure(store, subject, measured, settings, counter)
        tables = store.rows(every)
        tables["groups"] = nearest_groups(tables["groups"], FAULTS_AT)
        tables["results"] += in_hindsight(tables["results"])
        texts += remarks(tables["results"])
        policies = map(find_policy, settings.policies)
        if settings.gpus and any(one.arrays or one.groups or one.roles for one in policies):
            for subject in subjects:
                trace = recording_of(subject, settings, Path(folder), fresh=False)
                texts += unknown_arrays(trace, settings.policies, subject.name)
        if any(subject.scale is not None for subject in subjects):
            texts += against_thesis(tables["results"])
        store.write(tables, texts)
        result = Sweep.of(tables["results"], groups=tables["groups"],
                         iterations=tables["iterations"], notes=texts)  # fmt: skip
        render(result, Path(folder))
    return result


def render(result: Sweep, folder: Path) -> None:
    """Write the report of a sweep's folder, if what it needs is installed."""
    if find_spec("jinja2") is None:
        (folder / "report.html").unlink(missing_ok=True)  # of fewer runs
        return
    from louvain_um.profiling.views.html import write

    write((), folder / "report.html", sweep=result, force=True)


def recording_of(subject: Subject, settings: Settings, folder: Path, *, fresh: bool) -> Trace:
    """Return the recording of a graph: the folder's if it has one, else a new one, saved there."""
    from louvain_um.profiling.access.recorder import record

    graph = subject.graph
    about = json.dumps(
        [subject.program, settings.method, settings.seed, *subject.size, subject.digest]
    )  # fmt: skip
    digest = hashlib.sha256(about.encode()).hexdigest()[:8]
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in subject.name)
    path = folder / f"{safe}.{digest}.trace.npz"
    if path.exists() and not fresh:
        try:
            return load_trace(path)
        except LouvainUmError:
            pass  # damaged: record it again
    if subject.record is not None:
        trace = subject.record()
    else:
        assert not isinstance(graph, Program)
        trace = record(graph, method=settings.method, seed=settings.seed)
    trace.save(path, force=True)
    return trace


def _replay(
    store: SweepFolder,
    subject: Subject,
    trace: Trace,
    keys: Sequence[dict[str, Any]],
    machines: dict[str, Machine],
    settings: Settings,
    counter: ProgressCounter,
) -> None:
    """Replay a recording at points and keep them."""
    known: dict[str, FinishedReplays] = {gpu: {} for gpu in settings.gpus}
    # auto last: it is compared with the other policies, whose runs it then reuses.
    keys = sorted(keys, key=lambda key: key["policy"] == AUTO.name)

    def one(key: dict[str, Any]) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
        policy, gpu = key["source"]
        rate = key["oversubscription"]
        point = Point(graph=key["graph"], policy=policy, oversubscription=rate, gpu=gpu)
        row, result = replay(trace, point, machines[gpu], driver=settings.driver, known=known[gpu])
        tables: dict[str, list[dict[str, Any]]] = {}
        if key["policy"] == "base" and gpu == settings.gpus[0] and result is not None:
            tables["iterations"] = iterations(key["graph"], result, rate)
            tables["groups"] = groups(trace, key["graph"], result, rate)
        return {**row, **_row_of(key), "scale": subject.scale}, tables

    for row, tables in parallel.stream(one, keys, parallel.default_threads()):
        store.add(row, **tables)
        counter.step(row)


def _measure(
    store: SweepFolder,
    subject: Subject,
    keys: Sequence[dict[str, Any]],
    settings: Settings,
    counter: ProgressCounter,
) -> None:
    """Run points on a device and keep them."""
    from louvain_um.algorithms.programs import BUILDERS
    from louvain_um.profiling.sweep.measure import measure, measure_program, warm_up

    counter.report(f"warming up for {subject.name}")
    assert not isinstance(subject.graph, Program)
    program = subject.program if subject.program in BUILDERS else None
    warm_up(subject.graph, settings, *([] if program is None else [program]))
    for key in keys:
        policy, _ = key["source"]
        where = policy, key["oversubscription"], settings
        if program is None:
            row = measure(subject.graph, *where)
        else:
            row = measure_program(program, subject.graph, *where)
        row = {**row, **_row_of(key)}
        store.add(row)
        counter.step(row)


def _row_of(key: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in key.items() if name != "source"}


@dataclass(frozen=True, slots=True)
class Progress:
    """Points done and in total, seconds left (None before the first is done), current step."""

    done: int
    total: int
    left: float | None
    text: str


class ProgressCounter:
    """Counts points and estimates the time left."""

    def __init__(self, total: int, finished: Sequence[Any], tell: ProgressCallback) -> None:
        self.total, self.done, self.tell = total, len(finished), tell
        self.new = 0
        self.since = time.perf_counter()

    def report(self, text: str) -> None:
        """Report what is being done."""
        left = None
        if self.new:
            each = (time.perf_counter() - self.since) / self.new
            left = each * (self.total - self.done)
        self.tell(Progress(self.done, self.total, left, text))

    def step(self, row: dict[str, Any]) -> None:
        """Count a point."""
        self.done += 1
        self.new += 1
        self.report(f"{row['graph']} {row['policy']} at {row['oversubscription']:g} %")
