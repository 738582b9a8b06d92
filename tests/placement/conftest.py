import pytest
from fake_cuda import FakeCuda, install


@pytest.fixture
def cuda(monkeypatch):
    return install(monkeypatch, FakeCuda())
