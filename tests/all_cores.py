"""A run of all tests uses all cores, if pytest-xdist is installed; ``-n 0`` turns that off.

This is a hook instead of an option in pyproject.toml, so that a few tests run in one process, which
starts faster, and so that pytest works without pytest-xdist. Processes must agree on the names of
all tests, so none holds what differs between them.
"""

import os
import subprocess
import sys
from typing import Final

import pytest

from tests.paths import ROOT

DEVICES: Final = "LOUVAIN_UM_TEST_DEVICES"
"""Reports to processes of a run how many devices there are."""

MAX_WORKERS: Final = 8
"""Each worker imports and compiles for itself; more of them gain little."""


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    option = config.option
    if not config.pluginmanager.hasplugin("xdist"):
        return
    if option.markexpr == "gpu":
        share_machine(config)
    if hasattr(config, "workerinput"):
        return
    given = option.numprocesses is not None or option.tx or option.usepdb or option.collectonly
    # Processes share a GPU only if -n says so.
    if given or option.keyword or option.markexpr == "gpu" or not selects_all(config):
        return
    option.numprocesses = "logical"
    option.maxprocesses = option.maxprocesses or MAX_WORKERS
    if option.dist == "no":
        option.dist = "worksteal"  # by test: a single file takes a third of the time


def share_machine(config):
    """Give each process of a run on devices whole files, a device, and its share of the cores.

    Tests of a file share graphs and what the CPU finds; the processes together start about as many
    threads as there are cores, and begin with different devices.
    """
    if hasattr(config, "workerinput"):
        given = config.workerinput
        share = max(1, (os.cpu_count() or 1) // int(given["workercount"]))
        os.environ.setdefault("LOUVAIN_UM_THREADS", str(share))
        count, own = int(os.environ.get(DEVICES, "0")), int(given["workerid"].removeprefix("gw"))
        if count > 1:
            rotated = ",".join(str((own + i) % count) for i in range(count))
            os.environ.setdefault("CUDA_VISIBLE_DEVICES", rotated)
    elif config.option.numprocesses:
        os.environ[DEVICES] = count_devices()
        if config.option.dist == "no":
            config.option.dist = "loadfile"


def count_devices():
    """Return how many devices there are; asked in another process, which ends at once."""
    code = "from louvain_um.gpu.runtime.device import capabilities; print(len(capabilities()))"
    asked = [sys.executable, "-c", code]
    return (
        subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False).stdout or "0"
    )


def selects_all(config):
    folders = {(config.invocation_params.dir / argument).resolve() for argument in config.args}
    return bool(folders & {ROOT, ROOT / "tests"})


def pytest_collection_modifyitems(items):
    """Let tests of commands come last, with those of profiling.

    Both simulate, and a process that begins with either compiles the simulator for the other.
    """
    items.sort(key=lambda item: item.nodeid.startswith("tests/cli/"))


def pytest_make_parametrize_id(val, argname):
    """Name compressed bytes by their argument: they may hold the time of their making."""
    compressed = isinstance(val, bytes) and (b"\0" in val or not val.isascii())
    return argname if compressed else None
