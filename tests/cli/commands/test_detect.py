import csv
import json
import re
import sys

import networkx as nx
import numpy as np
import pytest

import louvain_um as lu
from louvain_um.cli import terminal
from louvain_um.core import parallel
from louvain_um.results.communities import Communities

PINNED = {
    "schema": int,
    "version": str,
    "graph": {"vertices": int, "edges": int, "arcs": int, "weighted": bool},
    "method": str,
    "modularity": float,
    "communities": int,
    "sizes": list,
    "levels": list,
    "seconds": {"read": float, "detect": float, "write": float},
    "device": str,
    "policy": str,
    "budget_bytes": type(None),
    "peak_bytes": {"graph": int, "hash": int, "community": int, "scratch": int},
    "seed": int,
    "options": {
        **dict.fromkeys(("method", "effort", "objective"), str),
        "resolution": float,
        **dict.fromkeys(("max_level", "n_iterations", "max_size", "initial", "fixed"), type(None)),
        "threshold": float,
        "best_of": int,
        "seed": int,
    },
    "notes": list,
}


def check(value, shape):
    if isinstance(shape, dict):
        assert set(value) == set(shape)
        for key, inner in shape.items():
            check(value[key], inner)
    else:
        assert type(value) is shape


def test_memory_options_ignored_on_the_cpu_are_noted(run, two_triangles, tmp_path):
    message = "ran on the CPU; --memory and --device-budget were ignored"
    asked = ("--device", "cpu", "--memory", "adv2")
    assert message in run("detect", two_triangles, *asked).err
    assert message in run("detect", two_triangles, "--device", "cpu", "--device-budget", "50%").err
    assert message in run("profile", two_triangles, "-o", tmp_path / "a.npz", *asked).err
    assert run("detect", two_triangles, *asked, "-q").err == ""
    assert message not in run("detect", two_triangles, "--device", "cpu").err


def test_disconnected_communities_are_noted(run, two_triangles, tmp_path):
    separate, fixed = tmp_path / "separate.csv", tmp_path / "fixed.txt"
    separate.write_text("vertex,community\nann,0\nbob,0\ncid,1\ndan,1\neve,0\nfay,0\n")
    fixed.write_text("ann\nbob\ncid\ndan\neve\nfay\n")
    asked = ("detect", two_triangles, "--initial", separate, "--fixed")
    note = "not connected, the largest of"
    done = run(*asked, fixed)
    assert note in done.err
    assert "--method leiden" in done.err
    piped = run(*asked, "-", "--json", stdin=fixed.read_bytes())
    assert any(note in each for each in piped.json["notes"])
    assert note not in run("detect", two_triangles).err


def test_effort_and_iterations_are_options(run, two_triangles):
    for asked in (("--effort", "fast"), ("--effort", "best"), ("--n-iterations", "-1"),
                  ("--best-of", "3")):  # fmt: skip
        assert run("detect", two_triangles, "--json", *asked).json["communities"] == 2


def test_table_names_members(run, two_triangles):
    done = run("detect", two_triangles)
    assert done.code == 0
    assert "6 vertices, 7 edges, unweighted" in done.out
    assert "2 communities, modularity 0.3571" in done.out
    # The two ends of the bridge have the highest degrees and come first.
    assert "ann, bob, cid" in done.out
    assert "dan, eve, fay" in done.out
    assert "peak MiB" not in done.out


def test_members_are_listed_by_degree_and_number():
    rng = np.random.default_rng(1)
    graph = lu.Graph.from_edges(
        rng.integers(0, 500, 900), rng.integers(0, 500, 900), n_vertices=500
    )
    found = Communities.of(graph, rng.integers(0, 3, 500))
    for most in (1, 40, 1000):
        listed = terminal.largest(found, most, 2)
        for number, names in enumerate(listed):
            members = np.flatnonzero(found.labels == number).tolist()
            members.sort(key=lambda v: (-int(graph.degrees[v]), v))
            assert names == [str(v) for v in members[:most]]
        assert len(listed) == 2


def test_quiet_prints_the_result_alone(run, tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("from to\n1 2\n2 3\n")
    done = run("detect", path, "-q")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("1 community, modularity 0.0000 (")
    assert "2, 1, 3" in done.out
    assert str(path) not in done.out


def test_quiet_with_a_file_prints_nothing(run, two_triangles, tmp_path):
    done = run("detect", two_triangles, "-q", "-o", tmp_path / "out.csv")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert (tmp_path / "out.csv").exists()


def test_json_has_the_pinned_keys_and_nothing_else(run, two_triangles):
    done = run("detect", two_triangles, "--json", "--device", "cpu", "--seed", "7")
    check(done.json, PINNED)
    assert done.out.count("\n") == 1
    assert done.json["seed"] == 7
    assert done.json["graph"] == {"vertices": 6, "edges": 7, "arcs": 14, "weighted": False}
    level = done.json["levels"][0]
    keys = {"vertices", "arcs", "modularity", "iterations", "seconds"}
    check(level, dict(zip(keys, (type(level[k]) for k in keys), strict=True)))
    assert level["vertices"] == 6


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "npz", "json"])
def test_labels_in_every_format(run, two_triangles, tmp_path, suffix):
    from louvain_um.formats.labels import read_labels

    out = tmp_path / f"labels.{suffix}"
    done = run("detect", two_triangles, "-o", out, "--json")
    assert done.code == 0
    assert done.json["seconds"]["write"] > 0
    found = read_labels(out)
    groups = dict(zip(found.vertices.tolist(), found.communities.tolist(), strict=True))
    assert sorted(groups) == ["ann", "bob", "cid", "dan", "eve", "fay"]
    assert groups["ann"] == groups["bob"] == groups["cid"] != groups["dan"]
    assert list(tmp_path.glob(".*")) == []


def test_options_reach_the_engine(run, two_triangles):
    fine = run("detect", two_triangles, "--json", "--resolution", "5").json
    assert fine["communities"] == 6
    single = run("detect", two_triangles, "--json", "--max-level", "1", "--method", "leiden").json
    assert (single["method"], len(single["levels"])) == ("leiden", 1)
    lazy = run("detect", two_triangles, "--json", "--threshold", "1").json
    assert len(lazy["levels"]) <= 1
    assert run("detect", two_triangles, "--threads", "1", "--memory", "auto").code == 0


def test_threads_hold_for_reading_too(run, tmp_path, monkeypatch):
    edges, used = tmp_path / "path.txt", set()
    edges.write_text("0 1\n1 2\n2 3\n")
    threads = parallel.default_threads
    monkeypatch.setattr(parallel, "default_threads", lambda: used.add(threads()) or threads())
    monkeypatch.setenv("LOUVAIN_UM_THREADS", "3")
    assert run("detect", edges, "--threads", "1").code == 0
    assert used == {1}
    assert run("detect", edges).code == 0
    assert used == {1, 3}


def test_standard_input(run):
    done = run("detect", "-", "--json", stdin=b"1 2\n2 3\n3 1\n")
    assert done.json["graph"]["vertices"] == 3


def test_reading_options(run, tmp_path):
    path = tmp_path / "edges.data"
    path.write_text("a;b;2\nb;c;3\nb;a;2\n")

    def read(*options):
        return run("detect", path, "--format", "edges", "--separator", ";", "--json", *options)

    assert read("--weighted").json["graph"]["weighted"] is True
    assert read("--unweighted").json["graph"]["weighted"] is False
    assert read("--weighted", "--duplicates", "once").json["graph"]["edges"] == 2
    assert read("--header").json["graph"]["vertices"] == 3
    assert read("--no-header", "--ids", "text").code == 0
    numbers = tmp_path / "numbers.txt"
    numbers.write_text("1 2\n2 4\n")
    assert run("detect", numbers, "--one-based", "--json").json["graph"]["vertices"] == 4
    assert run("detect", numbers, "--zero-based", "--json").json["graph"]["vertices"] == 5


def test_a_tab_may_be_spelled_out(run, tmp_path):
    path = tmp_path / "edges.data"
    path.write_text("a b\tc\nc\td\n")
    done = run("detect", path, "--format", "edges", "--separator", r"\t", "--json")
    assert done.json["graph"]["vertices"] == 3


def test_directed_graphs_need_symmetrize(run, tmp_path):
    path = tmp_path / "directed.gml"
    path.write_text(
        'graph [ directed 1 node [ id 0 label "a" ] node [ id 1 label "b" ] '
        "edge [ source 0 target 1 ] ]"
    )
    refused = run("detect", path)
    assert refused.code == 1
    assert "symmetrize" in refused.complaint()
    assert run("detect", path, "--symmetrize").code == 0


def test_examples(run):
    done = run("detect", "example:les-miserables")
    assert "Valjean" in done.out


def test_notes_go_to_stderr(run, tmp_path):
    path = tmp_path / "noted.txt"
    path.write_text("from to\n1 2\n2 3\n")
    done = run("detect", path, "--json")
    assert "note: " in done.err
    json.loads(done.out)
    assert run("detect", path, "--json", "-q").err == ""


@pytest.mark.parametrize(
    ("lines", "vertices"),
    [("%%MatrixMarket matrix coordinate pattern symmetric\n0 0 0\n", 0),
     ("%%MatrixMarket matrix coordinate pattern symmetric\n1 1 0\n", 1),
     ("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 0\n", 3),
     ("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 2\n", 2),
     ("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n2 1 0\n", 2)],
    ids=["no vertices", "one vertex", "no edges", "only loops", "an edge of weight 0"],
)  # fmt: skip
def test_graphs_with_little_in_them(run, tmp_path, lines, vertices):
    path = tmp_path / "little.mtx"
    path.write_text(lines)
    done = run("detect", path, "--json", "-o", tmp_path / "labels.csv")
    assert done.code == 0, done.err
    assert done.json["communities"] == vertices
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == vertices + 1
    assert run("detect", path, "-v").code == 0


def test_names_cannot_steer_the_terminal(run, tmp_path):
    path = tmp_path / "names.npz"
    np.savez(path, n=2, u=[0], v=[1], names=["\x1b[31mred", "[bold]b"])
    done = run("detect", path)
    assert "\x1b" not in done.out
    assert "[bold]b" in done.out


def test_labels_match_the_library(run, two_triangles, tmp_path):
    import louvain_um as lu

    run("detect", two_triangles, "-o", tmp_path / "labels.npz", "--seed", "3")
    with np.load(tmp_path / "labels.npz") as saved:
        labels = lu.louvain(lu.read_graph(two_triangles), seed=3).labels
        assert saved["community"].tolist() == labels.tolist()


def test_json_lists_sizes_and_notes(run, tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("source,target\na,b\nb,c\nc,a\nc,c\nx,y\n")
    found = run("detect", path, "--json", "-q").json
    assert found["sizes"] == [3, 2]
    assert any("loop" in note for note in found["notes"])


def test_top_chooses_the_number_of_communities(run, tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("".join(f"{2 * i} {2 * i + 1}\n" for i in range(12)))

    def rows(*more):
        return run("detect", path, *more).out.count("\n")

    assert rows("--top", "12") == rows("--top", "100") == rows("--top", "11") == rows() + 1
    assert "in 10 more" in run("detect", path, "--top", "2").out
    assert "members" not in run("detect", path, "--top", "0").out


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "npz", "json"])
@pytest.mark.parametrize("safe", [False, True])
def test_labels_with_the_hierarchy(run, tmp_path, suffix, safe):
    from louvain_um.formats.labels import read_labels

    path, plain, out = tmp_path / "ring.txt", tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    path.write_text("".join(f"v{i} v{(i + 1) % 24}\n" for i in range(24)))
    more = ("--safe-csv",) if safe and suffix in ("csv", "tsv") else ()
    assert run("detect", path, "-o", plain).code == 0
    assert run("detect", path, "-o", out, "--hierarchy", *more).code == 0
    one, other = read_labels(plain), read_labels(out)
    assert one.vertices.tolist() == other.vertices.tolist()
    assert one.communities.tolist() == other.communities.tolist()
    if suffix == "csv":
        with open(out, newline="") as file:
            rows = list(csv.DictReader(file))
        partitions = [name for name in rows[0] if name.startswith("hierarchy_")]
        assert list(rows[0]) == ["vertex", "community", *partitions]
        finer = {row["hierarchy_0"] for row in rows}
        assert len(finer) > len({row["community"] for row in rows})
        assert len({(row["hierarchy_0"], row["community"]) for row in rows}) == len(finer)


@pytest.mark.parametrize("suffix", ["gexf", "graphml", "cyjs", "gexf.gz"])
def test_a_graph_is_written_with_its_communities(run, two_triangles, tmp_path, suffix):
    import louvain_um as lu

    out = tmp_path / f"found.{suffix}"
    done = run("detect", two_triangles, "-o", out)
    assert "graph with communities of 6 vertices written to" in done.out
    assert lu.read_graph(out).n_edges == 7
    refused = run("detect", two_triangles, "-o", out)
    assert (refused.code, "--force" in refused.complaint()) == (1, True)
    refused = run("detect", two_triangles, "-o", out, "--force", "--hierarchy")
    assert (refused.code, "leave it out" in refused.complaint()) == (2, True)
    other = tmp_path / f"plain.{suffix}"
    assert run("convert", two_triangles, other).code == 0
    assert lu.read_graph(other).n_edges == 7


def test_a_neighbour_is_of_no_use_to_the_cpu(run):
    done = run("detect", "example:les-miserables", "--device", "auto", "--peer-memory", "cuda:1")
    assert done.code in (0, 3)
    if " on cpu" in done.out:
        assert "--peer-memory were ignored" in done.err


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("pyarrow", "detect GRAPH -o labels.parquet"),
        ("pandas", "detect GRAPH --nodes people.csv"),
        ("pyarrow", "detect GRAPH --nodes people.parquet"),
        ("distributed", "detect GRAPH --cluster local:2"),
        ("mpi4py.MPI", "detect GRAPH --cluster mpi"),
        ("pyarrow", "ensemble GRAPH --runs 2 -o labels.parquet"),
        ("pyarrow", "run bfs GRAPH --source 0 -o values.parquet"),
        ("pyarrow", "convert GRAPH out.parquet"),
        ("networkx", "convert GRAPH out.graphml"),
        ("networkx", "convert GRAPH out.gexf"),
        ("networkx", "convert GRAPH out.cyjs"),
        ("pyarrow", "generate lfr 10000000000 -o out.parquet"),
        ("networkx", "generate rmat 40 -o out.graphml"),
        ("matplotlib", "draw GRAPH -o a.png"),
        ("networkx", "draw GRAPH -o a.svg"),
        ("jinja2", "draw GRAPH -o a.html"),
        ("jinja2", "report GRAPH -o a.html"),
        ("matplotlib", "report GRAPH --charts charts"),
        ("pyarrow", "compare GRAPH.parquet GRAPH.parquet"),
    ],
)
def test_a_missing_package_is_reported_before_work_begins(
    run, tmp_path, monkeypatch, package, arguments
):
    monkeypatch.chdir(tmp_path)
    for module in {package, *(name for name in sys.modules if name.startswith(f"{package}."))}:
        monkeypatch.setitem(sys.modules, module, None)
    done = run(*arguments.replace("GRAPH", "there-is-no-such-graph.csv").split())
    assert done.code == 1
    library = {"distributed": "Dask", "mpi4py.MPI": "mpi4py"}.get(package, package)
    assert re.search(rf"needs? {library}(; install it with|:) pip install", done.complaint())
    assert list(tmp_path.iterdir()) == []


def test_descriptions_are_in_graph_files_and_pages(run, tmp_path):
    pytest.importorskip("networkx")
    pytest.importorskip("jinja2")
    edges = [(f"{side}{i}", f"{side}{j}") for side in "ab" for i in range(9) for j in range(i)]
    graph, people = tmp_path / "g.csv", tmp_path / "people.csv"
    graph.write_text("".join(f"{u},{v}\n" for u, v in [*edges, ("a0", "b0")]))
    sides = "".join(f"{side}{i},{side}\n" for side in "ab" for i in range(9))
    people.write_text("id,side\n" + sides)
    gexf, page = tmp_path / "g.gexf", tmp_path / "g.html"
    given = people.read_bytes()  # as standard input
    done = run("detect", graph, "--nodes", "-", "-o", gexf, "--device", "cpu", stdin=given)
    assert done.code == 0, done.err
    found = nx.read_gexf(gexf)
    for _, data in found.nodes(data=True):
        assert data["description"] == f"side {data['label'][0]} (100%, 50% overall)"
    done = run("draw", graph, "--nodes", people, "-o", page, "--device", "cpu")
    assert done.code == 0, done.err
    text = page.read_text()
    assert text.count("(100%, 50% overall)") == 2
    assert "distinguished by" in text
    assert run("draw", graph, "--nodes", people, "-o", tmp_path / "g.png").code == 2
    for command in ("detect", "draw"):  # before the graph is read
        done = run(
            command, tmp_path / "g", "--nodes", tmp_path / "no.csv", "-o", tmp_path / "h.html"
        )
        assert "no.csv: cannot be read as a table" in done.err
