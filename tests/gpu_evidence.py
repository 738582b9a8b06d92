"""What the tests on a device showed, and a digest of every file that could change that.

A run may be of a part of these tests (``--evidence-part 1/2``); the evidence of all
parts, of the same sources, adds up. Parts that ran on other machines are added by

    python -m tests.gpu_evidence FILE ...
"""

import datetime
import hashlib
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.paths import ROOT

EVIDENCE = ROOT / "tests/gpu/evidence.json"

WHOLE = ("louvain_um/gpu", "placement/memory", "placement/migration", "tests/gpu")
"""Folders of which every file counts."""

CALLS = re.compile(
    r"^\s*(import cupy|from (cuda|cupy)\b|.*\bimport .*\bcuda_calls\b)", re.MULTILINE
)
"""What a module elsewhere imports that works on a device; the others are the same without one."""

OUTCOMES: Counter[str] = Counter()

KINDS: Final = ("passed", "failed", "skipped")


def device_sources():
    """Return the CUDA engine's files, its tests, every kernel, and what works on a device."""
    found = {
        file
        for folder in WHOLE
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".py", ".cu", ".cuh")
    }
    for folder in ("louvain_um", "placement", "profiling"):
        for file in (ROOT / folder).rglob("*"):
            works = file.suffix == ".py" and CALLS.search(file.read_text(encoding="utf-8"))
            if works or file.suffix in (".cu", ".cuh"):
                found.add(file)
    return sorted(found)


def source_digest():
    """Return a digest of all files that could change what tests on a device show."""
    total = hashlib.sha256()
    for file in device_sources():
        text = file.read_text(encoding="utf-8")
        total.update(f"{file.relative_to(ROOT).as_posix()}\0{text}\0".encode())
    return total.hexdigest()


def pytest_runtest_logreport(report):
    """Count how tests that need a device came out."""
    if "gpu" in report.keywords and (report.when == "call" or report.outcome != "passed"):
        OUTCOMES[report.outcome] += 1


def pytest_addoption(parser):
    """Let a run be of a part of the tests on a device."""
    parser.addoption(
        "--evidence-part", default="1/1", metavar="K/N", type=part_of,
        help="of the tests on a device, run every N-th, from the K-th on; evidence adds up",
    )  # fmt: skip


def part_of(text):
    found = re.fullmatch(r"([1-9]\d?)/([1-9]\d?)", text)
    if not found or int(found[1]) > int(found[2]):
        raise ValueError
    return text


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave out the tests of other parts, after those without a device are left out."""
    k, n = map(int, config.getoption("evidence_part").split("/"))
    if n == 1:
        return
    own = items[k - 1 :: n]
    del items[k - 1 :: n]
    config.hook.pytest_deselected(items=[*items])
    items[:] = own


def pytest_sessionfinish(session, exitstatus):
    """Write down what a run of ``pytest -m gpu`` on a device showed: of all tests, or of a part."""
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
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        **describe(pick("cuda").index),
        **{kind: OUTCOMES[kind] for kind in KINDS},
    }
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        entry["cut_short"] = f"{OUTCOMES.total()} of {session.testscollected} tests ran"
    save({config.getoption("evidence_part"): entry}, source_digest())


def save(parts, sources):
    """Add what parts showed to that of others with the same sources and as many parts."""
    held = json.loads(EVIDENCE.read_text(encoding="utf-8")) if EVIDENCE.exists() else {}
    (count,) = {name.partition("/")[2] for name in parts}
    if held.get("sources") == sources:
        parts = {k: v for k, v in held.get("parts", {}).items() if k.endswith(f"/{count}")} | parts
    missing = [f"{k}/{count}" for k in range(1, int(count) + 1) if f"{k}/{count}" not in parts]
    pending = [f"part {name} has not run" for name in missing]
    for name, entry in sorted(parts.items()):
        if "cut_short" in entry:
            pending.append(f"part {name} was cut short: {entry['cut_short']}")
    last = list(parts.values())[-1]
    written = {
        **{name: value for name, value in last.items() if name != "cut_short"},
        **{kind: sum(entry[kind] for entry in parts.values()) for kind in KINDS},
        "sources": sources,
        "parts": parts,
        **({"pending": "; ".join(pending)} if pending else {}),
    }
    EVIDENCE.write_text(json.dumps(written, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        given = json.loads(Path(name).read_text(encoding="utf-8"))
        if given["sources"] != source_digest():
            sys.exit(f"{name} is of other sources: run its parts again")
        save(given["parts"], given["sources"])
