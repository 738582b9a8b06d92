from __future__ import annotations

import ctypes
from typing import Any

import pytest

from louvain_um.errors import DeviceUnavailableError
from louvain_um.gpu.runtime import device


def test_the_cpu_is_always_there() -> None:
    choice = device.pick("cpu")
    assert (str(choice), choice.index) == ("cpu", -1)
    with choice.current():
        pass


def test_without_a_driver_auto_is_the_cpu_and_cuda_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    choice = device.pick("auto")
    assert choice.kind == "cpu"
    assert "driver" in choice.reason
    with pytest.raises(DeviceUnavailableError, match="no NVIDIA driver") as caught:
        device.pick("cuda")
    assert "\n" not in caught.value.reason


class Driver:
    """Stands for libcuda with devices of given compute capabilities."""

    def __init__(self, *found: tuple[int, int], status: int = 0) -> None:
        self.found = found
        self.status = status

    def cuInit(self, flags: int) -> int:  # noqa: N802
        return self.status

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802
        count._obj.value = len(self.found)
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, index: int) -> int:  # noqa: N802
        value._obj.value = self.found[index][device.CAPABILITY.index(attribute)]
        return 0


@pytest.mark.parametrize(
    ("driver", "asked", "reason"),
    [
        (Driver(), "cuda", "no NVIDIA GPU is visible"),
        (Driver(status=100), "cuda", "no NVIDIA GPU is visible"),
        (Driver(status=999), "cuda:0", "CUDA error 999"),
        (Driver((9, 0)), "cuda:1", "no cuda:1 here, only cuda:0"),
        (Driver((9, 0), (9, 0)), "cuda:2", "cuda:0 … cuda:1"),
    ],
)
def test_a_device_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, driver: Driver, asked: str, reason: str
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    with pytest.raises(DeviceUnavailableError, match=reason):
        device.pick(asked)


def test_a_device_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cupy")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver((7, 0)))
    with pytest.raises(DeviceUnavailableError, match=r"compute capability 7\.0, less than 7\.5"):
        device.pick("cuda:0")


def test_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver((9, 0)))
    monkeypatch.setattr(device.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DeviceUnavailableError, match=r"louvain-um\[cuda13\]"):
        device.pick("cuda:0")
