"""Predicted seconds of loading graphs compared with those measured on an H200."""

import json

from louvain_um.algorithms.programs import WEIGHED, program_of
from louvain_um.placement.machine.profiles import H200
from louvain_um.placement.policy.policy import Placement
from louvain_um.placement.program.cost import ProgramCost
from tests.paths import ROOT

RECORD = ROOT / "benchmarks/results/paper_programs_h200.json"


def placement(text):
    kind, _, share = text.rstrip(")").partition("(")
    return Placement(kind, float(share)) if share else Placement(kind)


def test_loading_takes_what_was_measured():
    found = json.loads(RECORD.read_text())
    checked = set[str]()
    for row in found["results"]:
        program = program_of(
            row["program"], n_vertices=found["vertices"], n_arcs=found["arcs"],
            weighted=row["program"] in WEIGHED and row["program"] != "pagerank",
        )  # fmt: skip
        cost = ProgramCost(program=program, machine=H200)
        places = {name: placement(text) for name, text in row["placements"].items()}
        if "managed" in {place.kind for place in places.values()}:
            continue  # pages come while kernels run
        given = [array for array in program.arrays if array.given]
        predicted = sum(cost.arrival(array, places[array.name]) for array in given)
        # Predictions have the time of freeing the memory, too, which comes later.
        assert 0.85 < predicted / row["phases"]["load"] < 1.35, (row["program"], row["policy"])
        checked |= {places[array.name].kind for array in given}
    assert checked == {"device", "pinned", "host_mapped", "prefetched", "split"}
