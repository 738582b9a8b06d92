"""``louvain-um stream``: tables, report, going on after an interruption, and bad input."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import louvain_um as lu
from louvain_um.cli import app
from louvain_um.cli.commands import stream as stream_command
from louvain_um.core.atomic_files import LockedFolder
from louvain_um.dynamic.tracking.stream_folder import StreamFolder
from tests.cli.dynamic.conftest import tables


@pytest.fixture
def timed(tmp_path):
    """Return timed edges: four groups, one of which moves over to another."""
    rng = np.random.default_rng(1)
    lines = []
    for second in range(3000):
        u = int(rng.integers(0, 60))
        group = u // 15 if second < 1500 or u // 15 else 1
        v = (
            int(group * 15 + rng.integers(0, 15))
            if rng.random() < 0.9
            else int(rng.integers(0, 60))
        )
        if u != v:
            lines.append(f"p{u} p{v} {1_700_000_000 + 60 * second}")
    path = tmp_path / "calls.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def run(*arguments):
    return CliRunner().invoke(app, ["stream", *map(str, arguments)], catch_exceptions=False)


def test_tables_hold_the_communities_as_they_change(timed, tmp_path):
    folder = tmp_path / "out"
    result = run(timed, "-o", folder, "--every", "2h", "--window", "1d", "--json")
    assert result.exit_code == 0, result.output
    about = json.loads(result.stdout)
    found = tables(folder)
    assert about["batches"] == len(found["history"]) == 25
    assert about["edges"] == len(timed.read_text().splitlines())
    # The last row of each vertex is its community at the end.
    last = found["communities"].groupby("vertex")["community"].last()
    stream = lu.read_stream(timed)
    name_of = stream.edges.names
    tracker = lu.Tracker(graph := lu.DynamicGraph(0, weighted=True))
    for step in stream.steps(every="2h", window="1d"):
        insert, decrease = (
            None if edges is None else (name_of[edges[0]], name_of[edges[1]], edges[2])
            for edges in (step.insert, step.decrease)
        )
        r = tracker.update(graph.apply(insert=insert, decrease=decrease))
    expected = dict(zip(r.vertex_names.tolist(), r.ids.tolist(), strict=True))
    assert last.to_dict() == expected
    assert found["history"]["communities"].tolist() == [row["communities"] for row in tracker.rows]
    assert about["modularity"] == pytest.approx(r.modularity)
    page = (folder / "report.html").read_text()
    assert "calls.txt" in page
    assert page.count("<svg") >= 3


@pytest.mark.usefixtures("pageless")
@pytest.mark.parametrize("batches", [1, 7, 24])
def test_an_interrupted_stream_goes_on_where_it_was(timed, tmp_path, monkeypatch, batches):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    options = ("--every", "2h", "--window", "1d", "-q")
    assert run(timed, "-o", whole, *options).exit_code == 0
    real, left = StreamFolder.add, [batches]

    def add(self, *values):
        if left[0] == 0:
            self.tables["communities"].write(b"half a row")
            raise KeyboardInterrupt
        left[0] -= 1
        real(self, *values)

    monkeypatch.setattr(stream_command, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(StreamFolder, "add", add)
    stopped = run(timed, "-o", cut, *options)
    assert stopped.exit_code == 130
    assert stopped.stderr == "louvain-um: interrupted; repeat the command to continue\n"
    monkeypatch.setattr(StreamFolder, "add", real)
    result = run(timed, "-o", cut, *options, "--json")
    assert json.loads(result.stdout)["resumed_after"] == batches
    for name, table in tables(whole).items():
        pd.testing.assert_frame_equal(table, tables(cut)[name])
    again = run(timed, "-o", cut, *options, "--json")
    assert json.loads(again.stdout)["resumed_after"] == 25


def test_a_window_of_all_is_the_default(timed, tmp_path):
    folder = tmp_path / "out"
    assert run(timed, "-o", folder, "--every", "1d", "--window", "all", "-q").exit_code == 0
    again = run(timed, "-o", folder, "--every", "1d", "--json")
    about = json.loads(again.stdout)
    assert about["resumed_after"] == about["batches"]


def test_a_folder_of_something_else_is_left_alone(timed, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "mine.txt").write_text("keep")
    result = run(timed, "-o", folder)
    assert result.exit_code == 1
    assert "not empty" in result.output
    assert [file.name for file in folder.iterdir()] == ["mine.txt"]
    other = tmp_path / "other"
    assert run(timed, "-o", other, "-q").exit_code == 0
    result = run(timed, "-o", other, "--seed", 3)
    assert result.exit_code == 1
    assert "other options" in result.output
    assert run(timed, "-o", other, "--seed", 3, "--force", "-q").exit_code == 0
    with timed.open("a") as file:
        file.write("p0 p1 1800000000\n")
    result = run(timed, "-o", other, "--seed", 3)
    assert result.exit_code == 1
    assert "of this one before it changed" in result.output
    assert "tail -n +1 -f FILE" in result.output


def test_a_stream_that_failed_before_its_first_batch_leaves_the_folder_free(timed, tmp_path):
    folder = tmp_path / "out"
    failed = run(timed, "-o", folder, "--every", "0.001s")
    assert failed.exit_code == 2
    assert "--every must be longer" in failed.output
    assert not folder.exists()
    assert run(timed, "-o", folder, "--every", "2000").exit_code == 0
    assert len(tables(folder)["history"]) == 2
    assert run(timed, "-o", folder, "--every", "0.001s", "--force").exit_code == 2
    assert len(tables(folder)["history"]) == 2
    (folder / "tracker.npz").unlink()  # as a kill before the first checkpoint leaves it
    assert run(timed, "-o", folder, "--every", "1000").exit_code == 1


def test_a_stream_of_other_names_is_another_stream(tmp_path):
    file, folder = tmp_path / "a.csv", tmp_path / "out"
    file.write_text("ann,bob,1\nbob,cid,2\n")
    assert run(file, "-o", folder).exit_code == 0
    file.write_text("xav,yes,1\nyes,zoe,2\n")
    result = run(file, "-o", folder)
    assert result.exit_code == 1
    assert "holds a stream of another file" in result.output
    file.write_text("ann,bob,1\nbob,cid,2\n")
    assert run(file, "-o", folder).exit_code == 0


def test_every_vertex_is_listed_with_its_first_edge(tmp_path):
    path = tmp_path / "few.txt"
    path.write_text("a b 1\nb c 2\nd e 3\n\n  \n")  # blank lines at the end are nothing
    result = run(path, "-o", tmp_path / "out", "--every", "1", "--json")
    assert result.exit_code == 0, result.output
    found = tables(tmp_path / "out")["communities"]
    assert found.groupby("vertex")["time"].min().to_dict() == {
        "a": 1, "b": 1, "c": 2, "d": 3, "e": 3
    }  # fmt: skip
    # Vertices that are still to come are no communities.
    history = tables(tmp_path / "out")["history"]
    assert history["communities"].tolist()[0] == 1
    last = found.groupby("vertex")["community"].last()
    assert last["a"] == last["b"]
    assert last["d"] == last["e"] != last["a"]


def test_vertices_that_left_the_window_are_no_communities(tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("a,b,01.01.2026\nb,c,02.01.2026\nd,e,20.01.2026\n")
    options = ("--every", "1d", "--window", "3d", "--date-format", "%d.%m.%Y")
    piped = CliRunner().invoke(
        app, ["stream", "-", "-o", str(tmp_path / "piped"), *options], input=path.read_text()
    )
    assert (piped.exit_code, run(path, "-o", tmp_path / "out", *options).exit_code) == (0, 0)
    history = tables(tmp_path / "out")["history"]
    pd.testing.assert_frame_equal(history, tables(tmp_path / "piped")["history"])
    assert history["time"].iloc[[0, -1]].tolist() == ["02.01.2026", "21.01.2026"]
    assert history["communities"].iloc[[0, 10, -1]].tolist() == [1, 0, 1]
    assert "21.01.2026" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.usefixtures("pageless")
@pytest.mark.parametrize("file", ["tracker.npz", "checkpoints.json", "communities.csv"])
def test_a_damaged_state_is_refused(timed, tmp_path, file):
    folder = tmp_path / "out"
    assert run(timed, "-o", folder, "-q").exit_code == 0
    path = folder / file
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    result = run(timed, "-o", folder)
    assert result.exit_code == 1
    assert f"{file}: " in result.output
    assert "; pass --force to start again" in result.output
    assert run(timed, "-o", folder, "--force", "-q").exit_code == 0
    assert "Traceback" not in result.output


@pytest.mark.usefixtures("pageless")
def test_a_table_that_ends_within_a_line_is_refused(timed, tmp_path):
    folder = tmp_path / "out"
    assert run(timed, "-o", folder, "-q").exit_code == 0
    path = folder / "communities.csv"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    result = run(timed, "-o", folder)
    assert result.exit_code == 1
    assert "communities.csv: is damaged; pass --force" in result.output


def test_a_first_line_may_be_said_to_be_an_edge(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("ann,bob,20260131T1000\nbob,cid,20260131T1100\n")
    refused = run(path, "-o", tmp_path / "out")
    assert (refused.exit_code, "--no-header" in refused.stderr) == (1, True)
    taken = run(path, "-o", tmp_path / "out", "--no-header", "--json")
    assert json.loads(taken.stdout)["edges"] == 2
    path.write_text("1,2,3\n4,5,6\n7,8,9\n")
    titled = run(path, "-o", tmp_path / "two", "--header", "--time", "3", "--json")
    assert json.loads(titled.stdout)["edges"] == 2


def run_stores(*options):
    done = CliRunner().invoke(app, ["stores", *options])
    return done.exit_code, " ".join(done.output.split())


SHORT = ("example:les-miserables", "--batch", "10", "--steps", "1", "--stores", "csr")


def test_force_measures_again_and_lists_may_have_blanks(tmp_path):
    out = tmp_path / "out"
    words = [*SHORT, "--also", "sorted, skew", "-o", str(out), "-q"]
    assert run_stores(*words)[0] == 0
    first = (out / "results.json").read_text()
    assert json.loads(first)["settings"]["also"] == ["sorted", "skew"]
    assert run_stores(*words)[0] == 0
    assert (out / "results.json").read_text() == first
    assert run_stores(*words, "--force")[0] == 0
    assert (out / "results.json").read_text() != first


def test_one_run_at_a_time_writes_to_a_folder(tmp_path):
    lines = tmp_path / "timed.tsv"
    lines.write_text("a\tb\t1\nb\tc\t2\n")
    out = str(tmp_path / "out")
    commands = (
        ["stores", *SHORT],
        ["stream", str(lines), "--separator", r"\t"],
        ["resolution", "example:les-miserables", "--points", "2", "--runs", "1"],
    )
    for command in commands:
        with LockedFolder(out):
            done = CliRunner().invoke(app, [*command, "-o", out, "--force"])
        assert done.exit_code == 1, done.output
        assert "another run is writing there; wait for it" in done.output
        assert not Path(out).exists()  # nothing was written there
    assert CliRunner().invoke(app, [*commands[1], "-o", out]).exit_code == 0
