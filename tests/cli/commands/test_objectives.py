"""``detect`` with other objectives and with constraints."""

from __future__ import annotations

import pytest


@pytest.fixture
def arcs(tmp_path):
    path = tmp_path / "arcs.csv"
    path.write_text("source,target\na,b\nb,c\nc,a\nd,e\ne,f\nf,d\na,d\n")
    return path


def test_objectives(run, arcs, tmp_path):
    done = run("detect", arcs, "--objective", "directed", "--json", "--device", "cpu")
    assert (done.json["objective"], done.json["communities"]) == ("directed", 2)
    assert done.json["value"] == done.json["modularity"] > 0
    done = run("detect", arcs, "--objective", "cpm", "--resolution", "0.4", "--device", "cpu")
    assert "2 communities, CPM 3.6, modularity 0.3571" in done.out
    signed = tmp_path / "signed.csv"
    signed.write_text("source,target,weight\na,b,2\nb,c,-3\nc,d,1.5\n")
    done = run("detect", signed, "--objective", "signed", "--device", "cpu")
    assert "signed modularity" in done.out
    done = run("detect", signed)
    assert "--signed" in done.err


def test_constraints(run, arcs, tmp_path):
    labels, fixed, found = (tmp_path / name for name in ("start.csv", "fixed.txt", "found.csv"))
    labels.write_text("vertex,community\na,0\nb,1\nc,1\nd,2\ne,2\nf,2\n")
    fixed.write_text("a\nb\n")
    run(
        "detect", arcs, "--initial", labels, "--fixed", fixed, "--max-size", "3", "-o", found,
        "--device", "cpu",
    )  # fmt: skip
    rows = dict(line.split(",") for line in found.read_text().splitlines()[1:])
    assert rows["a"] != rows["b"]
    assert rows["d"] == rows["e"] == rows["f"]
    done = run("detect", arcs, "--max-size", "0")
    assert "--max-size must be at least 1" in done.err
    done = run("detect", arcs, "--fixed", tmp_path / "none.txt")
    assert "none.txt" in done.err


def test_equal_ids_of_two_modes_name_the_option_that_parts_them(run, tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item\n5,5\n5,6\n6,5\n")
    done = run("detect", path, "--objective", "bipartite")
    assert "--bipartite" in done.complaint()
    assert run("detect", path, "--objective", "bipartite", "--bipartite").code == 0
