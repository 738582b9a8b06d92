"""CUPTI's shared library: its location, and remedies for its errors."""

from __future__ import annotations

import ctypes
import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from louvain_um.profiling.sources.source import SourceUnavailableError

INSTALL = "pip install nvidia-cuda-cupti (CUDA 12: nvidia-cuda-cupti-cu12)"

ANOTHER_PROFILER = 39
REMEDIES = {
    14: "it does not fit the driver; install the one of the driver's CUDA version, " + INSTALL,
    28: "this system has no unified-memory counters; the other sources go on",
    29: "this GPU has no unified-memory counters, which take one of compute capability 6.0",
    30: "GPUs without peer access have no unified-memory counters; show the process one of them "
    "with CUDA_VISIBLE_DEVICES",
    31: "there are no unified-memory counters under MPS; run without it",
    33: "this virtual GPU allows no profiling; ask whoever runs the machine to allow it",
    35: "the driver lets only administrators profile; run as root, or load the module nvidia with "
    "NVreg_RestrictProfilingToAdminUsers=0",
    ANOTHER_PROFILER: "another profiler is attached to this process; run without nsys, ncu or "
    "the other tool",
    40: "this virtual GPU lets only administrators profile; ask whoever runs the machine",
    41: "the GPU runs in confidential mode, which allows no profiling",
    43: "a slice of a GPU (MIG) cannot be profiled like this; use a whole one",
    45: "CUPTI's counters do not work under WSL; use Linux itself",
}
"""What to do about a status; any other is named by CUPTI's own text."""


class Library:
    """The functions of libcupti that the source calls."""

    def __init__(self) -> None:
        self.path, self.handle = _open()
        self.handle.cuptiGetResultString.argtypes = [ctypes.c_int, ctypes.c_void_p]
        self.handle.cuptiActivityGetNextRecord.argtypes = [
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_void_p,
        ]
        self.handle.cuptiActivityGetNumDroppedRecords.argtypes = [
            ctypes.c_void_p,
            ctypes.c_uint32,
            ctypes.c_void_p,
        ]

    def call(self, name: str, *args: Any) -> int:
        """Call a function and return its status, 0 if all is well."""
        try:
            function = getattr(self.handle, f"cupti{name}")
        except AttributeError:
            raise SourceUnavailableError(
                f"CUPTI: {self.path} has no cupti{name}; {INSTALL} brings one that has"
            ) from None
        return int(function(*args))

    def check(self, name: str, *args: Any) -> None:
        """Call a function; raise an error with a remedy if it fails."""
        status = self.call(name, *args)
        if status:
            raise SourceUnavailableError(f"CUPTI: {self.explain(status)}")

    def explain(self, status: int) -> str:
        """Return what a status means and what to do about it."""
        if status in REMEDIES:
            return REMEDIES[status]
        text = ctypes.c_char_p()
        self.call("GetResultString", status, ctypes.byref(text))
        name = text.value.decode() if text.value else f"status {status}"
        return f"it refused with {name}; see whether nvidia-smi works"

    @property
    def version(self) -> int:
        """CUPTI's API version."""
        number = ctypes.c_uint32()
        self.call("GetVersion", ctypes.byref(number))
        return number.value

    def timestamp(self) -> int:
        """Return CUPTI's time in nanoseconds."""
        now = ctypes.c_uint64()
        self.call("GetTimestamp", ctypes.byref(now))
        return now.value


def _open() -> tuple[str, Any]:
    broken = ""
    for path in _candidates():
        try:
            return path, ctypes.CDLL(path)
        except OSError as error:
            if os.path.exists(path):
                broken = f" ({error})"
    raise SourceUnavailableError(f"CUPTI is not installed{broken}; {INSTALL}")


def _candidates() -> Iterator[str]:
    """Yield where libcupti may be: asked for, wheels, the toolkit, the system's own places."""
    asked = os.environ.get("LOUVAIN_UM_CUPTI")
    if asked:
        yield asked
        return
    site = Path(sysconfig.get_paths()["purelib"])
    folders = [site / "nvidia/cu13/lib", site / "nvidia/cuda_cupti/lib"]
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if variable in os.environ:
            home = Path(os.environ[variable])
            folders += [home / "extras/CUPTI/lib64", home / "lib64"]
    folders += [Path("/usr/local/cuda/extras/CUPTI/lib64"), Path("/usr/local/cuda/lib64")]
    for folder in folders:
        yield from (str(path) for path in sorted(folder.glob("libcupti.so.[0-9]*"), reverse=True))
    yield from ("libcupti.so.13", "libcupti.so.12", "libcupti.so")
