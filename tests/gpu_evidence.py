"""What the tests on a device showed, and a digest of every file that could change that."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.paths import ROOT

EVIDENCE = ROOT / "tests/gpu/evidence.json"

WHOLE = ("louvain_um/gpu", "placement/memory", "tests/gpu")
"""Folders of which every file counts."""

CALLS = re.compile(
    r"^\s*(import cupy|from (cuda|cupy)\b|.*\bimport .*\bcuda_calls\b)", re.MULTILINE
)
"""What a module elsewhere imports that works on a device; the others are the same without one."""

OUTCOMES: Counter[str] = Counter()


def device_sources() -> list[Path]:
    """Return the CUDA engine's files, its tests, and every module that works on a device."""
    found = {
        file
        for folder in WHOLE
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".py", ".cu", ".cuh")
    }
    for folder in ("louvain_um", "placement", "profiling"):
        for file in (ROOT / folder).rglob("*.py"):
            if CALLS.search(file.read_text(encoding="utf-8")):
                found.add(file)
    return sorted(found)


def source_digest() -> str:
    """Return a digest of all files that could change what tests on a device show."""
    total = hashlib.sha256()
    for file in device_sources():
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
    from louvain_um.gpu.runtime.device import describe, pick

    entry = {
        "sources": source_digest(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        **describe(pick("cuda").index),
        **{kind: OUTCOMES[kind] for kind in ("passed", "failed", "skipped")},
    }
    EVIDENCE.write_text(json.dumps(entry, indent=2, sort_keys=True) + "\n", encoding="utf-8")
