import json
import re
from pathlib import Path

import pytest

from louvain_um.gpu.runtime import device
from louvain_um.placement.hardware import size
from louvain_um.placement.machine import calibrate
from louvain_um.placement.machine.profiles import H200
from louvain_um.profiling.simulator import load_trace
from tests.cli.conftest import FIELDS


def test_simulate_prints_one_object(run, source, tmp_path):
    out, other = tmp_path / "r.csv", tmp_path / "r.json"
    asked = ("simulate", source, "--machine", "p4000", "--policies", "base,adv2,auto",
             "--oversubscription", "0,50", "-o")  # fmt: skip
    done = run(*asked, out, "--json")
    assert done.code == 0, done.err
    rows = done.json["results"]
    assert run(*asked, other, "-q").code == 0
    assert run("report", other).out == run("report", out).out != ""
    assert len(rows) == 6
    assert all(set(row) >= FIELDS and row["evidence"] == "modelled" for row in rows)
    assert len(out.read_text().splitlines()) == 7
    assert {row["graph"] for row in rows} == {"small"}


def test_eviction_by_the_program_is_simulated(run, source, tmp_path):
    kept = tmp_path / "s.npz"
    wanted = ("--policies", "base", "--oversubscription", "0", "--eviction", "program", "--json")
    done = run("simulate", source, *wanted)
    assert done.code == 0, done.err
    assert done.json["results"][0]["feasible"]
    assert done.json["results"][0]["evictions"] == 0
    swept = run("sweep", source, "-o", tmp_path / "swept", "--machine", "h200", *wanted)
    assert swept.code == 0, swept.err
    assert swept.json["results"][0]["seconds"] == done.json["results"][0]["seconds"]
    assert run("profile", source, "-o", kept, "--device", "cpu").code == 0
    refused = run("simulate", kept, *wanted)
    assert refused.code != 0
    assert "record the graph again" in refused.complaint()
    study = run("sweep", "--study", "p4000", "-o", tmp_path / "study", "--eviction", "program")
    assert "another program" in study.complaint()


@pytest.mark.parametrize("budget", ["70B", "100KiB", "1900KiB", "2MiB"])
def test_auto_runs_where_all_can_lie_on_the_host(run, budget):
    """Less than the driver's block of 2 MiB holds no array."""
    wanted = ("--machine", "p4000", "--policies", "auto,adv1", "--device-budget", budget, "--json")
    done = run("simulate", "example:les-miserables", *wanted)
    assert done.code == 0, done.err
    auto, plain = done.json["results"]
    assert auto["feasible"]
    assert auto["seconds"] <= plain["seconds"]


@pytest.mark.parametrize("more", [(), ("-q",), ("--json",)])
def test_a_simulation_of_which_nothing_fits_says_what_would(run, source, tmp_path, more):
    asked = ("simulate", source, "--machine", "p4000", "--policies", "base,device", *more)
    recording = tmp_path / "r.npz"
    refused = run(*asked, "--device-budget", "1B,1kB", "-o", recording)
    assert refused.code == 1
    if "--json" in more:  # the rows are printed, too
        assert not any(row["feasible"] for row in refused.json["results"])
        reported_in = refused.err
    else:
        reported_in = refused.complaint()
    reported = "no run fits: base, the least demanding policy, needs 2.0 MiB, 2,096,152 bytes more"
    assert reported in reported_in
    least = re.search(r"raise the budget to (\S+) or", reported_in)[1]
    assert run("simulate", recording, *asked[2:], "--device-budget", least).code == 0
    if not more:
        reasons = run(*asked, "--device-budget", "1B,1kB", "-v").err
        assert "note: device at 99.9" in reasons


def test_infeasible_points_are_shown_with_reasons(run, source):
    wanted = ("--policies", "device", "--oversubscription", "0,90", "--eviction", "program")
    done = run("simulate", source, *wanted)
    rows = run("simulate", source, *wanted, "--json").json["results"]
    assert [row["feasible"] for row in rows] == [True, False]
    assert f"100 % of device memory is {size(rows[0]['peak_bytes'])}," in done.out
    assert "cannot run within the memory; --verbose gives the reasons" in done.err
    assert "device at 90 %: " in run("simulate", source, *wanted, "--verbose").err


def test_a_narrow_terminal_cuts_no_name_and_no_range(run, source, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = run("simulate", source, "--machine", "p4000", "--policies", "base,adv9")
    assert "…" not in done.out
    heads = [line.split() for line in done.out.splitlines() if line.startswith("policy")]
    assert len(heads) > 1
    rates = [int(word) for line in heads for word in line if word.isdigit()]
    assert rates == [0, 10, 30, 50, 70]
    for name in ("base", "adv9"):
        assert sum(line.startswith(name) for line in done.out.splitlines()) == len(heads)
    assert max(map(len, done.out.split("\n\n", 1)[1].splitlines())) <= 80


def test_the_how_to_shows_what_it_says(run, tmp_path):
    page = (Path(__file__).parents[3] / "docs/howto/policies.md").read_text()
    made = re.search(r"louvain-um (generate lfr \d+) -o g.mtx", page)[1].split()
    graph = tmp_path / "g.mtx"
    assert run(*made, "-o", graph).code == 0
    asked = re.search(r"louvain-um simulate g.mtx (.* base,adv2,adv7,auto)\n", page)[1].split()
    done = run("simulate", graph, *asked)
    assert "too small" not in done.err
    rows = run("simulate", graph, *asked, "--json").json["results"]
    evictions = {row["oversubscription"]: row["evictions"] for row in rows[:5]}
    assert [rate for rate, count in evictions.items() if count] == [30, 50, 70]
    times = {(row["policy"], row["oversubscription"]): row["seconds"] for row in rows}
    for rate, evicted in evictions.items():
        fastest = sorted(("base", "adv2", "adv7"), key=lambda name: times[name, rate])
        assert fastest[0] == ("adv2" if evicted else "base")
        assert times["auto", rate] < times[fastest[0], rate]
    assert times["adv7", 50] < times["base", 50]
    assert times["adv7", 30] > times["base", 30]
    assert [row["evictions"] for row in rows if row["policy"] == "adv7"] == [0] * 5


def test_a_recording_is_simulated_without_its_graph(run, source, tmp_path):
    trace = tmp_path / "t.npz"
    first = run("simulate", source, "--policies", "adv2", "--oversubscription", "50", "--json",
                "-o", trace)  # fmt: skip
    second = run("simulate", trace, "--policies", "adv2", "--oversubscription", "50", "--json")
    one, two = (done.json["results"][0] for done in (first, second))
    assert one["seconds"] == two["seconds"]
    again = run("simulate", source, "-o", trace)
    assert again.code == 1
    assert "exists" in again.complaint()
    for option in (("--method", "leiden"), ("--seed", "1"), ("--symmetrize",)):
        ignored = run("simulate", trace, *option)
        assert ignored.code == 2
        named = "reading options" if option == ("--symmetrize",) else option[0]
        assert f"takes no {named}" in ignored.complaint()


def test_the_reserve_of_the_thesis_s_program_counts_once_wherever_it_is_replayed(run, tmp_path):
    graph, swept = tmp_path / "g.mtx", tmp_path / "swept"
    run("generate", "lfr", "5000", "-o", graph)
    asked = ("--policies", "base,adv2,auto", "--oversubscription", "0,30", "--machine", "p4000",
             "--json")  # fmt: skip
    first = run("sweep", graph, "--as-thesis", *asked, "-o", swept)
    assert "128 MiB (scaled) of the card" in (swept / "notes.txt").read_text()
    (recording,) = swept.glob("*.npz")
    reserved = load_trace(recording).reserved
    assert reserved > 0
    again = run("sweep", recording, *asked, "-o", tmp_path / "again")
    replayed = run("simulate", recording, *asked)
    figures = ("policy", "oversubscription", "budget_bytes", "seconds", "faults", "evictions")
    rows = [
        {tuple(row[name] for name in figures) for row in done.json["results"]
         if row["policy"] != "best"}
        for done in (first, again, replayed)
    ]  # fmt: skip
    assert rows[0] == rows[1] == rows[2]
    assert len(rows[0]) == 6
    peak = first.json["results"][0]["peak_bytes"]
    assert {row[2] for row in rows[0] if row[1] == 30} == {int(0.7 * peak) - reserved}
    refused = run("sweep", recording, "--as-thesis", "-o", tmp_path / "no")
    assert "takes no --as-thesis" in refused.complaint()


def test_a_group_to_hold_may_have_no_arrays(run):
    some = ("simulate", "example:les-miserables", "--policies", "base", "--oversubscription", "0")
    done = run(*some, "--hold", "community,hash")
    assert done.code == 0, done.err
    assert "--hold hash has no effect" in done.err
    assert "--hold community" not in done.err


def test_no_memory_at_all_aborts_no_row(run):
    done = run("simulate", "example:les-miserables", "--policies", "base,auto",
               "--oversubscription", "0,99.9999999", "--json")  # fmt: skip
    assert done.code == 0, done.err
    rows = {(row["policy"], row["oversubscription"]): row for row in done.json["results"]}
    assert not rows["base", 99.9999999]["feasible"]
    # The plan has nothing to plan with.
    auto = rows["auto", 99.9999999]
    assert (auto["budget_bytes"], auto["chosen"], auto["feasible"]) == (0, None, False)
    assert auto["seconds_of_plan"] is None


@pytest.fixture
def card(monkeypatch, tmp_path):
    """A GPU whose measurement returns at once."""
    monkeypatch.setattr(device, "pick", lambda text: device.Choice("cuda", 0, "asked for"))
    monkeypatch.setattr(device, "describe", lambda index: {"name": "Some Card 9"})
    monkeypatch.setattr(calibrate, "calibrate", lambda index, progress, peer=None: H200)
    monkeypatch.setenv("LOUVAIN_UM_MACHINES", str(tmp_path / "machines"))
    return tmp_path


def test_figures_are_kept_where_plans_look(run, card):
    done = run("calibrate")
    kept = card / "machines" / "some-card-9.json"
    assert json.loads(kept.read_text())["remote_bandwidth"] == 51.3e9
    assert "51.3 GB/s" in done.out
    assert str(kept) in done.err
    refused = run("calibrate")
    assert (refused.code, "--force" in refused.complaint()) == (1, True)
    assert run("calibrate", "--force", "-q").code == 0


def test_figures_go_to_a_file(run, card):
    target = card / "m.toml"
    found = run("calibrate", "-o", str(target), "--json").json
    assert found["path"] == str(target)
    assert found["machine"]["name"] == "h200"
    assert not (card / "machines").exists()
    refused = run("calibrate", "-o", str(target))
    assert (refused.code, "--force" in refused.complaint()) == (1, True)


def test_nothing_is_measured_for_a_file_that_cannot_be_written(run, card, monkeypatch):
    monkeypatch.setattr(calibrate, "calibrate", lambda *_: pytest.fail("measured"))
    refused = run("calibrate", "-o", str(card / "none" / "m.json"))
    assert (refused.code, "no folder" in refused.complaint()) == (1, True)


def test_without_a_gpu(run, monkeypatch):
    from louvain_um.errors import DeviceUnavailableError

    def none():
        raise DeviceUnavailableError("no NVIDIA driver; use device='cpu'")

    monkeypatch.setattr(device, "capabilities", none)
    refused = run("calibrate")
    assert (refused.code, "no NVIDIA driver" in refused.complaint()) == (3, True)
    assert "--device cpu" not in refused.complaint()
    assert "--machine h200" in refused.complaint()
