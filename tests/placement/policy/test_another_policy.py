"""A policy can be added for everybody without a GPU to measure it on."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

HERE = Path(__file__).parent


@pytest.mark.system
def test_another_policy_needs_no_measurement():
    command = [
        sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider",
        "-p", "tests.placement.policy.one_more_policy",
        "-k", "grid_is or best_there or every_policy",
        str(HERE / "test_policy.py"), str(HERE / "test_policy_grid.py"),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "passed" in done.stdout
