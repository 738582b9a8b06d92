"""``louvain-um stores``."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from louvain_um.cli import app


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
    assert not (tmp_path / "out").exists()
