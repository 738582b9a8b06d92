from __future__ import annotations

import pytest

from tests.gpu_emulated.libraries import Libraries, libraries


@pytest.fixture(scope="session")
def emulated() -> Libraries:
    """Kernels compiled for the CPU."""
    return libraries()
