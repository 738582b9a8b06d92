"""The cost model compared with the grid of intensity and reuse that was measured on an H200."""

import json

import pytest

from louvain_um.placement.machine.profiles import H200
from louvain_um.placement.policy.policy import Placement
from louvain_um.placement.program import Phase, Program, ProgramArray, Stream
from louvain_um.placement.program.cost import ProgramCost
from tests.paths import MEASURED

RECORD = json.loads((MEASURED / "intensity_reuse_h200.json").read_text())


def predicted(row):
    count, reuse = RECORD["bytes_of_each_array"] // 4, row["reuse"]
    arrays = [
        ProgramArray(
            name=name, shape=count, dtype="f4", reads=Stream(reuse), from_host=1,
            writes=Stream(reuse) if name == "out" else (), to_host=float(name == "out"),
        )
        for name in ("left", "right", "out")
    ]  # fmt: skip
    operations = 2.0 * row["intensity"] * count * reuse
    phase = Phase(name="visit", passes=reuse, operations=operations)
    cost = ProgramCost(program=Program(name="grid", arrays=arrays, phases=[phase]), machine=H200)
    return {
        kind: cost.seconds(dict.fromkeys(("left", "right", "out"), Placement(kind)))
        for kind in row["seconds"]
    }


def test_what_the_model_chooses_is_the_fastest_or_next_to_it():
    right = 0
    for row in RECORD["results"]:
        model, seconds = predicted(row), row["seconds"]
        chosen = min(model, key=model.get)
        assert seconds[chosen] <= 1.05 * min(seconds.values())
        right += seconds[chosen] == min(seconds.values())
    assert right >= 0.9 * len(RECORD["results"])


def test_reading_in_place_is_predicted_within_a_few_percent():
    for row in RECORD["results"]:
        assert predicted(row)["host_mapped"] == pytest.approx(
            row["seconds"]["host_mapped"], rel=0.2
        )
