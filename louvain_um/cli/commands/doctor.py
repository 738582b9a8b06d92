"""``louvain-um doctor``: check packages, hardware and compiled kernels."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from louvain_um.cli import common, kernel_folder, kernels_compiled, terminal
from louvain_um.cli.exit_codes import with_exit_code
from louvain_um.cli.terminal import with_flags
from louvain_um.core.headroom import host_memory
from louvain_um.errors import DeviceUnavailableError
from louvain_um.version import __version__

NEEDED = ("numpy", "scipy", "numba", "typer", "rich")
OPTIONAL = ("pandas", "pyarrow", "networkx", "igraph", "scikit-learn", "jinja2", "matplotlib")
CUDA = ("cupy-cuda12x", "cupy-cuda13x", "cuda-bindings")


@with_exit_code
def doctor(printing: common.Printing = common.Printing()) -> None:
    """Check packages, cores, memory, GPU and compiled kernels."""
    found = inspect_machine()
    if printing.json:
        common.print_json(found)
    else:
        show(found)  # also with --quiet: this is the result


def inspect_machine() -> dict[str, Any]:
    """Return what ``--json`` prints."""
    from louvain_um.core import parallel

    return {
        "schema": 1,
        "version": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: version(name) for name in (*NEEDED, *OPTIONAL, *CUDA)},
        "cores": os.cpu_count(),
        "threads": parallel.default_threads(),
        "memory_bytes": memory(),
        "gpu": gpu(),
        "cache": cache(),
    }


def version(package: str) -> str | None:
    """Return a package's version, None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def memory() -> dict[str, int | None]:
    """Return bytes of total and available memory; None if unknown."""
    found: dict[str, int | None] = {}
    for name, pages in (("total", "SC_PHYS_PAGES"), ("available", "SC_AVPHYS_PAGES")):
        known = hasattr(os, "sysconf") and pages in os.sysconf_names
        found[name] = os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE") if known else None
    # The kernel's estimate includes caches that it can drop.
    available = host_memory(swap=False)
    return found if available is None else found | {"available": available}


def gpu() -> dict[str, Any]:
    """Return whether a GPU is usable, and its description or the reason why not."""
    from louvain_um.gpu.runtime import device

    try:
        choice = device.pick("cuda")
        return {"usable": True, "reason": choice.reason, **device.describe(choice.index)}
    except DeviceUnavailableError as error:
        return {"usable": False, "reason": with_flags(error.reason)}


def cache() -> dict[str, Any]:
    """Return the cache of compiled kernels: path, writable, and whether they are in it."""
    folder = kernel_folder()
    return {
        "path": str(folder),
        "writable": os.access(nearest(folder), os.W_OK),
        "compiled": kernels_compiled(),
    }


def nearest(folder: Path) -> Path:
    """Return the folder, or its closest parent that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def show(found: dict[str, Any]) -> None:
    """Print the result as a table."""

    def gib(value: int | None) -> str:
        return "unknown" if value is None else f"{value / 2**30:.1f} GiB"

    table = terminal.new_table("<name", "<value")
    table.show_header = False
    table.add_row("louvain-um", found["version"])
    table.add_row("Python", f"{found['python']} ({sys.executable})")
    table.add_row("system", found["platform"])
    table.add_row("cores", f"{found['cores']}, {found['threads']} threads used")
    free, total = gib(found["memory_bytes"]["available"]), gib(found["memory_bytes"]["total"])
    table.add_row("memory", f"{free} free of {total}")
    card = found["gpu"]
    if card["usable"]:
        about = f"{card['name']}, {gib(card['bytes'])}, compute {card['compute_capability']}"
        table.add_row("GPU", f"{about}, driver for CUDA {card['driver_cuda']}")
    else:
        table.add_row("GPU", f"none: {card['reason']}")
    kernels = "compiled" if found["cache"]["compiled"] else "compiled on first use"
    table.add_row("kernels", kernels)
    state = "writable" if found["cache"]["writable"] else "not writable; set NUMBA_CACHE_DIR"
    table.add_row("cache", f"{found['cache']['path']} ({state})")
    for name, number in found["packages"].items():
        missing = "not installed" + ("" if name in NEEDED else " (optional)")
        table.add_row(name, number or missing)
    terminal.print_table(table)
