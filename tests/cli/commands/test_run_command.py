import json

import networkx as nx
import numpy as np
import pytest

ALGORITHMS = {
    "bfs": ["--source", "ann"],
    "sssp": ["--source", "ann"],
    "components": [],
    "mst": [],
    "pagerank": ["--damping", "0.9"],
    "triangles": [],
    "spmv": [],
}


@pytest.fixture
def road(tmp_path):
    path = tmp_path / "road.csv"
    path.write_text("from,to,weight\nann,bob,5\nbob,cid,1\nann,cid,2\ndan,eve,7\n")
    return path


@pytest.mark.parametrize("suffix", ["csv", "tsv", "json", "npz", "parquet"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_writes_every_format(run, road, tmp_path, name, suffix):
    out = tmp_path / f"out.{suffix}"
    done = run("run", name, road, *ALGORITHMS[name], "-o", out, "--json")
    assert done.code == 0, done.err
    assert done.json["algorithm"] == name
    assert done.json["graph"]["vertices"] == 5
    assert set(done.json["seconds"]) == {"read", "run", "write"}
    rows = {"bfs": 3, "sssp": 3, "mst": 3}.get(name, 5)
    if suffix in ("csv", "tsv"):
        assert len(out.read_text().splitlines()) == rows + 1
    elif suffix == "json":
        written = json.loads(out.read_text())
        assert written["algorithm"] == name
        assert len(next(reversed(written.values()))) == rows
    elif suffix == "npz":
        with np.load(out, allow_pickle=False) as arrays:
            assert {len(arrays[key]) for key in arrays.files} == {rows}
    again = run("run", name, road, *ALGORITHMS[name], "-o", out)
    assert "--force" in again.complaint()
    assert run("run", name, road, *ALGORITHMS[name], "-o", out, "--force", "-q").code == 0


def test_tables_name_vertices_as_the_file_does(run, road, tmp_path):
    def table(name, *arguments):
        out = tmp_path / f"{name}.csv"
        assert run("run", name, road, *arguments, "-o", out).code == 0
        return sorted(out.read_text().split()[1:])

    assert table("bfs", "--source", "bob") == ["ann,1,bob", "bob,0,bob", "cid,1,bob"]
    assert table("sssp", "--source", "ann") == ["ann,0,ann", "bob,3,cid", "cid,2,ann"]
    assert table("mst") == ["ann,cid,2", "bob,cid,1", "dan,eve,7"]
    labels = dict(row.split(",") for row in table("components"))
    assert len({labels["ann"], labels["bob"], labels["cid"]}) == 1
    assert labels["dan"] == labels["eve"] != labels["ann"]
    assert "ann,1" in table("triangles")
    assert "ann,7.0" in table("spmv")


def test_a_forest_can_be_read_as_a_graph(run, road, tmp_path):
    out = tmp_path / "forest.csv"
    assert run("run", "mst", road, "-o", out).code == 0
    assert run("run", "mst", out, "--json").json["weight"] == 10


def test_decimals_are_shown_and_written_as_they_were_read(run, tmp_path):
    path, out = tmp_path / "w.csv", tmp_path / "forest.csv"
    path.write_text("source,target,weight\nann,bob,0.1\nbob,cid,9\ncid,dan,3\n")
    done = run("run", "mst", path, "-o", out)
    assert "3 edges of weight 12.1 in all" in done.out
    assert sorted(out.read_text().splitlines())[:1] == ["ann,bob,0.1"]
    assert "at distance 12.1 (" in run("run", "sssp", path, "--source", "ann").out


def test_numbers_agree_with_networkx(run):
    graph = nx.les_miserables_graph()
    done = run("run", "triangles", "example:les-miserables", "--json")
    assert done.json["triangles"] == sum(nx.triangles(graph).values()) // 3
    tree = nx.minimum_spanning_tree(graph).size("weight")
    assert run("run", "mst", "example:les-miserables", "--json").json["weight"] == tree
    done = run("run", "sssp", "example:les-miserables", "--source", "Valjean", "--json")
    lengths = nx.single_source_dijkstra_path_length(graph, "Valjean")
    assert (done.json["reached"], done.json["farthest"]) == (77, max(lengths.values()))
    top = max(nx.pagerank(graph).items(), key=lambda item: item[1])[0]
    assert run("run", "pagerank", "example:les-miserables", "--json").json["top"] == top
    assert run("run", "components", "example:les-miserables", "--json").json["components"] == 1


def test_a_vector_from_a_file(run, road, tmp_path):
    text, binary = tmp_path / "x.txt", tmp_path / "x.npy"
    text.write_text("1\n2\n3\n4\n5\n")
    np.save(binary, np.arange(1, 6))
    tables = []
    for vector in (text, binary, "-"):
        out = tmp_path / f"{len(tables)}.csv"
        done = run("run", "spmv", road, "--vector", vector, "-o", out, stdin=text.read_bytes())
        assert done.code == 0, done.err
        tables.append(out.read_text())
    assert tables[0] == tables[1] == tables[2]


def test_columns_are_chosen_by_other_names(run, tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("x,a,b\n1,ann,bob\n2,bob,cid\n")
    chosen = ["--source-column", "a", "--target", "b"]
    done = run("run", "bfs", path, "--source", "ann", *chosen, "--json")
    assert done.json["farthest"] == 2
    assert "--source-column" in run("run", "bfs", "--help").out


def test_an_empty_graph(run, tmp_path):
    path = tmp_path / "empty.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n0 0 0\n")
    for name in ("components", "mst", "pagerank", "triangles", "spmv"):
        done = run("run", name, path, "-o", tmp_path / f"{name}.csv")
        assert done.code == 0, (name, done.err)


@pytest.mark.parametrize("name", ["components", "bfs", "sssp", "mst", "triangles"])
def test_edges_whose_weights_round_to_0_are_not_lost(run, tmp_path, name):
    path = tmp_path / "far.txt"
    path.write_text("0 1 1e30\n1 2 1e-9\n2 3 1e30\n")
    given = ["run", name, path, *(["--source", "0"] if name in ("bfs", "sssp") else [])]
    done = run(*given)
    assert done.code == 1
    assert "1 of 3 positive weights" in done.complaint()
    assert "--unweighted" in done.complaint()
    done = run(*given, "--unweighted", "--json")
    assert done.json["graph"]["edges"] == 3


def test_edges_whose_weights_round_to_0_are_noted_where_they_hardly_count(run, tmp_path):
    path = tmp_path / "far.txt"
    path.write_text("0 1 1e30\n1 2 1e-9\n2 3 1e30\n")
    done = run("run", "pagerank", path)
    assert done.code == 0
    assert "count as 0" in done.err
