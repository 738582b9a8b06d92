import gc
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

from tests.paths import ROOT

pytest_plugins = ["tests.all_cores", "tests.gpu_evidence", "tests.tiers"]

# Machines are shared: how long an example takes, or is made, says nothing of the code.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

SHARED_DATA = ROOT / "../shared/data"


def pytest_configure(config):
    """Let tests send signals that a shell or nohup has what it runs ignore from the start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Programs that tests start do not inherit a handler. Who starts workers ignores for them, too.
    runs_tests = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    if runs_tests and hangup is not None and signal.getsignal(hangup) is signal.SIG_IGN:
        signal.signal(hangup, lambda *_: None)


def pytest_collection_finish():
    """Keep what was collected, which lives to the end, out of collections of garbage.

    With thousands of tests each would take a quarter of a second, and some tests ask for many.
    """
    gc.collect()
    gc.freeze()


def pytest_runtest_setup():
    """Count the bytes of emulated devices anew; most tests need none."""
    if (emulated := sys.modules.get("tests.gpu_emulated.emulated_device")) is not None:
        emulated.DeviceArray.start()


@pytest.fixture(scope="session")
def shared_data():
    """Folder of real graphs next to the repository; a test that needs it is skipped without."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the folder of real graphs is not here")
    return SHARED_DATA.resolve()


@pytest.fixture(scope="session")
def emulated():
    """Kernels compiled for the CPU; a test that needs them is skipped without a compiler."""
    from tests.gpu_emulated.libraries import libraries

    return libraries()
