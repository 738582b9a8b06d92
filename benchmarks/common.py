"""Shared by the benchmarks: graphs by name, the machine, timing, result files."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import louvain_um as lu
from louvain_um import generators

HERE = Path(__file__).resolve().parent
DATA = (HERE.parent / "../shared/data").resolve()
RESULTS = HERE / "results"

GENERATED: dict[str, tuple[str, Any]] = {
    **{f"rmat{s}": ("rmat", s) for s in (16, 18, 20, 22, 24, 26)},
    **{f"lfr{s}": ("lfr", 1 << s) for s in (16, 18, 20, 22, 24, 26)},
    **{f"stencil{d}": ("stencil", (d, d, d)) for d in (50, 150, 300, 560)},
}
"""Name → kind and size; other arguments are the generators' defaults, with seed 0."""

STANDARD = ("rmat18", "rmat22", "rmat24", "lfr20", "lfr22", "lfr24", "stencil150")


def real_names(data: Path = DATA) -> list[str]:
    """Return the files of real graphs, without label files."""
    if not data.is_dir():
        return []
    names = sorted(file.name for file in data.iterdir())
    return [n for n in names if n != "README.md" and not re.search(r"labels|truePartition", n)]


def host_graph(name: str, data: Path = DATA) -> lu.Graph:
    """Return a graph in host memory."""
    if name in GENERATED:
        kind, size = GENERATED[name]
        return generators.GENERATORS[kind](size).graph
    return lu.read_graph(data / name)


def device_graph(name: str, data: Path = DATA) -> Any:
    """Return a graph in the current device's memory, generated there if possible.

    ``kind:n`` is a kind of `kinds.py` with about n million arcs.
    """
    from louvain_um.gpu.generate import generate
    from louvain_um.gpu.graph import DeviceGraph

    if name in GENERATED:
        kind, size = GENERATED[name]
        return getattr(generate, kind)(size).graph
    if ":" in name:
        import cupy
        import kinds

        kind, millions = name.split(":")
        return kinds.made(cupy, kind, int(float(millions) * 1e6))
    return DeviceGraph.from_host(lu.read_graph(data / name))


def machine() -> dict[str, Any]:
    """Return the machine: processor, memory, device, versions."""
    about: dict[str, Any] = {
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "system": platform.system() + " " + platform.release(),
        "python": platform.python_version(),
        "louvain_um": lu.__version__,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    try:
        from louvain_um.gpu.runtime.compile_cache import compiler
        from louvain_um.gpu.runtime.device import describe, pick

        about["device"] = describe(pick("cuda").index)
        about["nvrtc"] = ".".join(map(str, compiler().version))
        driver = Path("/proc/driver/nvidia/version")
        if driver.exists():
            about["device"]["driver"] = driver.read_text().splitlines()[0]
    except lu.LouvainUmError:
        about["device"] = None
    return about


def _cpu_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    found = re.search(r"model name\s*:\s*(.*)", text)
    return found.group(1) if found else platform.machine()


def bandwidth() -> float:
    """Return the device's bandwidth in bytes/s, measured by a copy; reads and writes count."""
    import cupy

    nbytes = 1 << 30
    source, target = cupy.zeros(nbytes, cupy.uint8), cupy.zeros(nbytes, cupy.uint8)
    seconds = [device_seconds(lambda: target.__setitem__(..., source)) for _ in range(12)]
    return 2 * nbytes / statistics.median(seconds[2:])


def device_seconds(call: Callable[[], Any]) -> float:
    """Return the seconds of a call between two events of the device."""
    import cupy

    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    call()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3


class Peak:
    """The most resident bytes of this process within a block, above those at its begin."""

    above = 0

    def __enter__(self) -> Peak:
        self.base = resident("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # VmHWM becomes what is resident now
        return self

    def __exit__(self, *_: object) -> None:
        self.above = resident("VmHWM") - self.base


def resident(name: str) -> int:
    """Return what Linux says of this process's resident bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


def timed(function: Callable[[], Any], runs: int) -> tuple[Any, list[float]]:
    """Return the last result of a function and the seconds of each run."""
    seconds = []
    result = None
    for _ in range(runs):
        result = None  # so that memory of two runs is never held at once
        since = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - since)
    return result, seconds


def digest(*arrays: Any) -> str:
    """Return a short digest of labels, or of other arrays."""
    found = hashlib.blake2b(digest_size=8)
    for array in arrays:
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def synchronize() -> None:
    """Wait for the current device."""
    import cupy

    cupy.cuda.Device().synchronize()


ALGORITHM = ("move", "refine", "aggregate")
"""Phases of the algorithm, without loading the graph and fetching labels."""


def algorithm_seconds(timings: Any) -> float:
    """Return the seconds of moving, refining and aggregating."""
    return float(sum(timings.get(phase, 0.0) for phase in ALGORITHM))


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser that a script's first line describes, with the record's file as `-o`."""
    found = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    found.add_argument("-o", "--output", type=Path, help="the record's file")
    return found


def replaced(
    rows: Iterable[dict[str, Any]], row: dict[str, Any], *keys: str
) -> list[dict[str, Any]]:
    """Return rows with a new one in place of those that have the same values of some keys."""
    return [*(each for each in rows if any(each[k] != row[k] for k in keys)), row]


def saved(name: str, device: str, out: Path | None) -> Path:
    """Return the file of a record: of a GPU, it has the GPU's name, as in dynamic_h200."""
    if out is not None or device == "cpu":
        return out or RESULTS / f"{name}.json"
    return RESULTS / f"{name}_{machine()['device']['name'].split()[-1].lower()}.json"


def kept(name: str, out: Path | None, device: str = "cpu") -> dict[str, Any]:
    """Return the record that exists, whose parts stay until they are measured again, or none."""
    file = saved(name, device, out)
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


def save(name: str, record: dict[str, Any], out: Path | None, device: str = "cpu") -> Path:
    """Write a record as JSON, by default to benchmarks/results."""
    file = saved(name, device, out)
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(as_text(record) + "\n", encoding="utf-8")
    os.replace(part, file)
    return file


def as_text(value: Any, depth: int = 0) -> str:
    """Return JSON with one line per item of the outer lists and objects."""
    items = []
    if isinstance(value, dict) and depth < 2:
        items = [f"{json.dumps(key)}: {as_text(each, depth + 1)}" for key, each in value.items()]
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        items = [json.dumps(each) for each in value]
    if not items:
        return json.dumps(value)
    pad, (begin, end) = " " * depth, "{}" if isinstance(value, dict) else "[]"
    return f"{begin}\n{pad} " + f",\n{pad} ".join(items) + f"\n{pad}{end}"
