import json

import pytest

from louvain_um.profiling import load
from louvain_um.profiling.sweep.files import KEY
from tests.profiling.views.made import cpu_run, paged_run, sweep_rows


def test_a_run_is_recorded(run, two_triangles, tmp_path):
    session = tmp_path / "run.npz"
    out = run("profile", two_triangles, "-o", session, "--device", "cpu")
    assert (out.code, " arcs/s\n" in out.out) == (0, True)
    assert f"louvain-um report {session}" in out.out
    about = load(session).metadata
    assert (about["communities"], about["graph"]["vertices"]) == (2, 6)
    assert about["complete"]


def test_json_is_one_object(run, two_triangles, tmp_path):
    session = tmp_path / "run.parquet"
    out = run("profile", two_triangles, "-o", session, "--device", "cpu", "--json", "-q")
    found = out.json
    assert found["graph"]["edges"] == 7
    assert found["communities"] == 2
    assert found["session"] == str(session)
    assert found["seconds"] > 0
    assert found["gpu_faults"] is None
    assert found["sources"]["engine"] == "measured"
    assert set(found["peak_bytes"]) == {"graph", "hash", "community", "scratch"}


def test_search_options_reach_the_run_that_is_recorded(run, two_triangles, tmp_path):
    command = ("profile", two_triangles, "--device", "cpu", "--force", "--json", "-q")
    command += ("-o", tmp_path / "run.npz")
    usual = run(*command).json["accesses"]
    assert run(*command, "--n-iterations", 1).json["accesses"] < usual
    for asked in (("--effort", "best"), ("--best-of", 3)):
        assert run(*command, *asked).json["accesses"] > usual
    refused = run(*command, "--program", "bfs", "--best-of", 3)
    assert (refused.code, "--best-of" in refused.complaint()) == (2, True)


def test_another_algorithm_is_recorded(run, two_triangles, tmp_path):
    session = tmp_path / "run.npz"
    command = ("profile", two_triangles, "-o", session, "--device", "cpu")
    found = run(*command, "--program", "bfs", "--from", "dan", "--json", "-q").json
    assert (found["program"], found["method"], found["communities"]) == ("bfs", "bfs", None)
    simulated = run("simulate", session, "--machine", "h200", "--policies", "base,auto")
    assert simulated.code == 0, simulated.err


def test_light_is_for_a_gpu(run, two_triangles, tmp_path):
    command = ("profile", two_triangles, "-o", tmp_path / "run.npz", "--device", "cpu", "--force")
    assert "ran on the CPU; --light was ignored" in run(*command, "--light").err
    assert "--light" not in run(*command).err


@pytest.fixture
def session(tmp_path):
    path = tmp_path / "run.npz"
    paged_run().save(path)
    return path


def test_from_a_graph_to_a_page(run, two_triangles, tmp_path):
    recorded, page = tmp_path / "cpu.npz", tmp_path / "cpu.html"
    assert run("profile", two_triangles, "-o", recorded, "--device", "cpu", "-q").code == 0
    out = run("report", recorded, "-o", page)
    assert (out.code, out.out) == (0, "")
    assert f"wrote {page}" in out.err
    text = page.read_text()
    assert "louvain" in text
    assert "measured (engine)" in text


def test_without_a_page_there_are_tables(run, session):
    out = run("report", session)
    assert out.code == 0
    for word in ("Eviction held the run back", "By group", "targets.0", "measured (uvm)", "note: "):
        assert word in out.out


def test_all_that_can_be_written_is(run, session, tmp_path):
    other = tmp_path / "other.npz"
    cpu_run().save(other)
    page, trace, charts = tmp_path / "r.html", tmp_path / "t.json", tmp_path / "charts"
    out = run("report", session, other, "-o", page, "--trace", trace, "--charts", charts, "--json")
    assert out.code == 0
    assert f"{trace} is of the first session, {session}" in " ".join(out.err.split())
    found = out.json
    assert len(found["sessions"]) == 2
    assert "Eviction" in found["sessions"][0]["verdict"]
    assert found["sessions"][0]["bytes_to_device"] > 0
    assert str(page) in found["written"]
    assert "Comparison" in page.read_text()
    assert json.loads(trace.read_text())["traceEvents"]
    drawn = {path.name for path in charts.iterdir()}
    assert {"access-map.pdf", "access-map.svg", "fault-map.pdf", "fault-map.svg"} <= drawn
    pdf = (charts / "level-times.pdf").read_bytes()
    assert b"/Type3" not in pdf
    assert b"/FontFile2" in pdf  # TrueType
    assert "<text" in (charts / "level-times.svg").read_text()


def test_results_of_a_sweep_are_shown_alike(run, tmp_path):
    import pandas as pd

    table, page = tmp_path / "results.csv", tmp_path / "r.html"
    pd.DataFrame(sweep_rows()).to_csv(table, index=False)
    assert run("report", table, "-o", page, "-q").code == 0
    assert "Gain over base" in page.read_text()
    out = run("report", tmp_path)  # the sweep's folder
    assert "adv2" in out.out
    assert run("report", tmp_path, "--json").json["results"][0]["graph"] == "uk-2002-like"


def test_a_simulated_run_is_reported_as_modelled(run, two_triangles, tmp_path):
    session, page = tmp_path / "sim.npz", tmp_path / "sim.html"
    one = ("--policies", "base", "--oversubscription", "0")
    assert run("simulate", two_triangles, *one, "--session", session, "-q").code == 0
    assert run("report", session, "-o", page, "-q").code == 0
    assert "modelled (simulator)" in page.read_text()
    assert "measured (" not in page.read_text()
    assert "--force" in run("simulate", two_triangles, *one, "--session", session).complaint()


def test_a_pipe_is_not_waited_for(run, tmp_path):
    import os

    pipe = tmp_path / "run.npz"
    os.mkfifo(pipe)
    assert "neither a file nor a folder" in run("report", pipe).complaint()


def test_nothing_is_written_where_a_chart_is_in_the_way(run, session, tmp_path):
    pytest.importorskip("matplotlib")
    charts, page, trace = tmp_path / "charts", tmp_path / "r.html", tmp_path / "t.json"
    charts.mkdir()
    (charts / "residency.pdf").write_text("mine")
    out = run("report", session, "-o", page, "--trace", trace, "--charts", charts)
    assert out.code == 1
    assert "residency.pdf: exists already" in out.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["charts", "run.npz"]
    assert [path.name for path in charts.iterdir()] == ["residency.pdf"]


def test_an_interrupted_sweep_is_shown_with_what_is_missing(run, tmp_path):
    about = {"gpu": "h200", "setup": "", "vertices": 34, "arcs": 156, "peak_bytes": 1 << 30}
    rows = [{**row, **about} for row in sweep_rows()]
    lines = [json.dumps({"row": row}) + "\n" for row in (*rows[:2], *rows[3:])]
    (tmp_path / "points.jsonl").write_text("".join(lines))
    requested = [{name: row[name] for name in KEY} for row in rows]
    (tmp_path / "unfinished.json").write_text(json.dumps({"notes": [], "points": requested}))
    out = run("report", tmp_path)
    assert out.code == 0, out.err
    assert f"{len(lines)} of {len(rows)} points are finished" in " ".join(out.out.split())
    page = tmp_path / "r.html"
    assert run("report", tmp_path, "-o", page, "-q").code == 0
    assert "repeat its command" in page.read_text()
