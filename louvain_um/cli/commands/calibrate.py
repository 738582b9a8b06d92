"""``louvain-um calibrate``: measure this machine, so that plans and predictions are about it."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from louvain_um.cli import common
from louvain_um.cli.guard import guarded, say

if TYPE_CHECKING:
    from louvain_um.placement.machine.machine import Machine

Out = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="Write here (.json or .toml) instead of where plans look for this device.",
    ),
]
Device = Annotated[str, typer.Option(metavar="D", help="cuda or cuda:N.")]

UNITS = {
    "bandwidth": "GB/s",
    "copy": "GB/s",
    "prefetch": "GB/s",
    "migrate": "GB/s",
    "evict": "GB/s",
    "rate": "M/s",
    "seconds": "µs",
    "cache": "MiB",
    "bytes": "GiB",
}
"""Words in a figure's name, and the unit that people read it in; the first that fits counts."""

SCALES = {"GB/s": 1e-9, "M/s": 1e-6, "µs": 1e6, "MiB": 2**-20, "GiB": 2**-30}


@guarded
def calibrate(
    output: Out = None,
    device: Device = "cuda",
    force: common.Force = False,
    json: common.Json = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
) -> None:
    """Measure a GPU and its bus in under a minute, and keep the figures for plans."""
    from louvain_um.cli.progress import reporting
    from louvain_um.core.atomic_files import check_output
    from louvain_um.placement.machine.calibrate import calibrate as measure

    index, name = pick_gpu(device)
    path = output or place_for(name)
    check_output(path, force=force)
    since = time.perf_counter()
    with reporting(quiet=quiet) as reporter:

        def step(what: str, done: int, steps: int) -> None:
            reporter.step(f"measuring {what}")
            if reporter.progress is not None:
                reporter.progress.update(reporter.task, completed=done, total=steps)

        machine = measure(index, step)
    machine.save(path, force=force)
    seconds = time.perf_counter() - since
    if json:
        found = {"schema": 1, "path": str(path), "seconds": seconds, "machine": machine.to_dict()}
        common.print_json(found)
        return
    show(machine)
    if not quiet:
        use = "plans on this machine use it" if output is None else "pass it as a machine profile"
        say(f"{path}: written after {seconds:.1f} s; {use}")


def pick_gpu(device: str) -> tuple[int, str]:
    """Return number and name of the device that an option means; the CPU is none."""
    from louvain_um.errors import DeviceUnavailableError, OptionError
    from louvain_um.gpu.runtime.device import describe, pick

    if not device.startswith("cuda"):
        raise OptionError(f"device must be cuda or cuda:N to be calibrated, not {device!r}")
    number = device.partition(":")[2]
    if device != "cuda" and not (device.startswith("cuda:") and number.isdecimal()):
        raise OptionError(f"device must be cuda or cuda:N, not {device!r}")
    try:
        index = pick(device).index
    except DeviceUnavailableError as error:
        # The CPU, which other commands may use instead, is of no use here.
        reason = re.sub(r"(;|, or| or)( use)? device='cpu'", "", error.reason)
        if reason == error.reason:
            raise
        raise DeviceUnavailableError(
            f"{reason}; only a GPU can be calibrated, plans without one take --machine h200"
        ) from None
    return index, str(describe(index)["name"])


def place_for(name: str) -> Path:
    """Return where the figures of a device are kept; its folder exists afterwards."""
    from louvain_um.errors import LouvainUmError
    from louvain_um.placement.machine.machine_choice import calibrated_file

    path = calibrated_file(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LouvainUmError(
            f"{path.parent}: {error.strerror}; name a file with -o, or a folder that can be "
            "written in LOUVAIN_UM_MACHINES"
        ) from None
    return path


def show(machine: Machine) -> None:
    """Print figures with units, and what is not measured."""
    from louvain_um.cli import tables

    table = tables.new_table()
    table.add_column("figure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("how")
    for name, value in machine.to_dict().items():
        if name not in ("name", "notes"):
            table.add_row(name, written(name, value), machine.notes.get(name, "measured"))
    console = tables.console()
    console.print(machine.name)
    console.print(table)


def written(name: str, value: Any) -> str:
    """Return a figure with its unit; its name says which."""
    unit = next((unit for word, unit in UNITS.items() if word in name), "")
    if not unit:
        return f"{value}"
    scaled = value * SCALES[unit]
    return f"{scaled:,.0f} {unit}" if scaled >= 1000 else f"{scaled:.4g} {unit}"
