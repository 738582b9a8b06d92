from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

import louvain_um as lu
from louvain_um.errors import LouvainUmError
from louvain_um.formats import as_graph, check_graph_path, read_graph, write_graph
from louvain_um.generators import lfr
from louvain_um.graph.graph import Graph
from tests.graphs import graphs, same

NAMES = ["g.txt", "g.csv", "g.tsv.gz", "g.mtx", "g.mtx.gz", "g.graph", "g.npz", "g.npz.gz",
         "g.parquet"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(graph=graphs())
def test_round_trip(tmp_path_factory, name, graph):
    if "graph" in name:
        graph = Graph(graph.offsets, graph.targets, graph.weights, graph.loops * 0, graph.scale)
    path = tmp_path_factory.mktemp("trip") / name
    notes = write_graph(path, graph)
    assert [n for n in notes if "integer weights" not in n and "counts from 1" not in n] == []
    back = read_graph(path)
    assert same(graph, back)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@example(digits=[(1, 3), (124, 3)], power=0)
@given(
    digits=st.lists(st.tuples(st.integers(1, 999_999), st.integers(0, 9)), min_size=1, max_size=9),
    power=st.sampled_from([0, -9, 15]),
)
def test_weights_are_written_as_they_were_read(tmp_path_factory, name, digits, power):
    words = [repr(float(f"{number}e{power - places}")) for number, places in digits]
    lines = [f"{place} {place + 1} {word}\n" for place, word in enumerate(words)]
    folder = tmp_path_factory.mktemp("weights")
    (folder / "first.txt").write_text("".join(lines))
    graph = read_graph(folder / "first.txt", weighted=True)
    write_graph(folder / name, graph)
    back = read_graph(folder / name)
    assert same(graph, back)
    write_graph(folder / "again.csv", back)
    rows = (folder / "again.csv").read_text().splitlines()
    written = [float(row.split(",")[2]) for row in rows if not row.startswith(("#", "source"))]
    short = [float(word) for word in words]
    # Where they add up to a power of two, digits less could mean another scale when read again.
    between = abs(np.log2(sum(short)) - np.rint(np.log2(sum(short)))) > 1e-12
    if graph.scale == 1.0 or (min(short) * 1e4 > max(short) and between):
        assert written == short
    # Others up to the graph's precision, which is relative to the total.
    assert np.allclose(written, short, rtol=0, atol=sum(short) * 2**-50)


def test_a_tenth_stays_a_tenth(tmp_path):
    text = "".join(f"{v} {v + 1} 0.{v % 9 + 1}\n" for v in range(1000))
    (tmp_path / "g.txt").write_text(text)
    write_graph(tmp_path / "g.csv", read_graph(tmp_path / "g.txt"))
    rows = (tmp_path / "g.csv").read_text().splitlines()[1:]
    assert rows == text.replace(" ", ",").splitlines()


@pytest.mark.parametrize("name", ["g.txt", "g.csv", "g.tsv", "g.npz", "g.parquet"])
def test_names_survive(tmp_path, name):
    words = np.array(["# not", "a,b", 'say "x"', "Zoë", "tab\tbed", "7"])
    graph = Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [1, 2, 3, 4, 0.5], names=words)
    write_graph(tmp_path / name, graph)
    back = read_graph(tmp_path / name)
    assert back.names is not None

    def edges(g):
        assert g.names is not None
        assert g.weights is not None
        rows = np.repeat(np.arange(g.n_vertices), np.diff(g.offsets))
        weights = g.weights / g.scale
        columns = g.names[rows].tolist(), g.names[g.targets].tolist(), weights.tolist()
        return set(zip(*columns, strict=True))

    assert edges(back) == edges(graph)


@pytest.mark.parametrize("name", ["g.csv", "g.txt", "g.ncol"])
@pytest.mark.parametrize(
    "words",
    [
        ["007", "7", "8"],
        ["+5", "5", "6"],
        ["1", "2", "x"],
        ["nan", "inf", "infinity"],
        [1, "a", "b"],
    ],
)
def test_names_that_look_like_numbers_stay_separate(tmp_path, name, words):
    write_graph(tmp_path / name, Graph.from_edges([0, 1], [1, 2], names=words))
    back = read_graph(tmp_path / name).names
    assert sorted(back.tolist()) == sorted(map(str, words))


@pytest.mark.parametrize(
    ("names", "suffixes"),
    [
        (["a\nb", "a b", "c"], ["csv", "txt"]),
        (["", "b", "c"], ["csv", "txt"]),
        (["a\x01", "b", "c"], ["csv", "graphml", "gexf"]),
        (["\ud800", "b", "c"], ["csv", "parquet", "graphml", "gexf", "cyjs"]),
        (["a", "a", "b"], ["csv", "parquet"]),
        ([7, "7", "x"], ["csv", "parquet", "graphml", "gexf", "cyjs"]),
    ],
)
def test_names_that_a_file_cannot_give_back_are_refused(tmp_path, names, suffixes):
    graph = Graph.from_edges([0, 1], [1, 2], names=names)
    for suffix in suffixes:
        with pytest.raises(LouvainUmError, match="rename"):
            write_graph(tmp_path / f"g.{suffix}", graph)
    assert not list(tmp_path.iterdir())
    write_graph(tmp_path / "g.npz", graph)


def test_ids_survive(tmp_path):
    sparse_ids = np.array([3, 50, 10**12])
    graph = Graph.from_edges([0, 1], [1, 2], names=sparse_ids)
    for name in ("g.txt", "g.csv", "g.npz", "g.parquet"):
        assert write_graph(tmp_path / name, graph) == ()
        assert np.array_equal(read_graph(tmp_path / name).names, sparse_ids)
    (note,) = write_graph(tmp_path / "g.mtx", graph)
    assert "names" in note
    lonely = Graph.from_edges([0], [1], n_vertices=3, names=sparse_ids)
    (note,) = write_graph(tmp_path / "lonely.txt", lonely)
    assert "isolated" in note
    for suffix in (".npz", ".graphml", ".gexf", ".cyjs"):
        assert suffix in note
        write_graph(tmp_path / f"lonely{suffix}", lonely)
        assert read_graph(tmp_path / f"lonely{suffix}").n_vertices == 3


def test_ids_of_the_other_byte_order_survive(tmp_path):
    graph = Graph.from_edges([0, 1], [1, 2], names=np.array([10, 20, 30], ">i8"))
    for name in ("g.csv", "g.npz", "g.parquet", "g.graphml"):
        write_graph(tmp_path / name, graph)
        assert read_graph(tmp_path / name).names.tolist() == [10, 20, 30]


def test_lists_longer_than_a_block(tmp_path, monkeypatch):

    from louvain_um.graph import export

    monkeypatch.setattr(export, "BLOCK_ARCS", 5)
    rng = np.random.default_rng(3)
    graph = Graph.from_edges(rng.integers(0, 40, 150), rng.integers(0, 60, 150), n_vertices=70)
    no_loops = Graph(graph.offsets, graph.targets, None, graph.loops * 0)
    for name in NAMES:
        write_graph(tmp_path / name, no_loops if "graph" in name else graph)
        assert same(read_graph(tmp_path / name), no_loops if "graph" in name else graph)


def test_nothing_is_overwritten_or_half_written(tmp_path, monkeypatch):
    graph = Graph.from_edges([0], [1])
    path = tmp_path / "g.txt"
    path.write_text("mine")
    with pytest.raises(LouvainUmError, match="exists already"):
        write_graph(path, graph)
    assert path.read_text() == "mine"
    write_graph(path, graph, force=True)
    assert read_graph(path).n_edges == 1
    for wrong in ("missing/g.txt", "g.gml", "g.xyz", "g", "g.parquet.gz"):
        with pytest.raises(LouvainUmError):
            check_graph_path(tmp_path / wrong)
        with pytest.raises(LouvainUmError):
            write_graph(tmp_path / wrong, graph)
    with pytest.raises(LouvainUmError, match="folder"):
        write_graph(tmp_path, graph, format="edges")
    with pytest.raises(LouvainUmError, match="self-loops"):
        write_graph(tmp_path / "loop.graph", Graph.from_edges([0], [0]))

    from louvain_um.formats import write

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(write, "digits", full)
    with pytest.raises(LouvainUmError, match="disk is full"):
        write_graph(tmp_path / "full.txt", graph)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["g.txt"]


def test_format_by_name(tmp_path):
    write_graph(tmp_path / "g.dat.1", Graph.from_edges([0], [1]), format="matrixmarket")
    assert read_graph(tmp_path / "g.dat.1", format="matrixmarket").n_edges == 1


def test_the_same_graph_gives_the_same_bytes(tmp_path):
    graph = Graph.from_edges([0], [1])
    write_graph(tmp_path / "a.txt.gz", graph)
    write_graph(tmp_path / "b.txt.gz", graph)
    assert (tmp_path / "a.txt.gz").read_bytes() == (tmp_path / "b.txt.gz").read_bytes()


def test_isolated_vertices_counted_from_one_do_not_shift_the_others(tmp_path):
    source, target = tmp_path / "g.graph", tmp_path / "g.csv"
    source.write_text("4 1\n2\n1\n\n\n")
    notes = write_graph(target, read_graph(source))
    assert "2 isolated" in notes[0]
    assert np.array_equal(read_graph(target).names, [1, 2])


def test_formats_that_count_from_one_say_so(tmp_path):
    graph = Graph.from_edges([0, 1], [1, 2])
    assert write_graph(tmp_path / "g.mtx", graph) == (
        "MatrixMarket counts from 1: vertices 0 … 2 are written as 1 … 3",
    )


@pytest.mark.parametrize("names", [np.array(["10", "20", "30"]), [10, 20, 30], [*np.arange(7, 10)]])
@pytest.mark.parametrize("kind", ["txt", "csv", "npz"])
def test_integers_are_written_as_integers(tmp_path, names, kind):
    graph = Graph.from_edges([0, 1], [1, 2], names=names)
    write_graph(graph, path := tmp_path / f"g.{kind}")
    if kind != "npz":
        assert '"' not in path.read_text()
    known = read_graph(path).names.tolist()
    assert list(map(str, known)) == list(map(str, names))
    assert isinstance(known[0], int) or (kind == "npz" and isinstance(names, np.ndarray))


@pytest.mark.parametrize("text", ["0 1\n1 2\n", "1 2 0.5\n2 3 4\n", "5 9\n9 7\n"])
def test_csv_is_a_table_that_other_programs_read(tmp_path, text):
    (tmp_path / "g.txt").write_text(text)
    graph = read_graph(tmp_path / "g.txt")
    write_graph(graph, tmp_path / "g.csv")
    titles = "source,target,weight" if graph.weighted else "source,target"
    assert (tmp_path / "g.csv").read_text().splitlines()[0] == titles
    back = read_graph(tmp_path / "g.csv")
    names, before = (None if g.names is None else g.names.tolist() for g in (back, graph))
    assert names == before
    assert np.array_equal(back.targets, graph.targets)


@pytest.mark.parametrize("name", ["g.graphml", "g.graphml.gz", "g.gexf", "g.gml.cyjs"])
def test_carriage_returns_in_names_survive(tmp_path, name):
    pytest.importorskip("networkx")
    names = ["a\rb", "c", "d\r\ne"]
    write_graph(as_graph((names[:2], names[1:])), tmp_path / name)
    back = read_graph(tmp_path / name)
    assert back.names.tolist() == names


@pytest.mark.parametrize("weights", [None, [1, 1, 1, 1], [0.5, 2.0, 1.0, 3.25], [2, 1, 2**40, 7]])
@pytest.mark.parametrize("loop", [False, True])
def test_archives_are_the_rows_that_scipy_reads(tmp_path, weights, loop):
    names = np.array(["b", "a", "c", "lonely", "d"])
    u, v = np.array([0, 1, 2, 4]), np.array([1, 2, 0, 4 if loop else 0])
    graph = replace(lu.Graph.from_edges(u, v, weights, n_vertices=5), names=names)
    path = tmp_path / "g.npz"
    write_graph(path, graph)
    again = read_graph(path)
    assert same(again, graph)
    assert again.names.tolist() == names.tolist()
    if weights is None or max(weights) > 1:
        assert (sparse.load_npz(path) != graph.to_scipy()).nnz == 0


def test_damaged_archives_are_refused_or_read_as_they_were(tmp_path):
    graph = lfr(2000, seed=1).graph
    write_graph(tmp_path / "g.npz", graph)
    content = (tmp_path / "g.npz").read_bytes()
    refused = 0
    for place in np.linspace(0, len(content) - 1, 60, dtype=int):
        path = tmp_path / "d.npz"
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        try:
            assert same(read_graph(path), graph)
        except lu.GraphFormatError:
            refused += 1
    assert refused > 40
    for end in (len(content) // 2, len(content) - 30):
        path.write_bytes(content[:end])
        with pytest.raises(lu.GraphError, match=r"d\.npz"):
            read_graph(path)


def test_a_damaged_loop_of_an_archive_is_refused(tmp_path):
    path = tmp_path / "g.npz"
    write_graph(path, lu.Graph.from_edges([0, 1, 2], [1, 2, 2], [2, 3, 77]))
    content = path.read_bytes()
    place = content.index((77).to_bytes(8, "little"))
    path.write_bytes(content[:place] + b"N" + content[place + 1 :])
    with pytest.raises(lu.GraphFormatError, match=r"g\.npz"):
        read_graph(path)
