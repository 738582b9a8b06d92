"""How often the host launches kernels, clears memory and waits for a device in a run in core."""

from collections import Counter

import pytest

from louvain_um.options import Options
from tests.gpu_dry.dry_device import Sized, run_dry
from tests.gpu_dry.dry_kernels import DryKernels
from tests.gpu_dry.dry_levels import made_up

pytestmark = pytest.mark.deep


@pytest.fixture
def calls(monkeypatch):
    counted = Counter()
    kernel_of, read, begin = DryKernels.get, Sized.get, Sized.__init__

    def get(self, *names, **more):
        kernel = kernel_of(self, *names, **more)

        def launch(*args):
            counted["launches"] += 1
            counted["levels"] += names[1] == "move"
            return kernel(*args)

        return launch

    def fetched(self):
        counted["waits"] += 1
        return read(self)

    def made(self, *args):
        begin(self, *args)
        self.data.memset_async = lambda *_: counted.update(["clears"])

    monkeypatch.setattr(DryKernels, "get", get)
    monkeypatch.setattr(Sized, "get", fetched)
    monkeypatch.setattr(Sized, "__init__", made)
    return counted


@pytest.mark.parametrize(
    ("method", "launches", "waits", "clears"), [("louvain", 8, 6, 3), ("leiden", 11, 7, 8)]
)
def test_levels_ask_little_of_the_device(monkeypatch, calls, method, launches, waits, clears):
    graph, script = made_up("rmat22", method)
    run_dry(monkeypatch, graph, script, Options(method=method, device="cuda"))
    levels = calls["levels"]
    assert levels > 3
    assert levels < calls["launches"] <= launches * levels
    assert levels < calls["waits"] <= waits * levels
    assert levels < calls["clears"] <= clears * levels
