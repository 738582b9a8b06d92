"""What the record of traced runs on an H200 must show: nothing lost, nothing unaccounted for."""

from __future__ import annotations

import json

import pytest

from tests.paths import RESULTS

RECORD = RESULTS / "traced_h200.json"
RUNS = json.loads(RECORD.read_text())["runs"]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: str(run["budget_bytes"]))
def test_groups_add_up_to_what_the_driver_counted(run):
    assert run["dropped"] == run["unattributed"] == 0
    assert run["moved"] == {key: run["driver"][key] for key in run["moved"]}
    by_group = {row["group"]: row["accesses"] for row in run["by_group"]}
    assert by_group.get("other", 0) < 1e-3 * sum(by_group.values())
    # Every arc that moving visits is read from the graph once, at least.
    assert by_group["graph"] > run["arcs_visited"]


def test_one_run_had_room_for_everything_and_one_for_half():
    whole, half = RUNS
    assert (whole["budget_bytes"], whole["moved"]["bytes_to_host"]) == (None, 0)
    assert half["moved"]["bytes_to_device"] > 10 * whole["moved"]["bytes_to_device"]
    assert whole["figures"] == half["figures"]
    assert len(half["figures"]) == 7
