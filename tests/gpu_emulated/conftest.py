import pytest

from tests.gpu_emulated.libraries import libraries


@pytest.fixture(scope="session")
def emulated():
    return libraries()
