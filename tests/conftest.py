from __future__ import annotations

import gc
import signal
from pathlib import Path

import pytest
from all_cores import pytest_cmdline_main, pytest_make_parametrize_id
from gpu_evidence import (
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_runtest_logreport,
    pytest_sessionfinish,
)

from tests.paths import ROOT

__all__ = [
    "pytest_addoption", "pytest_cmdline_main", "pytest_collection_modifyitems",
    "pytest_make_parametrize_id", "pytest_runtest_logreport", "pytest_sessionfinish", "shared_data",
]  # fmt: skip

SHARED_DATA = ROOT / "../shared/data"


def pytest_configure() -> None:
    """Let tests interrupt: what a shell runs in the background ignores that from the start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Keep what was collected, which lives to the end, out of collections of garbage.

    With thousands of tests each would take a quarter of a second, and some tests ask for many.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real graphs beside the repository; a test that needs it is skipped without."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the folder of real graphs is not here")
    return SHARED_DATA.resolve()
