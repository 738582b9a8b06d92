"""What a plan of ranks predicts is what ranks take."""

import json

import pytest
from typer.testing import CliRunner

from louvain_um.cli import app
from louvain_um.distributed.partition import blocks_of
from louvain_um.distributed.rank_plans import (
    LARGE,
    device_choices,
    link_bytes,
    most_device_speedup,
    plan_devices,
    plan_ranks,
)
from louvain_um.distributed.run import detect_on_rank
from louvain_um.errors import OptionError
from louvain_um.generators import lfr
from louvain_um.options import Options
from tests.distributed.threads import run_threads
from tests.paths import MEASURED, RESULTS


@pytest.mark.parametrize("ranks", [4, 16])
def test_bytes_are_predicted_within_a_fifth(ranks):
    graph = lfr(1 << 16, seed=4).graph  # not the graph that the figures are from
    options = Options(device="cpu", threads=1)
    blocks = blocks_of(graph, ranks)

    def task(local):
        found = detect_on_rank(local, blocks[local.rank], options, collapse_arcs=1 << 16)
        return local.traffic.received, sum(found.memory.values())

    plan = plan_ranks(graph.n_vertices, graph.n_arcs, ranks=ranks)
    received, held = run_threads(task, ranks)[0]
    assert plan.received_bytes == pytest.approx(received, rel=0.2)
    assert plan.nbytes == pytest.approx(held, rel=0.2)


def test_more_ranks_take_less_memory_and_more_messages():
    few, many = (plan_ranks(10**8, 4 * 10**9, ranks=ranks) for ranks in (2, 16))
    assert many.nbytes < few.nbytes
    assert many.received_bytes > few.received_bytes
    assert many.seconds["local"] < few.seconds["local"]
    assert many.seconds["apply"] == few.seconds["apply"]


@pytest.mark.parametrize("rate", ["", "fast", "0Gb", "-1Gb", "100"])
def test_rates_that_are_none(rate):
    with pytest.raises(OptionError, match="such as '100Gb'"):
        link_bytes(rate)


def run(*arguments):
    done = CliRunner().invoke(app, ["plan", *arguments])
    return done.exit_code, done.stdout


def test_the_command_line_names_the_best_number_of_ranks():
    size = ("ranks", "24", "--vertices", "1000000000", "--arcs", "40000000000")
    code, text = run(*size, "--link", "100Gb", "--rank-memory", "100GiB", "--json")
    assert code == 0
    found = json.loads(text)
    assert [plan["ranks"] for plan in found["plans"]] == [1, 2, 4, 8, 16, 24]
    assert (found["best"], found["least"], found["evidence"]) == (24, 4, "modelled")
    speeds = [plan["total_seconds"] for plan in found["plans"]]
    assert speeds[0] / speeds[-1] < found["most_speedup"]
    code, text = run(*size, "--rank-memory", "20GiB")
    assert code == 0
    assert "no number of ranks fits" in text


@pytest.mark.parametrize(("vertices", "ranks"), [("1000000", "1000"), ("10000000", "64")])
def test_what_limits_ranks_does_not_contradict_the_table(vertices, ranks):
    size = ("ranks", ranks, "--vertices", vertices, "--arcs", f"{vertices}0")
    found = json.loads(run(*size, "--json")[1])
    speeds = [plan["total_seconds"] for plan in found["plans"]]
    assert speeds[0] / min(speeds) <= found["most_speedup"]
    faster = min(speeds) < speeds[0]
    assert ("no number of ranks is as fast as one" in run(*size)[1]) == (not faster)


KINDS = {"lfr": "community_structured", "rma": "power_law", "ste": "mesh"}


def measured():
    found = []
    alone = json.loads((MEASURED / "detection_h200.json").read_text())["results"]
    several = json.loads((RESULTS / "devices_h200.json").read_text())["devices"]["results"]
    for run in (*several, *(run for run in alone if run["arcs"] >= 5 * LARGE)):
        devices = run.get("device", "cuda:0").count(",") + 1
        seconds = run.get("seconds", run.get("algorithm_median"))
        if run["method"] == "louvain" and run["graph"][:3] in KINDS and run["arcs"] >= LARGE:
            found.append((run["graph"], run["vertices"], run["arcs"], devices, seconds))
    return found


@pytest.mark.records
def test_every_kind_was_measured_on_one_and_two():
    seen = {(graph[:3], devices) for graph, _, _, devices, _ in measured()}
    assert seen >= {(kind, devices) for kind in KINDS for devices in (1, 2)}


@pytest.mark.records
@pytest.mark.parametrize(("graph", "vertices", "arcs", "devices", "seconds"), measured())
def test_seconds_are_predicted_within_a_fifth(graph, vertices, arcs, devices, seconds):
    plan = plan_devices(vertices, arcs, devices=devices, kind=KINDS[graph[:3]])
    assert plan.total_seconds == pytest.approx(seconds, rel=0.2)
    assert plan.evidence == "fitted"


@pytest.mark.records
def test_what_is_reserved_covers_what_was_in_use():
    """By less than the factor that the command line names."""
    runs = json.loads((RESULTS / "devices_h200.json").read_text())["devices"]["results"]
    seen = [run for run in runs if run["arcs"] >= LARGE and "peak_bytes" in run]
    for run in seen:
        devices = run["device"].count(",") + 1
        plan = plan_devices(run["vertices"], run["arcs"], devices=devices)
        assert run["peak_bytes"] < devices * plan.nbytes < 2.3 * run["peak_bytes"]
    assert len(seen) >= 4


@pytest.mark.records
@pytest.mark.parametrize("kind", KINDS.values())
def test_more_devices_are_faster_up_to_a_limit(kind):
    plans = device_choices(10**9, 4 * 10**10, 16, kind=kind)
    seconds = [plan.total_seconds for plan in plans]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[0] / seconds[-1] < most_device_speedup(kind)
    assert [plan.evidence for plan in plans] == ["fitted"] * 2 + ["modelled"] * 3
    assert plans[-1].nbytes < plans[0].nbytes


@pytest.mark.records
@pytest.mark.parametrize("values", [{"devices": 0}, {"devices": 65}, {"kind": "tree"}])
def test_sizes_that_are_none(values):
    with pytest.raises(OptionError):
        plan_devices(10, 20, **({"devices": 1} | values))
