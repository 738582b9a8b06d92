"""What goes wrong in the middle of a run ends it in a word, and leaves the device usable."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import louvain_um as lu
from louvain_um.generators import lfr
from tests.paths import ROOT

pytestmark = pytest.mark.gpu

HOUSE = ROOT


def child(code):
    """Start a process that runs some lines of Python with the package at hand."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HOUSE)},
    )


@pytest.mark.alone
@pytest.mark.parametrize("memory", ["auto", "base", "adv7"])
@pytest.mark.parametrize(
    ("phase", "kind"), [("move", "start"), ("move", "end"), ("fetch", "start")]
)
def test_an_interrupted_run_gives_everything_back(gpu, memory, phase, kind):
    import cupy

    graph = lfr(1 << 14, max_degree=400, seed=3).graph
    want = lu.louvain(graph, device="cuda", memory=memory).labels

    def interrupt(event):
        if (event.phase, event.kind) == (phase, kind):
            raise KeyboardInterrupt

    def lost():
        free = cupy.cuda.runtime.memGetInfo()[0]
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                lu.louvain(graph, device="cuda", memory=memory, observer=interrupt)
        cupy.get_default_memory_pool().free_all_blocks()
        return int(free - cupy.cuda.runtime.memGetInfo()[0])

    # What a run does not give back is lost every time; others may begin to use the device once.
    assert min(lost() for _ in range(3)) <= 4 << 20
    found = lu.louvain(graph, device="cuda", memory=memory)
    np.testing.assert_array_equal(found.labels, want)


AGAIN_AND_AGAIN = """
import louvain_um as lu
from louvain_um.generators import lfr
graph = lfr(1 << 16, max_degree=400, seed=3).graph
lu.louvain(graph, device="cuda")
print("going", flush=True)
while True:
    lu.louvain(graph, device="cuda")
"""


def test_ctrl_c_ends_a_run_at_once(gpu):
    process = child(AGAIN_AND_AGAIN)
    try:
        assert process.stdout.readline() == "going\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGINT
    assert printed.rstrip().endswith("KeyboardInterrupt")
    graph = lfr(1 << 13, max_degree=400, seed=5).graph
    want = lu.louvain(graph, device="cpu").labels
    np.testing.assert_array_equal(lu.louvain(graph, device="cuda").labels, want)


LOST = """
import cupy
import louvain_um as lu
from louvain_um.errors import LouvainUmError
from louvain_um.generators import lfr

graph = lfr(1 << 13, max_degree=400, seed=5).graph
lost = cupy.RawKernel('extern "C" __global__ void lost() { asm("trap;"); }', "lost")

def lose(event):
    if (event.phase, event.kind) == ("move", "start"):
        lost((1,), (1,), ())

try:
    lu.louvain(graph, device="cuda", observer=lose)
except LouvainUmError as error:
    print(type(error).__name__, error, flush=True)
"""


def test_a_device_lost_in_the_middle_is_reported_in_a_line(gpu):
    process = child(LOST)
    try:
        printed, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    # Freeing what the run had fails as well, and may be what is printed.
    assert printed.startswith(("DeviceUnavailableError ", "CudaError "))
    assert printed.count("\n") == 1
    assert "cpu" in printed.lower()
