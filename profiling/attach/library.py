"""The library that the driver loads into a program: a wheel's, or compiled once on this machine."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from louvain_um.core import private_files
from louvain_um.errors import DeviceUnavailableError, LouvainUmError
from louvain_um.gpu.runtime.compile_cache import cache_folder
from louvain_um.profiling.sources.cupti import Library

SOURCE: Final = Path(__file__).with_name("inject.c")
PARTS: Final = (SOURCE, SOURCE.with_name("trace.c"))
PREBUILT: Final = SOURCE.with_suffix(".so")
"""Made with a wheel, by `setup.py`."""

OPTIONS: Final = ("-O2", "-shared", "-fPIC", "-pthread")


def compiled() -> Path:
    """Return the library's file, compiled if neither the package nor this user's cache has it."""
    with suppress(OSError):  # made for another system
        return Path(ctypes.CDLL(str(PREBUILT))._name)
    compiler = _compiler()
    parts = (
        *(part.read_bytes() for part in PARTS),
        *map(str.encode, (*OPTIONS, platform.machine(), compiler)),
    )
    name = hashlib.sha256(b"\0".join(parts)).hexdigest()[:40]
    file = cache_folder() / f"{name}.so"
    if private_files.read(file) is None:
        with private_files.made_once(file):
            if private_files.read(file) is None:
                private_files.write(file, _compile(compiler))
    if private_files.read(file) is None:
        raise LouvainUmError(
            f"{file.parent}: others can write there; set LOUVAIN_UM_CACHE to a folder of your own"
        )
    return file


def _compiler() -> str:
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        path = shutil.which(name) if name else None
        if path:
            return path
    raise LouvainUmError("attach needs a C compiler and found none; install gcc, or name one in CC")


def _compile(compiler: str) -> bytes:
    with TemporaryDirectory() as folder:
        made = Path(folder, "inject.so")
        command = [compiler, *OPTIONS, str(SOURCE), "-o", str(made), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not made.is_file():
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise LouvainUmError(
                f"{compiler} could not compile the library of attach: {reason}; name another "
                "compiler in CC"
            )
        return made.read_bytes()


def environment(
    folder: Path, socket: Path, *, placed: bool, decides: bool, guarded: bool, traced: bool
) -> dict[str, str]:
    """Return the variables with which a program loads the library and records into a folder."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise DeviceUnavailableError(
            "no NVIDIA driver was found (libcuda.so.1); attach where nvidia-smi works"
        ) from None
    found = {
        "CUDA_INJECTION64_PATH": str(compiled()),
        "LOUVAIN_UM_ATTACH": str(folder),
        "LOUVAIN_UM_ATTACH_CUPTI": Library().path,
    }
    if placed:
        found["LOUVAIN_UM_ATTACH_POLICY"] = str(socket)
    if decides:
        found["LOUVAIN_UM_ATTACH_DECIDES"] = "1"
    if not guarded:
        found["LOUVAIN_UM_ATTACH_UNGUARDED"] = "1"
    if traced:
        preloaded = found["CUDA_INJECTION64_PATH"]
        if {" ", ":"} & set(preloaded):
            raise LouvainUmError(
                f"{preloaded}: has a space or colon, and cannot be preloaded; set LOUVAIN_UM_CACHE"
            )
        found["LOUVAIN_UM_ATTACH_TRACE"] = str(socket)
        found["LD_PRELOAD"] = ":".join(filter(None, (preloaded, os.environ.get("LD_PRELOAD"))))
        found["CUPY_COMPILE_WITH_PTX"] = "1"  # not to machine code
    return os.environ | found


def driver_release() -> tuple[int, int]:
    """Return the CUDA release of the driver."""
    number = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number))
    return number.value // 1000, number.value % 1000 // 10
