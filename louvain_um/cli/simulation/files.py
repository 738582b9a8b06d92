"""The files of simulated runs: results, recordings and sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from louvain_um.cli import graphs
from louvain_um.errors import LouvainUmError, OptionError

if TYPE_CHECKING:
    from louvain_um.placement.machine.machine import Machine
    from louvain_um.profiling.simulator import Driver, Simulation, Trace


def check_output_file(output: Path | None, source: str, *, force: bool) -> None:
    """Raise if the output cannot be written, before any work is done."""
    if output is None:
        return
    from louvain_um.core.atomic_files import check_output

    if output.suffix not in (".json", ".csv", ".npz"):
        raise OptionError("output", output.name, "must end in .json, .csv or .npz")
    graphs.refuse_same(source, output)
    check_output(output, force=force)


def write_results(output: Path, rows: list[dict[str, Any]], trace: Trace, *, force: bool) -> None:
    """Write the results, or the recording."""
    if output.suffix == ".npz":
        trace.save(output, force=force)
        return
    import csv
    import json

    from louvain_um.core.atomic_files import replacing

    with (
        replacing(output, force=force) as part,
        part.open("w", newline="", encoding="utf-8") as file,
    ):
        if output.suffix == ".json":
            json.dump({"schema": 1, "results": rows}, file, indent=1)
            file.write("\n")
            return
        columns = list(dict.fromkeys(name for row in rows for name in row))
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def check_session(
    path: Path, source: str, output: Path | None, *, points: int, force: bool
) -> None:
    """Raise if the session cannot be written, or if there is more than one run."""
    from louvain_um.profiling.session.storage import check_target

    if points > 1:
        raise OptionError(
            "session", f"{points} runs", "must be of one policy at one oversubscription"
        )
    graphs.refuse_same(source, path)
    if output is not None and path.resolve() == output.resolve():
        raise OptionError(
            remedy=f"{path}: --session and --output are the same file; choose two names"
        )
    check_target(path, force=force)


def save_session(
    path: Path,
    trace: Trace,
    simulation: Simulation | None,
    machine: Machine,
    driver: Driver,
    row: dict[str, Any],
    *,
    force: bool,
) -> None:
    """Simulate a run once more, with its events, and save its session."""
    from louvain_um.profiling.simulator import simulate
    from louvain_um.profiling.simulator.to_session import session_of

    if simulation is None:
        raise LouvainUmError(f"{path}: no session to save: {row['reason']}")
    run = simulate(
        simulation.trace, machine, placements=simulation.provenance["placements"],
        capacity=simulation.capacity_bytes, driver=driver, peer=simulation.provenance["peer"],
    )  # fmt: skip
    about = {"policy": row["policy"], "graph": {"name": row["graph"]}}
    session_of(trace, run, **about).save(path, force=force)
