"""A measured and a modelled sweep side by side, and where the model misses."""

import math

import pytest

from louvain_um.errors import LouvainUmError
from louvain_um.profiling.sweep.results import Sweep, join_sweeps
from louvain_um.profiling.views.html import render
from louvain_um.profiling.views.sweep.validation import by_policy, misses, pairs, ratios, validation
from tests.profiling.views.made import sweep_rows


def modelled(**change):
    about = {"gpu": "h200", "vertices": 34, "arcs": 156, **change}
    return [{**row, **about} for row in sweep_rows()]


def measured(**change):
    about = {"evidence": "measured", "gpu": "NVIDIA H200", "bytes_remote": None, **change}
    return [{**row, **about} for row in modelled()]


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        ({}, ()),
        ({"bytes_to_device": 104, "fault_groups": 12, "seconds": 1.39}, ()),
        ({"bytes_to_device": 105, "fault_groups": 13, "seconds": 1.4}, ()),  # on the limits
        ({"bytes_to_device": 106}, ("bytes",)),
        ({"bytes_to_device": 94, "fault_groups": 6}, ("bytes", "fault_groups")),
        ({"seconds": 0.59}, ("seconds",)),
        ({"bytes_to_device": 200, "bytes_loaded": 100, "seconds": 3.0, "load_seconds": 2.0}, ()),
    ],
)
def test_limits(change, missed):
    run = {"bytes_to_device": 100, "bytes_to_host": 0, "fault_groups": 10, "seconds": 1.0}
    assert misses(ratios(run, {**run, **change})) == missed


def test_what_nobody_counted_is_no_miss_and_something_for_nothing_is():
    run = {"bytes_to_device": 0, "bytes_to_host": 0, "fault_groups": None, "seconds": 1.0}
    assert ratios(run, run) == {"bytes": 1.0, "fault_groups": None, "seconds": 1.0}
    found = ratios(run, {**run, "bytes_to_device": 1, "fault_groups": 3})
    assert (found["bytes"], misses(found)) == (math.inf, ("bytes",))


def test_only_the_machine_that_was_measured_is_compared():
    rows = Sweep.of([*measured(), *modelled(), *modelled(gpu="p4000")]).results
    found = pairs(rows)
    assert len(found) == sum(row["feasible"] for row in sweep_rows())
    assert {other["gpu"] for _, other in found} == {"h200"}
    assert all(row["policy"] == other["policy"] for row, other in found)
    assert pairs(Sweep.of(modelled()).results) == []


def test_the_report_says_where_the_model_misses():
    rows = measured()
    for row in rows:
        if row["policy"] == "adv2":
            row["fault_groups"] = 100
    rows[0]["fault_groups"] = None
    sweep = join_sweeps(Sweep.of(rows), Sweep.of(modelled()))
    table = validation(sweep)
    assert "fault groups within 30 % in 7 of 11 runs" in table.title
    assert table.rows[0]["misses"] == "none (not measured: fault groups)"
    assert {row["misses"] for row in table.rows if row["policy"] == "adv2"} == {"fault groups"}
    assert "Validation" in render((), sweep=sweep)
    assert validation(Sweep.of(modelled())).rows == ()
    assert "limits missed" not in render((), sweep=Sweep.of(modelled()))


def test_sweeps_are_joined_run_by_run():
    first, second = Sweep.of(measured(), notes=["one"]), Sweep.of(modelled(), notes=["two"])
    both = join_sweeps(first, second)
    assert len(both.results) == len(first.results) + len(second.results)
    assert both.notes == ("one", "two")
    again = join_sweeps(both, Sweep.of(modelled(seconds=9.0)))
    assert again.results == both.results
    assert again.notes[-1].startswith("13 runs are in both")
    with pytest.raises(LouvainUmError, match="rename a graph"):
        join_sweeps(first, Sweep.of(modelled(arcs=158)))


def test_how_far_the_model_is_off_is_reported_by_policy_and_whether_both_had_the_same_memory():
    mine = [{**row, "budget_bytes": 1000} for row in measured()]
    theirs = [{**row, "seconds": row["seconds"] and row["seconds"] * (2 if row["policy"] == "adv2"
               else 1), "budget_bytes": 1000} for row in modelled()]  # fmt: skip
    sweep = Sweep.of([*mine, *theirs])
    found = {row["policy"]: row for row in by_policy(sweep).rows}
    assert found["adv2"]["least seconds"] == found["adv2"]["most seconds"] == 2.0
    assert found["base"]["median seconds"] == found["all"]["least seconds"] == 1.0
    assert found["all"]["runs"] == len(pairs(sweep.results))
    assert "same bytes of device memory" in validation(sweep).about
    other = Sweep.of([*mine, *({**row, "budget_bytes": 1500} for row in theirs)])
    assert "up to 50.0 % more or less" in validation(other).about
    assert "Error of the model by policy" in render((), sweep=sweep)
