from __future__ import annotations

import json

from gpu_evidence import EVIDENCE, source_digest


def test_the_device_tests_ran_on_these_sources() -> None:
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
