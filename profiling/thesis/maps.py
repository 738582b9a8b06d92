"""Sessions of the study's graphs under base, for the thesis's Figures 4.1 to 4.19."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from louvain_um.placement.machine.profiles import load_machine
from louvain_um.profiling.simulator import simulate
from louvain_um.profiling.simulator.to_session import session_of
from louvain_um.profiling.sweep.points import Settings, Subject
from louvain_um.profiling.sweep.replay import Point, replay
from louvain_um.profiling.sweep.run import Progress, ProgressCallback, recording_of

MAPPED_RATE: Final = 30.0
"""Oversubscription of the thesis's page × time maps; graphs that do not fit have their own."""


def save_sessions(
    subjects: Sequence[Subject],
    settings: Settings,
    folder: Path,
    tell: ProgressCallback,
    *,
    fresh: bool = False,
) -> None:
    """Write a session of base for each graph of a study to the folder's `sessions`."""
    machine = load_machine(settings.gpus[0])
    sessions = folder / "sessions"
    sessions.mkdir(exist_ok=True)
    for number, subject in enumerate(subjects):
        rate = MAPPED_RATE if subject.rates is None else subject.rates[0]
        path = sessions / f"{subject.name}.npz"
        if path.exists() and not fresh:
            continue
        tell(Progress(number, len(subjects), None, f"session of {subject.name}"))
        trace = recording_of(subject, settings, folder, fresh=False)
        point = Point(
            graph=subject.name, policy="base", oversubscription=rate, gpu=settings.gpus[0]
        )
        row, found = replay(trace, point, machine, driver=settings.driver)
        if found is None:
            continue
        run = simulate(
            trace, machine, placements=found.provenance["placements"],
            capacity=found.capacity_bytes, driver=settings.driver,
        )  # fmt: skip
        about = {"policy": row["policy"], "graph": {"name": subject.name}}
        session_of(trace, run, **about).save(path, force=True)
