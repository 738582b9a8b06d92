import csv
import json
import re
import sys

import numpy as np
import pytest

import louvain_um as lu


def test_a_resolution_to_copy_is_never_cut_and_what_is_left_out_is_said(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    some = ("resolution", "example:les-miserables", "--objective", "cpm", "--points", "6", "--runs",
            "1", "--top", "1")  # fmt: skip
    done = run(*some)
    assert re.search(r"--objective cpm --resolution [0-9.]+$", done.out.rstrip())
    assert "…" not in done.out
    every = re.search(r"plateaus, the widest 1 shown; --top (\d+) shows all", done.out)[1]
    done = run(*some[:-1], every)
    assert done.out.count("--resolution") == int(every)
    assert "shown" not in done.out


def test_resolution_as_json(run, two_triangles):
    found = run("resolution", two_triangles, "--points", "10", "--json", "-q").json
    assert {row["communities"] for row in found["plateaus"]} >= {1, 2, 6}
    row = next(row for row in found["plateaus"] if row["communities"] == 2)
    again = lu.louvain(
        lu.read_graph(two_triangles), device="cpu",
        resolution=row["run"]["resolution"], seed=row["run"]["seed"],
    )  # fmt: skip
    assert again.n_communities == 2
    assert len(found["points"]) <= 10


def test_resolution_in_a_folder_continues_and_is_not_overwritten(run, two_triangles, tmp_path):
    pytest.importorskip("matplotlib")
    folder = tmp_path / "profile"
    assert run("resolution", two_triangles, "-o", folder, "--points", "4").code == 0
    first = (folder / "points.jsonl").read_text()
    assert run("resolution", two_triangles, "-o", folder, "--points", "8").code == 0
    assert (folder / "points.jsonl").read_text().startswith(first)
    assert (folder / "profile.svg").read_text().startswith("<?xml")
    with open(folder / "plateaus.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["low"] == "0.1"
    plateaus = json.loads((folder / "profile.json").read_text())["plateaus"]
    assert len(plateaus) == len(rows)
    refused = run("resolution", two_triangles, "-o", folder, "--seed", "3")
    assert (refused.code, "--force" in refused.complaint()) == (1, True)
    assert run("resolution", two_triangles, "-o", folder, "--seed", "3", "--force").code == 0


def test_resolution_names_no_picture_that_it_has_not_drawn(
    run, two_triangles, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = run("resolution", two_triangles, "-o", tmp_path / "profile", "--points", "4")
    assert done.code == 0
    assert f"\ntables are in {tmp_path / 'profile'}" in done.out
    assert "[charts]'" in done.err
    assert not (tmp_path / "profile/profile.svg").exists()


@pytest.mark.parametrize("suffix", ["csv", "tsv", "json", "npz", "parquet"])
def test_ensemble_writes_labels_with_certainty(run, two_triangles, tmp_path, suffix):
    from louvain_um.formats.labels import read_labels

    out = tmp_path / f"labels.{suffix}"
    assert run("ensemble", two_triangles, "--runs", "3", "-o", out).code == 0
    found = read_labels(out)
    assert sorted(found.vertices.tolist()) == ["ann", "bob", "cid", "dan", "eve", "fay"]
    assert sorted(map(int, found.communities.tolist())) == [0, 0, 0, 1, 1, 1]
    if suffix == "csv":
        assert out.read_text().splitlines()[:2] == ["vertex,community,certainty", "ann,0,1.0"]
    refused = run("ensemble", two_triangles, "-o", out)
    assert (refused.code, "--force" in refused.complaint()) == (1, True)


def test_ensemble_writes_graphs_with_certainty(run, two_triangles, tmp_path):
    import networkx as nx

    out = tmp_path / "found.graphml"
    assert run("ensemble", two_triangles, "--runs", "3", "-o", out).code == 0
    nodes = nx.read_graphml(out).nodes(data=True)
    assert {data["certainty"] for _, data in nodes} == {1.0}
    assert {data["community"] for _, data in nodes} == {0, 1}


def test_ensemble_notes_disagreement_once(run, tmp_path):
    edges = tmp_path / "random.txt"
    pairs = np.random.default_rng(1).integers(0, 400, (1000, 2))
    edges.write_text("".join(f"{u} {v}\n" for u, v in pairs))
    done = run("ensemble", edges, "--runs", "6", "--device", "cpu")
    assert done.err.count("the runs disagree") == 1
    found = run("ensemble", edges, "--runs", "6", "--device", "cpu", "--json", "-q")
    assert found.err == ""
    assert any("the runs disagree" in note for note in found.json["notes"])
    assert found.json["certainty"]["below_half"] > 0
    assert len(found.json["agreement"]) == 6


SEARCHES = {
    ("--effort", "best"): {"effort": "best"},
    ("--n-iterations", "1"): {"n_iterations": 1},
    ("--best-of", "3"): {"best_of": 3},
}


@pytest.fixture
def random_graph(tmp_path):
    path = tmp_path / "random.txt"
    pairs = np.random.default_rng(1).integers(0, 60, (200, 2))
    path.write_text("".join(f"{u} {v}\n" for u, v in pairs))
    return path


@pytest.mark.parametrize("asked", SEARCHES)
def test_search_options_reach_the_runs_of_an_ensemble_and_a_profile(run, random_graph, asked):
    usual, graph = ("--runs", 2, "--device", "cpu", "--json"), lu.read_graph(random_graph)
    found = run("ensemble", random_graph, *usual, *asked).json["runs"]
    assert found != run("ensemble", random_graph, *usual).json["runs"]
    same = lu.ensemble(graph, runs=2, device="cpu", **SEARCHES[asked])
    assert [each["value"] for each in found] == same.values.tolist()
    usual += ("--points", 3)
    found = run("resolution", random_graph, *usual, *asked).json["points"]
    assert found != run("resolution", random_graph, *usual).json["points"]
    same = lu.resolution_profile(graph, runs=2, points=3, device="cpu", **SEARCHES[asked])
    assert found == same.point_rows()


@pytest.mark.parametrize("asked", SEARCHES)
def test_search_options_reach_the_run_that_is_drawn(
    run, two_triangles, tmp_path, monkeypatch, asked
):
    import louvain_um.api

    given, detect = [], louvain_um.api.run

    def noting(graph, options, *rest):
        given.append(options)
        return detect(graph, options, *rest)

    monkeypatch.setattr(louvain_um.api, "run", noting)
    assert run("draw", two_triangles, *asked, "-o", tmp_path / "a.html").code == 0
    (options,) = given
    assert {name: getattr(options, name) for name in SEARCHES[asked]} == SEARCHES[asked]


@pytest.mark.parametrize("command", ["ensemble", "resolution", "draw", "profile"])
def test_search_options_out_of_range_are_refused(run, two_triangles, tmp_path, command):
    out = {"draw": ("-o", tmp_path / "a.svg"), "profile": ("-o", tmp_path / "a.npz")}
    for asked in (("--n-iterations", "0"), ("--best-of", "0")):
        refused = run(command, two_triangles, *out.get(command, ()), *asked)
        assert refused.code == 2
        assert asked[0] in refused.complaint()


def test_a_folder_of_another_search_is_refused(run, two_triangles, tmp_path):
    some = ("resolution", two_triangles, "-o", tmp_path / "profile", "--points", "3")
    assert run(*some).code == 0
    refused = run(*some, "--best-of", "2")
    assert (refused.code, "other options" in refused.complaint()) == (1, True)
    assert run(*some, "--best-of", "2", "--force").code == 0
    assert run(*some, "--best-of", "2").code == 0


KINDS = {
    "directed": "follower,followee\na,b\nb,c\nc,a\nc,d\nd,e\ne,f\nf,d\n",
    "signed": "from,to,weight\na,b,1\nb,c,2\nc,a,1\nc,d,-3\nd,e,1\ne,f,1\nf,d,2\n",
}


@pytest.mark.parametrize("objective", [*KINDS, "cpm"])
def test_every_objective_is_profiled_drawn_and_sampled(run, tmp_path, objective):
    path = tmp_path / "edges.csv"
    path.write_text(KINDS.get(objective, KINDS["directed"]))
    chosen = ("--objective", objective)
    assert run("resolution", path, *chosen, "--points", 4, "--json").json["plateaus"]
    assert len(run("ensemble", path, *chosen, "--runs", 2, "--json").json["runs"]) == 2
    for picture in ("page.html", "picture.svg"):
        assert run("draw", path, *chosen, "-o", tmp_path / picture).code == 0
        assert (tmp_path / picture).stat().st_size > 1000


pytest.importorskip("matplotlib")

BEGINS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF", ".html": b"<!DOCTYPE html>"}


@pytest.mark.parametrize("suffix", BEGINS)
def test_pictures_of_every_kind_of_file(run, two_triangles, tmp_path, suffix):
    out = tmp_path / f"picture{suffix}"
    done = run("draw", two_triangles, "-o", out)
    assert done.code == 0
    assert done.out == f"2 communities drawn to {out}\n"
    assert out.read_bytes().startswith(BEGINS[suffix])
    other = tmp_path / f"again{suffix}"
    assert run("draw", two_triangles, "-o", other, "-q").out == ""
    assert other.read_bytes() == out.read_bytes()
    refused = run("draw", two_triangles, "-o", out)
    assert (refused.code, "--force" in refused.complaint()) == (1, True)
    assert run("draw", two_triangles, "-o", out, "--force").code == 0


@pytest.mark.parametrize("kind", ["graph", "communities", "sizes", "dendrogram"])
def test_every_kind_of_picture(run, two_triangles, tmp_path, kind):
    done = run("draw", two_triangles, "-o", tmp_path / "a.svg", "--kind", kind)
    assert done.code == 0
    assert "2 communities drawn to" in done.out
    names = ("ann", "fay") if kind in ("graph", "dendrogram") else ("friends",)
    assert all(name in (tmp_path / "a.svg").read_text() for name in names)


def test_given_labels_are_drawn(run, two_triangles, tmp_path):
    labels, out = tmp_path / "labels.csv", tmp_path / "a.html"
    labels.write_text("vertex,community\n" + "".join(f"{n},{n in 'ann bob'}\n" for n in
                      ("ann", "bob", "cid", "dan", "eve", "fay")))  # fmt: skip
    assert run("draw", two_triangles, "--labels", labels, "-o", out).code == 0
    assert "ann, bob" in out.read_text()
    labels.write_text("vertex,community\nann,1\n")
    refused = run("draw", two_triangles, "--labels", labels, "-o", tmp_path / "b.png")
    assert (refused.code, "has no community" in refused.complaint()) == (1, True)
    assert not (tmp_path / "b.png").exists()


def test_numbered_vertices_with_given_labels(run, tmp_path):
    graph, labels = tmp_path / "g.txt", tmp_path / "labels.txt"
    graph.write_text("7 9\n9 12\n")
    labels.write_text("7 1\n9 1\n12 2\n")
    assert run("draw", graph, "--labels", labels, "-o", tmp_path / "a.png").code == 0


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_names_are_drawn_as_they_stand(run, tmp_path, suffix):
    edges, out = tmp_path / "$\\frac$.csv", tmp_path / f"picture{suffix}"
    edges.write_text("a,b\nb,c\nc,$\\frac$\n$x_1$,a\n")
    assert run("draw", edges, "-o", out).code == 0
    if suffix == ".svg":
        drawn = out.read_text("utf-8")
        assert ">$x_1$<" in drawn
        assert ">$\\frac$<" in drawn


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


def test_equal_ids_of_two_modes_name_the_option_that_parts_them(run, tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item\n5,5\n5,6\n6,5\n")
    done = run("detect", path, "--objective", "bipartite")
    assert done.code == 0
    assert "4 vertices" in done.out  # equal ids of both columns are two vertices
    assert (
        "--bipartite" in run("detect", path, "--objective", "bipartite", "--one-mode").complaint()
    )
