from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from louvain_um.errors import DeviceUnavailableError
from louvain_um.gpu.runtime.compile import Kernels
from louvain_um.gpu.runtime.device import Choice, pick


@pytest.fixture(scope="session")
def gpu() -> Choice:
    """Return the CUDA device; a test that needs it is skipped where there is none."""
    try:
        return pick("cuda")
    except DeviceUnavailableError as error:
        pytest.skip(error.reason)


@pytest.fixture(autouse=True)
def turn(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let a test marked `alone` have the device to itself, where several processes share it."""
    alone = request.node.get_closest_marker("alone") is not None
    with open(Path(tempfile.gettempdir()) / "louvain-um-device.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


@pytest.fixture(scope="session")
def probes(gpu: Choice) -> Kernels:
    """Kernels of this folder."""
    return Kernels(Path(__file__).parent, lambda source, types: PROBES[source])


PROBES = {"rule_probe": ("probe_rule", "probe_score")}
