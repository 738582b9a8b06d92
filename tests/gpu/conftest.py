import fcntl
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from louvain_um.errors import DeviceUnavailableError
from louvain_um.gpu.runtime import compile_cache
from louvain_um.gpu.runtime.compile import Kernels
from louvain_um.gpu.runtime.device import capabilities, pick
from tests.gpu_host.compiled_units import UNITS, images

HERE: Final = Path(__file__).parent

MANY: Final = 100
"""Tests of a run that needs nearly all kernels."""


@pytest.fixture(scope="session")
def gpu(request):
    """Return the CUDA device; a test that needs it is skipped where there is none."""
    try:
        chosen = pick("cuda")
    except DeviceUnavailableError as error:
        pytest.skip(error.reason)
    if hasattr(request.config, "workerinput") and len(request.session.items) > MANY:
        major, minor = capabilities()[chosen.index]
        compile_once(compile_cache.target(10 * major + minor))
    return chosen


def compile_once(target):
    """Let one of several processes compile all kernels, on all cores, and the others wait."""
    jobs = [(source, names, target) for source, types in UNITS for names in images(source, types)]
    with open(Path(tempfile.gettempdir()) / "louvain-um-compile.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        missing = [job for job in jobs if not compile_cache.image_file(*job).exists()]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for _ in pool.map(lambda job: compile_cache.cached_image(*job), missing):
                pass


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark tests that take the fixture `gpu`; put those last that wait for all other processes.

    Those of the tracer come first: its kernels take a minute to compile, on few cores.
    """
    for item in items:
        if item.path.is_relative_to(HERE) and "gpu" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.gpu)
    items.sort(key=turn)


def turn(item):
    """Return when a test runs, before or after the others of its process."""
    traces = item.path.is_relative_to(HERE) and "trace" in item.path.name
    return item.get_closest_marker("alone") is not None, not traces


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Let a test marked `alone` have the device to itself, where several processes share it.

    Fixtures of all scopes are included: the first one makes a context, which takes memory.
    """
    if item.get_closest_marker("gpu") is None:
        return (yield)
    alone = item.get_closest_marker("alone") is not None
    with open(Path(tempfile.gettempdir()) / "louvain-um-device.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        return (yield)


@pytest.fixture(scope="session")
def probes(gpu):
    return Kernels(HERE, lambda source, types: PROBES[source])


PROBES = {"rule_probe": ("probe_rule", "probe_score")}
