"""The memory of freed arrays returns to the system."""

import subprocess
import sys

import pytest

from louvain_um.cli import mmap_large_arrays

GAPS = """
import numpy as np
from pathlib import Path
from louvain_um.cli import mmap_large_arrays

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

mmap_large_arrays()
np.ones(2 << 20)  # once freed, glibc would keep blocks below its size in a heap
held = [np.ones(1 << 19) for _ in range(30)]
full = resident()
del held[:-1]
print(full - resident())
"""


def test_freed_memory_is_returned():
    if not mmap_large_arrays():
        pytest.skip("this C library has no such setting")
    freed = subprocess.run([sys.executable, "-c", GAPS], capture_output=True, check=True, text=True)
    assert int(freed.stdout) > 28 * (4 << 20)
