"""CUDA kernels compiled for the CPU: one library for each C++ file of this folder."""

import ctypes
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import pytest

from louvain_um.gpu.runtime.compile_cache import BLOCKED, DEFINES, FOLDER, cache_folder

HERE: Final = Path(__file__).parent

REPLACED: Final = {
    # The one line that is not C++; times of sweeps are not emulated.
    'asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));': "now = 0;",
    # A block that waits for others at a barrier lets them have the processor.
    "& flag) == 0) {\n": "& flag) == 0) {\nfibres::wait_for_blocks();",
}
"""Text of the kernels, and what is emulated in its place."""

# As on the device: no multiplication and addition in one. Pragmas are the device compiler's, and
# jumps between stacks look wrong to what checks them.
OPTIONS: Final = (
    "-std=c++17", "-O1", "-w", "-fpermissive", "-ffp-contract=off", "-U_FORTIFY_SOURCE", "-fPIC",
    "-shared", "-pthread", "-DCHANGES_A_BLOCK=16", "-DPARTITION_PROBES=8", *DEFINES,
)  # fmt: skip


class Libraries(dict[str, ctypes.CDLL]):
    """Libraries by name; each is compiled, or taken from the cache, when first asked for."""

    def __missing__(self, name):
        self[name] = library = ctypes.CDLL(str(compiled(name)))
        return library

    def fronted(self, name, front):
        """Return a library with a text in front of its sources."""
        if not front:
            return self[name]
        whole = f"{name}-{hashlib.sha256(front.encode()).hexdigest()[:8]}"
        if whole not in self:
            made = compiled(whole, f'{front}#include "{name}.cpp"\n')
            self[whole] = ctypes.CDLL(str(made))
        return self[whole]


@functools.cache
def libraries():
    """Return the libraries; a test that needs them is skipped where there is no compiler."""
    if shutil.which("g++") is None:
        pytest.skip("no g++ here")
    return Libraries()


@functools.cache
def sources():
    """Return the text of every kernel, and of the C++ files here, by the file's name."""
    files = [BLOCKED, *FOLDER.rglob("*.cu"), *FOLDER.rglob("*.cuh"), *HERE.glob("*.[ch]*")]
    texts = {file.name: file.read_text() for file in files}
    for text, emulation in REPLACED.items():
        assert any(text in each for each in texts.values()), f"no kernel has {text}"
        texts = {name: each.replace(text, emulation) for name, each in texts.items()}
    return texts


def compiled(name, made=None):
    """Return the library of a C++ file, or of this text.

    One of several processes compiles, the others wait.
    """
    with tempfile.TemporaryDirectory() as at:
        for file, text in (sources() | ({f"{name}.cpp": made} if made else {})).items():
            Path(at, file).write_text(text)
        # What a library depends on, whichever headers that are.
        command = ["g++", *OPTIONS, f"-I{at}", f"{at}/{name}.cpp"]
        text = run([*command, "-E", "-P"])
        digest = hashlib.sha256(f"{run(['g++', '--version'])}{OPTIONS}{text}".encode()).hexdigest()
        library = cache_folder() / f"{digest[:40]}-{name}.so"
        cache_folder().parent.mkdir(parents=True, exist_ok=True)
        cache_folder().mkdir(mode=0o700, exist_ok=True)
        with open(cache_folder() / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not library.exists():
                run([*command, "-o", f"{at}/{name}.so"])
                shutil.copy(f"{at}/{name}.so", library.with_suffix(".new"))
                os.replace(library.with_suffix(".new"), library)
    return library


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
