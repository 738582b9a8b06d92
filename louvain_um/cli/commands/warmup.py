"""``louvain-um warmup``: compile kernels before they are needed, on all cores."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from louvain_um.cli import common
from louvain_um.cli.common import option
from louvain_um.cli.exit_codes import with_exit_code
from louvain_um.cli.terminal import echo
from louvain_um.core.atomic_files import replacing, temporary_folder
from louvain_um.errors import LouvainUmError, OptionError

FILES: Final = {
    "numbers.csv": "u,v\n1,2\n2,3\n3,1\n3,4\n",
    "names.csv": "u,v,weight\na,b,0.5\nb,c,2\nc,a,1\nc,d,1\n",
    "timed.csv": "u,v,time\n1,2,10\n2,3,20\n3,1,30\n3,4,40\n",
}
"""Small graphs whose reading and detection need the kernels of large ones."""

COMMANDS: Final = (
    "detect numbers.csv --device cpu -o numbers.labels.csv",
    "detect names.csv --device cpu -o names.labels.csv",
    "detect numbers.csv --device cpu --method leiden",
    "detect names.csv --device cpu --method leiden",
    "stream timed.csv -o changes.csv",
    "simulate numbers.csv",
)
"""Commands that compile what others use. Those that need the same kernel wait for each other."""

CHILD: Final = (
    "from louvain_um.formats.cells import end_with_parent; end_with_parent(); "
    "from louvain_um.__main__ import main; main()"
)
"""What runs a command in a process that ends with this one, however this one ends."""

Architecture = Annotated[
    int | None,
    option(
        "--architecture NN",
        "Compute capability to compile CUDA kernels for, such as 90; needs no GPU.  "
        "[default: that of the GPU, if there is one]",
    ),
]

Into = Annotated[
    Path | None,
    option(
        "--into FOLDER",
        "Only write the CUDA kernels of --architecture to a folder. A package that has them as "
        "louvain_um/gpu/images compiles none.",
    ),
]


@with_exit_code
def warmup(
    architecture: Architecture = None,
    into: Into = None,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
) -> None:
    """Compile all kernels now, on all cores, so that no later run has to."""
    from louvain_um.cli.progress import counted_steps

    if architecture is not None and not 50 <= architecture <= 150:
        raise OptionError(
            remedy="--architecture is a compute capability without its point, such as 90"
        )
    if into is not None and architecture is None:
        raise OptionError(remedy="--into needs --architecture, such as 90")
    since, compiling = time.perf_counter(), images(architecture, into)
    pool, children = ThreadPoolExecutor(os.cpu_count()), list[subprocess.Popen[str]]()
    with temporary_folder("louvain-um-warmup") as folder:
        for name, text in FILES.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        commands = [
            pool.submit(run, command.split(), folder, children)
            for command in COMMANDS
            if into is None
        ]
        jobs: list[Future[Any]] = [*commands, *map(pool.submit, compiling)]
        try:
            with counted_steps(quiet=quiet) as step:
                step(0, len(jobs), "compiling")
                for done, job in enumerate(as_completed(jobs), 1):
                    job.result()
                    step(done, len(jobs), "compiling")
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            while not all(command.done() for command in commands):  # after an error or a signal
                while children:
                    children.pop().kill()
                time.sleep(0.01)
    if not quiet:
        echo(f"compiled in {time.perf_counter() - since:.0f} s")


def run(command: Sequence[str], folder: Path, children: list[subprocess.Popen[str]]) -> None:
    """Run a command of this program in a folder, in a process that is listed and ends with this."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, *command, "--quiet"], cwd=folder,
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        children.append(child)
        assert child.stderr is not None
        said = child.stderr.read()  # `communicate` would close the pipe that it ends with
        child.wait()
    if child.returncode:
        raise LouvainUmError(f"louvain-um {' '.join(command)} failed: {said.strip()}")


def images(architecture: int | None, into: Path | None) -> list[Callable[[], object]]:
    """Return what compiles each CUDA source with each of its types, for a device or none."""
    from louvain_um.gpu.runtime import compile_cache, device, kernel_list

    if architecture is None:
        chosen = device.pick()
        if chosen.kind == "cpu":
            return []
        major, minor = device.capabilities()[chosen.index]
        architecture = 10 * major + minor
    target = compile_cache.target(architecture)
    units = [
        (source, names, target)
        for source in kernel_list.CATALOGUE
        for types in kernel_list.types_of(source)
        for names in kernel_list.units(kernel_list.together(source, types))
    ]
    if into is None:
        return [partial(compile_cache.cached_image, *unit) for unit in units]
    into.mkdir(parents=True, exist_ok=True)
    return [partial(write_image, into, *unit) for unit in units]


def write_image(into: Path, *unit: Any) -> None:
    """Write the image of a unit to a folder, under the name by which the package finds it."""
    from louvain_um.gpu.runtime import compile_cache

    file = into / compile_cache.shipped_file(*unit).name
    if not file.exists():
        image = compile_cache.cached_image(*unit)
        with replacing(file) as path:
            path.write_bytes(compile_cache.written(image))
