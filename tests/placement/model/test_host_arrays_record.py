"""What single arrays cost on the host: the model compared with what was measured on a device."""

import json
from dataclasses import replace

import pytest

from louvain_um.gpu.memory.array_specs import declare
from louvain_um.gpu.memory.shape import Shape
from louvain_um.placement.machine.profiles import H200
from louvain_um.placement.model.workload import Facts, work_for
from louvain_um.placement.policy.auto import Form, candidate
from louvain_um.placement.policy.policy import AUTO, Placement
from tests.paths import MEASURED

RECORD = json.loads((MEASURED / "host_arrays_h200.json").read_text())


def predicted(row):
    known = Shape(**RECORD["shapes"][row["graph"]])
    shape = replace(known, method=row["method"], low_scratch=True, sorted_rows=True)
    arrays = declare(shape)
    on_host = {
        name: Placement("split", there) if there else Placement("host_mapped")
        for name, there in row["on_device"].items()
    }
    work = work_for(arrays, H200, Facts(kind=shape.kind))
    policy = replace(AUTO, arrays=on_host)
    form = Form(arrays, low_scratch=True, compact=True)
    found = candidate(policy, form, work, 1 << 40, joint=True)
    return 1e3 * found.expected.seconds


@pytest.mark.parametrize("row", RECORD["results"], ids=lambda r: f"{r['graph']} {r['away']}")
def test_the_model_predicts_what_an_array_costs_on_the_host(row):
    allowed = 0.15 if row["method"] == "louvain" else 0.3
    assert predicted(row) == pytest.approx(row["milliseconds"], rel=allowed)


def test_a_quarter_of_packed_arcs_is_cheap_and_the_last_one_dear():
    """What `auto` builds on: pieces of one array cost more and more."""
    for graph in RECORD["shapes"]:
        rows = [
            (row["on_device"].get("targets.0", 1.0), row)
            for row in RECORD["results"]
            if row["graph"] == graph and set(row["on_device"]) <= {"targets.0"}
        ]
        for at in (
            {there: row["milliseconds"] for there, row in rows},
            {there: predicted(row) for there, row in rows},
        ):
            assert 3 * (at[0.75] - at[1.0]) < at[0.0] - at[0.25]
