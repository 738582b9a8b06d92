"""What several GPUs are predicted to take is what they took."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from louvain_um.cli import app
from louvain_um.distributed.device_plan import LARGE, device_choices, most_speedup, plan_devices
from louvain_um.errors import OptionError
from tests.paths import MEASURED, RESULTS

pytestmark = pytest.mark.records

KINDS = {"lfr": "community_structured", "rma": "power_law", "ste": "mesh"}


def measured() -> list[tuple[str, int, int, int, float]]:
    found = []
    alone = json.loads((MEASURED / "detection_h200.json").read_text())["results"]
    several = json.loads((RESULTS / "devices_h200.json").read_text())["devices"]["results"]
    for run in (*several, *(run for run in alone if run["arcs"] >= 5 * LARGE)):
        devices = run.get("device", "cuda:0").count(",") + 1
        seconds = run.get("seconds", run.get("algorithm_median"))
        if run["method"] == "louvain" and run["graph"][:3] in KINDS and run["arcs"] >= LARGE:
            found.append((run["graph"], run["vertices"], run["arcs"], devices, seconds))
    return found


def test_every_kind_was_measured_on_one_and_two() -> None:
    seen = {(graph[:3], devices) for graph, _, _, devices, _ in measured()}
    assert seen >= {(kind, devices) for kind in KINDS for devices in (1, 2)}


@pytest.mark.parametrize(("graph", "vertices", "arcs", "devices", "seconds"), measured())
def test_seconds_are_predicted_within_a_fifth(
    graph: str, vertices: int, arcs: int, devices: int, seconds: float
) -> None:
    plan = plan_devices(vertices, arcs, devices=devices, kind=KINDS[graph[:3]])
    assert plan.total_seconds == pytest.approx(seconds, rel=0.2)
    assert plan.evidence == "fitted"


def test_what_is_reserved_covers_what_was_in_use() -> None:
    """By less than the factor that the command line names."""
    runs = json.loads((RESULTS / "devices_h200.json").read_text())["devices"]["results"]
    seen = [run for run in runs if run["arcs"] >= LARGE and "peak_bytes" in run]
    for run in seen:
        devices = run["device"].count(",") + 1
        plan = plan_devices(run["vertices"], run["arcs"], devices=devices)
        assert run["peak_bytes"] < devices * plan.nbytes < 2.3 * run["peak_bytes"]
    assert len(seen) >= 4


@pytest.mark.parametrize("kind", KINDS.values())
def test_more_devices_are_faster_up_to_a_limit(kind: str) -> None:
    plans = device_choices(10**9, 4 * 10**10, 16, kind=kind)
    seconds = [plan.total_seconds for plan in plans]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[0] / seconds[-1] < most_speedup(kind)
    assert [plan.evidence for plan in plans] == ["fitted"] * 2 + ["modelled"] * 3
    assert plans[-1].nbytes < plans[0].nbytes


@pytest.mark.parametrize("values", [{"devices": 0}, {"devices": 65}, {"kind": "tree"}])
def test_sizes_that_are_none(values: dict[str, object]) -> None:
    with pytest.raises(OptionError):
        plan_devices(10, 20, **({"devices": 1} | values))  # type: ignore[arg-type]


def test_the_command_line_marks_what_is_modelled() -> None:
    size = ("plan", "devices", "4", "--vertices", "250000000", "--arcs", "10000000000")
    done = CliRunner().invoke(app, [*size, "--json"])
    assert done.exit_code == 0
    assert [plan["devices"] for plan in json.loads(done.stdout)["plans"]] == [1, 2, 4]
    text = CliRunner().invoke(app, size).stdout
    assert "modelled" in text
    assert "no number of them is more than" in " ".join(text.split())
