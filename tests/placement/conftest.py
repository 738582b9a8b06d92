import gc

import pytest
from fake_cuda import FakeCuda, install


@pytest.fixture(scope="module", autouse=True)
def _few_objects_to_look_at():
    """Keep what is there out of collections of garbage, which many tests ask for."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def cuda(monkeypatch):
    return install(monkeypatch, FakeCuda())
