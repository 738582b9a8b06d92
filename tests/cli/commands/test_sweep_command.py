import pytest
from matplotlib.figure import Figure

from tests.cli.conftest import FIELDS


def test_a_sweep_of_which_no_run_fits_fails_and_says_what_it_needs(run, tmp_path):
    asked = ("sweep", "example:les-miserables", "-o", tmp_path / "s", "--oversubscription", "97")
    done = run(*asked, "--policies", "adv2")
    assert (done.code, done.out) == (1, "")
    assert "no run fits" in done.err
    assert "raise the budget to 2MiB" in done.err
    assert (tmp_path / "s/results.csv").exists()
    again = run(*asked, "--policies", "adv2", "--json")
    assert again.code == 1
    assert [row["feasible"] for row in again.json["results"]] == [False]
    assert run(*asked[:3], tmp_path / "t", *asked[4:], "--policies", "adv1,adv2").code == 0


def test_every_command_means_the_same_by_100_percent(run, source, tmp_path):
    arguments = ("--policies", "base", "--oversubscription", "0,30", "--json")
    plan = run("plan", source, "--read", "--memory", "base", "--json").json
    budget = run("plan", source, "--read", "--device-budget", "70%", "--json")
    rows = run("simulate", source, *arguments).json["results"]
    rows += run("sweep", source, "--machine", "h200", "-o", tmp_path / "out", *arguments).json[
        "results"
    ]
    assert {row["peak_bytes"] for row in rows} == {plan["in_core_bytes"]}
    # Where nothing is withheld, small blocks have whole root chunks.
    assert all(row["budget_bytes"] >= plan["in_core_bytes"] for row in rows[::2])
    assert [row["budget_bytes"] for row in rows[1::2]] == [budget.json["budget_bytes"]] * 2
    shown = f"{plan['in_core_bytes'] / 2**20:.1f} MiB"
    assert f"{shown} needed with everything on the GPU" in run("plan", source, "--read").out
    assert f"100 % of device memory is {shown}" in run("simulate", source, *arguments[:-1]).out


def test_commands_share_the_names_of_options(run, source, tmp_path):
    def row(*arguments):
        done = run(*arguments, "--json")
        assert done.code == 0, done.err
        return done.json["results"][0]

    new = ("--machine", "p4000", "--memory", "adv1", "--device-budget", "70%")
    also = ("--machine", "p4000", "--policies", "adv1", "--oversubscription", "30")
    one = row("simulate", source, *new)
    assert one == row("simulate", source, *also)
    assert (one["policy"], one["oversubscription"], one["gpu"]) == ("adv1", 30, "p4000")
    swept = row("sweep", source, *new, "-o", tmp_path / "new")
    assert row("sweep", source, *also, "-o", tmp_path / "also") == swept
    assert swept["seconds"] == one["seconds"]
    size = row("simulate", source, *new[:4], "--device-budget", f"{one['budget_bytes']}B")
    assert size["budget_bytes"] == one["budget_bytes"]
    for option in ("--memory", "--policies"):
        plan = run(
            "plan", source, "--machine", "p4000", option, "adv1", "--device-budget", "70%", "-q"
        )
        assert (plan.code, plan.err) == (0, "")
        assert "adv1" in plan.out


@pytest.mark.parametrize(
    ("device", "gpu", "eviction"),
    [("cuda", "h200", "program"), ("cuda", None, "driver"), ("cpu", "h200", "driver")],
)
def test_eviction_by_the_program_is_the_default_next_to_measured_runs(
    monkeypatch, device, gpu, eviction
):
    from louvain_um.cli.commands.sweep import machines_for
    from louvain_um.gpu.runtime import device as devices

    found = devices.Choice(kind=device, index=0, reason="asked for")
    monkeypatch.setattr(devices, "pick", lambda wanted: found)
    assert machines_for(device, gpu, None)[2] == eviction


def test_sweep_writes_tables_and_a_report(run, source, tmp_path):
    folder = tmp_path / "out"
    arguments = ("sweep", source, "example:karate", "--machine", "p4000", "--policies", "base,adv2",
                 "--oversubscription", "0,50", "-o", folder)  # fmt: skip
    done = run(*arguments, "--json")
    assert done.code == 0, done.err
    rows = done.json["results"]
    assert len(rows) == 8
    assert all(set(row) >= FIELDS for row in rows)
    assert (folder / "report.html").stat().st_size > 10_000
    points = (folder / "points.jsonl").read_text()
    assert run(*arguments).code == 0
    assert (folder / "points.jsonl").read_text() == points


def test_results_of_another_sweep_are_kept(run, tmp_path):
    folder = tmp_path / "out"
    arguments = ["sweep", "example:les-miserables", "--machine", "p4000", "-o", folder, "-q"]
    first = ("--policies", "base,adv2", "--oversubscription", "0,30")
    assert run(*arguments, *first).code == 0
    written = {path.name: path.read_bytes() for path in folder.iterdir()}
    for other in (
        ("--policies", "base", "--oversubscription", "0,30"),
        ("--policies", "base,adv2", "--oversubscription", "0"),
        (*first, "--seed", "7"),
        (*first, "--eviction", "lru"),
    ):
        refused = run(*arguments, *other)
        assert refused.code == 1
        assert "holds results of another sweep" in refused.complaint()
        assert "--force" in refused.complaint()
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == written
    assert run(*arguments, *first).code == 0
    # More policies add rows and lose none.
    more = ("--policies", "base,adv2,adv7", "--oversubscription", "0,30,50")
    assert run(*arguments, *more).code == 0
    assert len((folder / "results.csv").read_text().splitlines()) == 10
    assert run(*arguments, "--policies", "adv1", "--oversubscription", "0", "--force").code == 0
    assert len((folder / "results.csv").read_text().splitlines()) == 2
    assert not (folder / "iterations.csv").exists()  # of base, which no longer ran


def test_another_graph_of_the_same_name_and_size_is_no_continuation(run, tmp_path):
    graph = tmp_path / "g.txt"
    arguments = ("sweep", graph, "--machine", "p4000", "--policies", "base",
                 "--oversubscription", "0", "-o", tmp_path / "out", "-q")  # fmt: skip

    def circle(step):
        graph.write_text("".join(f"{v} {(v + step) % 40}\n" for v in range(40)))
        return run(*arguments)

    assert circle(1).code == 0
    assert circle(1).code == 0
    assert "holds results of another sweep" in circle(3).complaint()


@pytest.mark.parametrize("edit", ["value", "row", "table", "parquet"])
def test_edited_results_are_kept(run, tmp_path, edit):
    folder = tmp_path / "out"
    arguments = ("sweep", "example:karate", "--machine", "p4000", "--policies", "base",
                 "--oversubscription", "0", "-o", folder, "-q")  # fmt: skip
    assert run(*arguments).code == 0
    table = folder / "results.csv"
    lines = table.read_text().splitlines()
    if edit == "value":
        table.write_text("\n".join([lines[0], lines[1].replace("p4000", "mine")]) + "\n")
    elif edit == "row":
        table.write_text("\n".join([*lines, lines[1].replace("base", "adv2")]) + "\n")
    elif edit == "table":
        table.write_text("graph,seconds\nkarate,1\n")
    else:
        table.unlink()
        assert run(*arguments).code == 0  # as only a copy is gone
        table.unlink()
        (folder / "results.parquet").write_bytes(b"PAR1")
    before = table.read_bytes() if table.exists() else None
    refused = run(*arguments)
    assert refused.code == 1
    assert "--force" in refused.complaint()
    assert (table.read_bytes() if table.exists() else None) == before
    assert run(*arguments, "--force").code == 0


def test_fractions_are_no_percentages(run, tmp_path):
    for command in (("simulate",), ("sweep", "-o", tmp_path / "out")):
        arguments = (*command, "example:karate", "--policies", "base", "--machine", "h200")
        done = run(*arguments, "--oversubscription", "0,0.3")
        assert done.code == 2
        assert "write 30 for 30 %, or 0.3% if that is meant" in done.complaint()
        done = run(*arguments, "--oversubscription", "0,0.3%", "--json")
        assert [row["oversubscription"] for row in done.json["results"]] == [0, 0.3]
    notes = (tmp_path / "out" / "notes.txt").read_text()
    assert "0.3 is less than one percent" in notes


@pytest.mark.parametrize("content", [b"\xff\xfe\n", b"mine", b'{"a": 1}\n{"b": 2}\n'])
def test_points_of_another_are_left_alone(run, tmp_path, content):
    points = tmp_path / "points.jsonl"
    points.write_bytes(content)
    arguments = ("sweep", "example:karate", "--policies", "base", "--oversubscription", "0",
                 "--machine", "h200", "-o", tmp_path)  # fmt: skip
    done = run(*arguments)
    assert (done.code, "--force" in done.complaint()) == (1, True)
    assert points.read_bytes() == content
    assert run(*arguments, "--force").code == 0
    assert b'"row"' in points.read_bytes()


def test_a_measured_sweep_and_a_modelled_one_are_reported_side_by_side(run, source, tmp_path):
    import pandas as pd

    modelled, page = tmp_path / "modelled", tmp_path / "both.html"
    assert run("sweep", source, "--machine", "h200", "--policies", "base,adv2",
               "--oversubscription", "0,50", "-o", modelled, "-q").code == 0  # fmt: skip
    table = pd.read_csv(modelled / "results.csv")
    table["evidence"], table["gpu"], table["seconds"] = "measured", "NVIDIA H200", table.seconds * 2
    table.to_csv(tmp_path / "measured.csv", index=False)
    done = run("report", tmp_path / "measured.csv", modelled, "-o", page)
    assert done.code == 0, done.err
    text = page.read_text()
    assert all(f"seconds {how}</p>" in text for how in ("measured, NVIDIA H200", "modelled, h200"))
    assert "seconds within 40 % in 0 of 2 runs" in text  # half of this graph is too little
    shown = run("report", modelled, tmp_path / "measured.csv").out
    assert "limits missed" in shown
    both = run("report", modelled, tmp_path / "measured.csv", "--json").json["results"]
    assert [row["evidence"] for row in both] == ["modelled"] * 4 + ["measured"] * 4


def test_recordings_and_tables_of_addresses_are_swept(run, source, tmp_path):
    table = tmp_path / "addresses.csv"
    lines = [f"{at},{0x100000 + 4096 * (at % 1500)},0" for at in range(3000)]
    table.write_text("\n".join(["time,address,write", *lines, ""]))
    recording = tmp_path / "recorded.npz"
    asked = ("--policies", "base,adv1", "--oversubscription", "0,50")
    assert run("simulate", source, *asked, "-o", recording).code == 0
    done = run("sweep", table, recording, *asked, "--machine", "p4000", "-o", tmp_path / "s", "-q")
    assert done.code == 0, done.err
    rows = run("sweep", table, recording, *asked, "--machine", "p4000", "-o", tmp_path / "s",
               "--json").json["results"]  # fmt: skip
    assert {row["graph"] for row in rows} == {"addresses", "recorded"}
    base = [row for row in rows if (row["graph"], row["policy"]) == ("addresses", "base")]
    assert [row["evictions"] > 0 for row in base] == [False, True]
    ran = [row for row in rows if row["feasible"]]
    assert all(row["least_seconds"] <= row["seconds"] <= row["most_seconds"] for row in ran)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_addresses_and_sessions_are_swept_as_they_are(run, two_triangles, tmp_path, suffix):
    import numpy as np
    import pandas as pd

    table, session = tmp_path / f"addresses{suffix}", tmp_path / "session.npz"
    frame = pd.DataFrame({"time": range(4096), "address": 4096 * np.arange(4096)})
    (frame.to_csv if suffix == ".csv" else frame.to_parquet)(table, index=False)
    assert run("profile", two_triangles, "-o", session, "-q").code == 0
    asked = ("--policies", "base,zero_copy", "--oversubscription", "0,50", "--json")
    done = run("sweep", table, session, *asked, "-o", tmp_path / "swept")
    assert done.code == 0, done.err
    rows = [row for row in done.json["results"] if row["policy"] == "base"]
    assert {row["graph"] for row in rows} == {"addresses", "session"}
    (half,) = [row for row in rows if (row["graph"], row["oversubscription"]) == ("addresses", 50)]
    alone = run("simulate", table, *asked).json["results"]
    assert half["evictions"] > 0
    assert half["seconds"] == alone[1]["seconds"]


def test_charts_of_a_study_have_those_of_each_graph(run, source, tmp_path, monkeypatch):
    monkeypatch.setattr(Figure, "savefig", lambda figure, drawing, **how: drawing.write(b"drawn"))
    study, charts = tmp_path / "study", tmp_path / "charts"
    some = ("--machine", "p4000", "--policies", "base", "--oversubscription", "0")
    assert run("sweep", source, *some, "-o", study).code == 0
    (study / "sessions").mkdir()
    for name in ("one", "two"):
        kept = study / "sessions" / f"{name}.npz"
        assert run("simulate", source, *some, "--session", kept).code == 0
    done = run("report", study, "--charts", charts, "--json")
    assert done.code == 0, done.err
    assert len(list(charts.glob("times-0-*.pdf"))) == 1
    for name in ("one", "two"):
        assert (charts / name / "access-map.svg").exists()
    assert len(done.json["written"]) == sum(path.is_file() for path in charts.rglob("*"))
