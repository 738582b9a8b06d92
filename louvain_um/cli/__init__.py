"""The command line: its commands, each of which has a module in `commands`.

Only the module of the command that runs is imported. These modules import slow libraries inside
functions, so that ``--help`` stays fast.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from louvain_um.cli.exit_codes import (
    CLOSED_PIPE,
    SIGNAL,
    Interruption,
    handler,
    open_standard_streams,
    report_error,
)
from louvain_um.cli.help import Command, Group
from louvain_um.core.atomic_files import remove_temporary_files

MMAP_THRESHOLD: Final = -3
"""M_MMAP_THRESHOLD of mallopt."""

LARGE: Final = 1 << 22
"""Bytes from which each array gets a memory mapping of its own: more than a block of a text takes,
since each new mapping is cleared by the system, while the other threads wait."""


def mmap_large_arrays() -> bool:
    """Make malloc use mmap for every large array; return whether the C library accepted."""
    # glibc starts with a threshold of 128 KiB, but raises it up to 32 MiB as mapped blocks are
    # freed. Smaller arrays then come from the heap, whose gaps are not returned to the system: a
    # fifth of the peak on graphs of a few million arcs.
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE))
    return False


def kernel_folder() -> Path:
    """Return the cache folder: NUMBA_CACHE_DIR, the package's folder or the user's cache."""
    from louvain_um.cpu import move

    kernel: Any = move.run_sweep
    return Path(kernel._cache.cache_path)


def kernels_compiled() -> bool:
    """Return whether the slowest kernel to compile is in the cache, for its current source."""
    from louvain_um.cpu import move

    kernel: Any = move.run_sweep
    line = kernel.py_func.__code__.co_firstlineno
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    return any(kernel_folder().glob(f"move.run_sweep-{line}.{python}*.nbi"))


def import_numba() -> None:
    """Import Numba without SciPy's BLAS, which no kernel here calls, to start sooner."""
    # While `arraymath` is imported, it asks `ensure_blas` whether `numpy.dot` can be compiled.
    if "numba.np.arraymath" in sys.modules:
        return
    from numba.np import linalg

    module: Any = linalg
    check = module.ensure_blas
    module.ensure_blas = _no_blas
    try:
        import numba.np.arraymath  # noqa: F401  # imported for its side effects
    finally:
        module.ensure_blas = check


def _no_blas() -> None:
    raise ImportError("louvain-um compiles nothing that calls BLAS")


PANELS: Final = {
    "Commands": {
        "detect": "Find the communities of a graph and print the largest ones.",
        "compare": "Compare two partitions of the same vertices: NMI, ARI, AMI, sizes.",
        "draw": "Draw a graph with its communities.",
        "resolution": "Detect communities at many resolutions; print the plateaus to choose from.",
        "ensemble": "Detect with many seeds; print their agreement and a consensus.",
        "stream": "Follow communities through timed edges; write them as they change.",
        "convert": "Convert a graph to another format.",
        "generate": "Generate a graph: `louvain-um generate lfr 100000 -o g.mtx`.",
        "doctor": "Check packages, cores, memory, GPU and compiled kernels.",
    },
    "Memory": {
        "plan": "Predict memory, placements and time of a run; needs no GPU.",
        "profile": "Run an algorithm and record accesses, page faults and migrations by array.",
        "attach": "Run a CUDA program unchanged; record and place its memory by call site.",
        "report": "Show a recorded run: time, memory traffic, bottleneck and what to try.",
        "simulate": "Simulate policies on a GPU with limited memory; needs no GPU.",
        "sweep": "Run graphs × policies × oversubscription; write tables and a report.",
        "calibrate": "Measure a GPU and its bus in under a minute and save the profile for plans.",
    },
    "More": {
        "warmup": "Compile all kernels now, on all cores, so that no later run has to.",
        "run": "Run a graph algorithm: `louvain-um run bfs friends.csv --source ann "
        "-o distances.csv`.",
        "stores": "Compare stores of changing graphs: rates, bytes per arc, moved bytes, "
        "traversal.",
    },
}
"""By title, the commands and what each does, as the list of commands shows them."""

COMMANDS: Final = {name: about for panel in PANELS.values() for name, about in panel.items()}


class Commands(Group):
    """All commands, in the order of `PANELS`; each is made when it is asked for."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]  # names for suggestions

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"louvain_um.cli.commands.{cmd_name}")
        if hasattr(module, "app"):
            group = typer.main.get_group(module.app)
            group.name = cmd_name
            return group
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(cmd_name, cls=Command)(getattr(module, cmd_name))
        return typer.main.get_command(single)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        for title, commands in PANELS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


app = typer.Typer(
    name="louvain-um",
    cls=Commands,
    help="Find communities in large graphs.",
    epilog="`louvain-um COMMAND --help` explains a command. GRAPH is a file or "
    "example:les-miserables; - is standard input, also instead of a file of labels or vertices.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def print_version(requested: bool) -> None:
    """Print the version and exit."""
    if requested:
        from louvain_um.version import __version__

        typer.echo(f"louvain-um {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Find communities in large graphs."""


def main() -> None:
    """Run the command line; the entry point of ``louvain-um``."""
    try:
        run()
    except KeyboardInterrupt as error:  # before signals were handled, or while one was reported
        raise SystemExit(report_error(error)) from None
    except SystemExit as end:
        if handler.first is not None and threading.active_count() > 1:
            # Python would wait for threads, such as one that compiles, and nothing stops those.
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            os._exit(int(end.code or 0))
        raise
    finally:
        handler.remove()
        # At exit, the garbage collector would look at all objects again, for a tenth of a second.
        gc.freeze()


def run() -> None:
    """Handle signals, and run the command that the arguments name."""
    # Imports create some 100,000 objects and no garbage. At the default threshold the garbage
    # collector takes a tenth of a short command's time.
    gc.set_threshold(200_000, 20, 20)
    mmap_large_arrays()
    handler.install()
    try:
        open_standard_streams()
        app(prog_name="louvain-um")
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # met by Rich or by the parser
            raise SystemExit(CLOSED_PIPE) from None
        # The parser of arguments ends silently, with its own code, where a signal interrupts it.
        if handler.first is None or end.code == SIGNAL + handler.first:
            raise
        raise SystemExit(report_error(Interruption(handler.first))) from None
    except (Exception, KeyboardInterrupt) as error:
        # Commands report their own errors. This one came from the help: a full disk or Ctrl-C.
        raise SystemExit(report_error(error)) from None
    finally:
        remove_temporary_files()
