"""The loop of kernel blocking, emulated on the CPU: every element once, pages of a warp's own."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from louvain_um.placement.program import HEADER

HERE = Path(__file__).parent
OPTIONS = ("-std=c++17", "-O1", "-w", "-fpermissive", "-U_FORTIFY_SOURCE", "-fPIC", "-shared",
           "-pthread")  # fmt: skip
THREADS = 256


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ here")
    folder = tmp_path_factory.mktemp("blocked")
    (folder / "blocked.cuh").write_text(HEADER)
    command = [compiler, *OPTIONS, f"-I{HERE}", f"-I{folder}", str(HERE / "blocked.cpp"), "-o"]
    done = subprocess.run([*command, str(folder / "blocked.so")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return ctypes.CDLL(str(folder / "blocked.so"))


@pytest.mark.parametrize("count", [0, 1, 31, 1024, 1025, 100_003])
@pytest.mark.parametrize("pages", [1, 3, 10])
@pytest.mark.parametrize("bytes_", [4, 12])
def test_every_element_comes_once_and_a_page_is_one_warps(library, count, pages, bytes_):
    blocks = 2
    visits, warps, steps = (np.zeros(max(count, 1), np.uint32) for _ in range(3))
    library.visit(
        blocks, ctypes.c_longlong(count), bytes_, pages,
        *(ctypes.c_void_p(array.ctypes.data) for array in (visits, warps, steps)),
    )  # fmt: skip
    assert (visits[:count] == 1).all()
    if not count:
        return
    assert not visits[count:].any()
    set_ = 4096 * pages // bytes_
    sets = np.arange(count) // set_
    assert (warps == sets % (blocks * THREADS // 32)).all()
    # A warp goes over its pages in steps of 32 elements.
    first = warps == warps[0]
    inside = np.arange(count)[first & (sets == 0)]
    assert (steps[inside] == inside // 32).all()
