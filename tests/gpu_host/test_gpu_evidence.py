import json
from types import SimpleNamespace

import pytest

from louvain_um.gpu.runtime import compile_cache
from tests import gpu_evidence
from tests.gpu_evidence import EVIDENCE, device_sources, source_digest


@pytest.mark.records
def test_the_device_tests_ran_on_these_sources():
    """After a change of the CUDA engine: ``pytest -m gpu`` on a device, or say why not yet."""
    evidence = json.loads(EVIDENCE.read_text(encoding="utf-8"))
    if evidence.get("pending"):
        return
    assert evidence["failed"] == 0, f"{evidence['failed']} tests failed on {evidence['name']}"
    assert evidence["sources"] == source_digest(), (
        "the CUDA engine or its tests changed since they last ran on a device; run "
        "`pytest -m gpu` on one and commit tests/gpu/evidence.json, or give a reason as "
        '"pending" in that file'
    )


def test_every_kernel_counts_and_every_header_that_it_may_include():
    counted = {file.name for file in device_sources()}
    assert counted >= compile_cache.sources().keys()
    assert counted >= {"blocked.cuh", "probes.cu", "device_backend.py", "test_placer_arrays.py"}


def ran(failed=0, **more):
    return {"name": "H", "passed": 9, "failed": failed, "skipped": 1, **more}


def test_parts_of_a_run_add_up(tmp_path, monkeypatch):
    file = tmp_path / "evidence.json"
    monkeypatch.setattr(gpu_evidence, "EVIDENCE", file)

    def after(name, entry, sources="one"):
        gpu_evidence.save({name: entry}, sources)
        found = json.loads(file.read_text())
        return found

    assert after("2/2", ran(failed=3))["pending"] == "part 1/2 has not run"
    both = after("1/2", ran())
    assert (both["passed"], both["failed"], both["skipped"]) == (18, 3, 2)
    assert "pending" not in both
    assert after("2/2", ran())["failed"] == 0  # again, in place of what failed
    killed = after("1/2", ran(cut_short="10 of 80 tests ran"))
    assert killed["pending"] == "part 1/2 was cut short: 10 of 80 tests ran"
    assert after("1/2", ran())["passed"] == 18
    assert after("1/2", ran(), sources="others")["pending"] == "part 2/2 has not run"
    whole = after("1/1", ran(), sources="others")
    assert (whole["passed"], "pending" in whole) == (9, False)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_test_is_in_one_part(count):
    every, seen = list(range(64)), []
    for k in range(1, count + 1):
        config = SimpleNamespace(
            getoption=lambda _, k=k: f"{k}/{count}",
            hook=SimpleNamespace(pytest_deselected=lambda items: None),
        )
        items = list(every)
        gpu_evidence.pytest_collection_modifyitems(config, items)
        assert len(items) in (64 // count, -(-64 // count))
        seen += items
    assert sorted(seen) == every
