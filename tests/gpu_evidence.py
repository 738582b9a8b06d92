"""What the tests on a device showed, and a digest of every file that could change that."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections import Counter

import pytest

from tests.paths import ROOT

EVIDENCE = ROOT / "tests/gpu/evidence.json"

CALLS = re.compile(
    r"^\s*(import cupy|from (cuda|cupy)\b|from .*placement import .*\bcalls\b)", re.MULTILINE
)
"""What a module imports that works on a device; the others of `placement/` are models of it."""

OUTCOMES: Counter[str] = Counter()


def source_digest() -> str:
    """Return a digest of the CUDA engine's files, its tests, and what places memory for it."""
    total = hashlib.sha256()
    for folder in ("louvain_um/gpu", "tests/gpu", "placement"):
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in (".py", ".cu", ".cuh"):
                text = file.read_text(encoding="utf-8")
                if folder != "placement" or file.suffix != ".py" or CALLS.search(text):
                    total.update(f"{file.relative_to(ROOT).as_posix()}\0{text}\0".encode())
    return total.hexdigest()


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
    from louvain_um.gpu.runtime.device import describe, pick

    entry = {
        "sources": source_digest(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        **describe(pick("cuda").index),
        **{kind: OUTCOMES[kind] for kind in ("passed", "failed", "skipped")},
    }
    EVIDENCE.write_text(json.dumps(entry, indent=2, sort_keys=True) + "\n", encoding="utf-8")
