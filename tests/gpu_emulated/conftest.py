"""CUDA kernels compiled for the CPU."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from louvain_um.gpu.runtime.image_cache import cache_folder
from louvain_um.gpu.runtime.images import BLOCKED, FOLDER

HERE = Path(__file__).parent
SOURCES = (
    "move", "aggregate", "relabel", "algorithms", "extended", "batches", "follow", "any_moving",
    "any_aggregating", "any_relabelling", "ouroboros", "interleavings", "queued", "byte_sizes",
    "targets24",
)  # fmt: skip
REPLACED = {
    # The one line that is not C++; times of sweeps are not emulated.
    'asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));': "now = 0;",
    # A block that waits for others at a barrier lets them have the processor.
    "& flag) == 0) {\n": "& flag) == 0) {\nfibres::wait_for_blocks();",
}
"""Text of the kernels, and what is emulated in its place."""

# As on the device: no multiplication and addition in one. Pragmas are the device compiler's, and
# jumps between stacks look wrong to what checks them.
OPTIONS = (
    "-std=c++17", "-O2", "-w", "-fpermissive", "-ffp-contract=off", "-U_FORTIFY_SOURCE", "-fPIC",
    "-shared", "-pthread", "-DCHANGES_A_BLOCK=16", "-DPARTITION_PROBES=8",
)  # fmt: skip


@pytest.fixture(scope="session")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ctypes.CDLL]:
    """Libraries of kernels, compiled for the CPU, or cached beside those for devices."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ here")
    folder = tmp_path_factory.mktemp("emulated")
    files = sorted([BLOCKED, *FOLDER.rglob("*.cu"), *FOLDER.rglob("*.cuh"), *HERE.glob("*.[ch]*")])
    contents = {file.name: file.read_text() for file in files}
    for text, emulation in REPLACED.items():
        assert any(text in content for content in contents.values()), f"no kernel has {text}"
        contents = {name: c.replace(text, emulation) for name, c in contents.items()}
    for name, content in contents.items():
        (folder / name).write_text(content)
    release = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    texts = [release, repr((OPTIONS, REPLACED)).encode(), *(file.read_bytes() for file in files)]
    digest = hashlib.sha256(b"\0".join(texts)).hexdigest()[:40]
    cached = {name: cache_folder() / f"{digest}-{name}.so" for name in SOURCES}
    cache_folder().parent.mkdir(parents=True, exist_ok=True)
    cache_folder().mkdir(mode=0o700, exist_ok=True)
    with open(cache_folder() / "emulated.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one of several processes compiles, and the others wait
        missing = [name for name, library in cached.items() if not library.exists()]
        running = []
        for name in missing:
            arguments = [str(folder / f"{name}.cpp"), "-o", str(folder / f"{name}.so")]
            command = [compiler, *OPTIONS, f"-I{folder}", *arguments]
            running.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        for process in running:
            _, errors = process.communicate(timeout=600)
            assert process.returncode == 0, errors[-2000:]
        for name in missing:
            shutil.copy(folder / f"{name}.so", cached[name].with_suffix(".new"))
            os.replace(cached[name].with_suffix(".new"), cached[name])
    return {name: ctypes.CDLL(str(library)) for name, library in cached.items()}
