"""What the tests on a device showed, and a digest of every file that could change that."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EVIDENCE = ROOT / "tests/gpu/evidence.json"

OUTCOMES: Counter[str] = Counter()


def source_digest() -> str:
    """Return a digest of the CUDA engine's files and of its tests."""
    total = hashlib.sha256()
    for folder in ("louvain_um/gpu", "tests/gpu"):
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in (".py", ".cu", ".cuh"):
                text = file.read_text(encoding="utf-8")
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
    from louvain_um.gpu.device import describe, pick

    entry = {
        "sources": source_digest(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        **describe(pick("cuda").index),
        **{kind: OUTCOMES[kind] for kind in ("passed", "failed", "skipped")},
    }
    EVIDENCE.write_text(json.dumps(entry, indent=2, sort_keys=True) + "\n", encoding="utf-8")
