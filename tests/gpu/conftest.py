from __future__ import annotations

import datetime
import fcntl
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpu_evidence import EVIDENCE, ROOT, source_digest

from louvain_um.errors import DeviceUnavailableError
from louvain_um.gpu.compile import Kernels
from louvain_um.gpu.device import Choice, describe, pick

OUTCOMES: Counter[str] = Counter()


@pytest.fixture(scope="session")
def gpu() -> Choice:
    """Return the CUDA device; a test that needs it is skipped where there is none."""
    try:
        return pick("cuda")
    except DeviceUnavailableError as error:
        pytest.skip(error.reason)


@pytest.fixture(autouse=True)
def turn(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let a test marked `alone` have the device to itself, where several processes share it."""
    alone = request.node.get_closest_marker("alone") is not None
    with open(Path(tempfile.gettempdir()) / "louvain-um-device.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


@pytest.fixture(scope="session")
def probes(gpu: Choice) -> Kernels:
    """Kernels of this folder."""
    return Kernels(Path(__file__).parent, lambda source, types: PROBES[source])


PROBES = {"rule_probe": ("probe_rule", "probe_score")}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count how tests that need a device came out."""
    if "gpu" in report.keywords and (report.when == "call" or report.outcome != "passed"):
        OUTCOMES[report.outcome] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write down what a whole run of ``pytest -m gpu`` on a device showed."""
    config = session.config
    if hasattr(config, "workerinput"):
        return  # one of several processes (pytest-xdist): the first one counts for all
    everything = {ROOT, ROOT / "tests", ROOT / "tests/gpu"}
    whole = (
        config.getoption("markexpr") == "gpu"
        and not config.getoption("keyword")
        and all((config.invocation_params.dir / a).resolve() in everything for a in config.args)
    )
    if not (whole and OUTCOMES["passed"]):
        return
    entry = {
        "sources": source_digest(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        **describe(pick("cuda").index),
        **{kind: OUTCOMES[kind] for kind in ("passed", "failed", "skipped")},
    }
    EVIDENCE.write_text(json.dumps(entry, indent=2, sort_keys=True) + "\n", encoding="utf-8")
