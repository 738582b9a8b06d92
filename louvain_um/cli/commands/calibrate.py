"""``louvain-um calibrate``: measure this machine and save its profile for plans."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from louvain_um.cli import common, terminal
from louvain_um.cli.common import option
from louvain_um.cli.exit_codes import with_exit_code
from louvain_um.cli.terminal import echo, print_line
from louvain_um.core.atomic_files import check_output
from louvain_um.errors import DeviceUnavailableError, LouvainUmError, OptionError
from louvain_um.options import Options

if TYPE_CHECKING:
    from louvain_um.placement.machine.machine import Machine

Out = Annotated[
    Path | None,
    option(
        "--output -o OUT",
        "Profile to write, .json or .toml.  [default: where plans look for this GPU]",
    ),
]
Device = Annotated[str, option("--device DEVICE", "cuda or cuda:N.")]

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
"""Words in a figure's name and the unit to print it in; the first match counts."""

SCALES = {"GB/s": 1e-9, "M/s": 1e-6, "µs": 1e6, "MiB": 2**-20, "GiB": 2**-30}


@with_exit_code
def calibrate(
    output: Out = None,
    device: Device = "cuda",
    peer_memory: common.Peer = None,
    force: common.Force = False,
    json: common.Json = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
) -> None:
    """Measure a GPU and its bus in under a minute and save the profile for plans."""
    from louvain_um.cli.progress import progress_reporter
    from louvain_um.placement.machine.calibrate import calibrate as measure
    from louvain_um.placement.memory.guard import peer_for

    Options(peer_memory=peer_memory)  # checks it
    index, name = find_gpu(device)
    path = output or profile_path(name)
    check_output(path, force=force)
    start = time.perf_counter()
    with progress_reporter(quiet=quiet) as reporter:

        def show_progress(name: str, done: int, steps: int) -> None:
            reporter.step(f"measuring {name}")
            if reporter.progress is not None:
                reporter.progress.update(reporter.task, completed=done, total=steps)

        machine = measure(index, show_progress, peer=peer_for(peer_memory, index))
    machine.save(path, force=force)
    seconds = time.perf_counter() - start
    if json:
        result = {"schema": 1, "path": str(path), "seconds": seconds, "machine": machine.to_dict()}
        common.print_json(result)
        return
    show(machine)
    if not quiet:
        use = "plans on this machine use it" if output is None else "pass it with --machine"
        print_line(f"{path}: written after {seconds:.1f} s; {use}")


def find_gpu(device: str) -> tuple[int, str]:
    """Return number and name of the GPU that an option names."""
    from louvain_um.gpu.runtime.device import describe, pick

    if not device.startswith("cuda"):
        raise OptionError(
            "device", device, "must be cuda or cuda:N, since only GPUs can be calibrated"
        )
    number = device.partition(":")[2]
    if device != "cuda" and not (device.startswith("cuda:") and number.isdecimal()):
        raise OptionError("device", device, "must be cuda or cuda:N")
    try:
        index = pick(device).index
    except DeviceUnavailableError as error:
        # Drop the advice to use the CPU: it cannot be calibrated.
        reason = re.sub(r"(;|, or| or)( use)? device='cpu'", "", error.reason)
        if reason == error.reason:
            raise
        raise DeviceUnavailableError(
            f"{reason}; only a GPU can be calibrated. To plan without one, use --machine h200"
        ) from None
    return index, str(describe(index)["name"])


def profile_path(name: str) -> Path:
    """Return the path of a GPU's profile, and create its folder."""
    from louvain_um.placement.machine.profiles import calibrated_file

    path = calibrated_file(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LouvainUmError(
            f"{path.parent}: {error.strerror}; name a file with -o, or a writable folder in "
            "LOUVAIN_UM_MACHINES"
        ) from None
    return path


def show(machine: Machine) -> None:
    """Print the figures with units, and which are not measured."""
    table = terminal.new_table("value", "<source", label="figure")
    for name, value in machine.to_dict().items():
        if name not in ("name", "notes"):
            table.add_row(name, with_unit(name, value), machine.notes.get(name, "measured"))
    echo(machine.name)
    terminal.print_table(table)


def with_unit(name: str, value: Any) -> str:
    """Return a figure with the unit that its name implies."""
    unit = next((unit for word, unit in UNITS.items() if word in name), "")
    if not unit:
        return f"{value}"
    scaled = value * SCALES[unit]
    return f"{scaled:,.0f} {unit}" if scaled >= 1000 else f"{scaled:.4g} {unit}"
