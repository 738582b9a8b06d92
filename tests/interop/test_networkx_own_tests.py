"""networkx's own tests of what the backend serves, and of backends, run with the backend."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

pytestmark = pytest.mark.system

MODULES = (
    "networkx.algorithms.community",
    "networkx.algorithms.components.tests.test_connected",
    "networkx.algorithms.link_analysis.tests.test_pagerank",
    "networkx.algorithms.shortest_paths.tests.test_unweighted",
    "networkx.algorithms.shortest_paths.tests.test_weighted",
    "networkx.algorithms.tests.test_cluster",
    "networkx.algorithms.tree.tests.test_mst",
    "networkx.utils.tests.test_backends",
)


@pytest.mark.parametrize("fall_back", ["", "1"])
def test_networkx_tests_pass(tmp_path: Path, fall_back: str) -> None:
    # Its conftest documents the variables; without a fallback, what is not ours is expected to
    # fail. An empty folder and configuration keep the settings of this repository away.
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    environment = os.environ | {
        "NETWORKX_TEST_BACKEND": "louvain_um",
        "NETWORKX_FALLBACK_TO_NX": fall_back,
        "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    # pytest's own tracebacks of hundreds of expected failures take longer than the tests.
    ran = subprocess.run(
        [*command, "--tb=native", "--pyargs", *MODULES],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert " passed" in ran.stdout
