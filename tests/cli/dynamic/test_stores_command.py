"""``louvain-um stores``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from louvain_um.cli import app
from louvain_um.core.atomic_files import OwnFolder


def test_a_graph_without_edges_to_insert_has_no_chart(tmp_path: Path) -> None:
    (tmp_path / "loops.txt").write_text("0 0\n1 1\n")
    words = ["stores", str(tmp_path / "loops.txt"), "--batch", "10", "--steps", "1"]
    result = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "no chart: no edge was inserted" in result.output
    assert not (tmp_path / "out" / "rates.svg").exists()


def test_the_table_fits_a_terminal(tmp_path: Path) -> None:
    words = ["stores", "example:les-miserables", "--batch", "10", "--steps", "1"]
    result = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "out")], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    titles = "store batch insert delete query inserts bytes moved traverse per arc MB ms M/s"
    assert set(titles.split()) <= set(result.output.split())
    assert "results.json, results.csv, rates.svg and report.html are in" in result.output


def test_what_cannot_be_compared_names_the_next_step(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    for options, told in (
        (["-o", str(file)], "file exists; name another folder"),
        (["-o", str(tmp_path / "out"), "--stores", "rows,trie"], "--stores must be one of"),
    ):
        result = CliRunner().invoke(app, ["stores", "example:les-miserables", *options])
        assert result.exit_code in (1, 2)
        assert told in result.output
    assert file.read_text() == "kept"
    file.write_text("0 1\n")
    words = ["stores", str(file), "--directed", "--format", "edges", "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert "read it without --directed" in result.output
    assert not (tmp_path / "out").exists()


def run(*options: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["stores", *options])
    return done.exit_code, " ".join(done.output.split())


SHORT = ("example:les-miserables", "--batch", "10", "--steps", "1", "--stores", "csr")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--sort"], "takes no --sort"),
        (["--window", "5"], "timed streams; pass --every"),
        (["--every", "5"], "--every takes no --batch, --steps"),
        (["--every", "5", "--batch", "10000", "--steps", "5", "--ids", "text"], "reading options"),
        (["--seed", "-1"], "--seed must lie in"),
        (["--seed", "4294967296"], "--seed must lie in"),
        (["--batch", "10000000000"], "--batch must lie in"),
    ],
)
def test_what_would_be_ignored_or_fail_is_refused(
    tmp_path: Path, options: list[str], told: str
) -> None:
    code, text = run(*SHORT, *options, "-o", str(tmp_path / "out"))
    assert code == 2
    assert told in text
    assert not (tmp_path / "out").exists()


def test_force_measures_again_and_lists_may_have_blanks(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = [*SHORT, "--also", "sorted, skew", "-o", str(out), "-q"]
    assert run(*words)[0] == 0
    first = (out / "results.json").read_text()
    assert json.loads(first)["settings"]["also"] == ["sorted", "skew"]
    assert run(*words)[0] == 0
    assert (out / "results.json").read_text() == first
    assert run(*words, "--force")[0] == 0
    assert (out / "results.json").read_text() != first


@pytest.mark.parametrize("command", ["stores", "stream"])
def test_an_example_is_no_timed_stream(tmp_path: Path, command: str) -> None:
    words = [command, "example:karate", "--every", "10", "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    told = "louvain-um: example:karate: examples have no times; name a file of timed edges\n"
    assert done.stderr == told
    assert not (tmp_path / "out").exists()


def test_a_batch_larger_than_the_graph_is_told(tmp_path: Path) -> None:
    code, text = run(*SHORT, "--batch", "300", "-o", str(tmp_path / "out"))
    assert code == 0
    assert "note: les-miserables has 254 edges: a larger batch replaces all of them" in text


def test_one_run_at_a_time_writes_to_a_folder(tmp_path: Path) -> None:
    lines = tmp_path / "timed.tsv"
    lines.write_text("a\tb\t1\nb\tc\t2\n")
    out = str(tmp_path / "out")
    commands = (
        ["stores", *SHORT],
        ["stream", str(lines), "--separator", r"\t"],
        ["resolution", "example:les-miserables", "--points", "2", "--runs", "1"],
    )
    for command in commands:
        with OwnFolder(out):
            done = CliRunner().invoke(app, [*command, "-o", out, "--force"])
        assert done.exit_code == 1, done.output
        assert "another run is writing there; wait for it" in done.output
        assert not Path(out).exists()  # nothing was written there
    assert CliRunner().invoke(app, [*commands[1], "-o", out]).exit_code == 0
