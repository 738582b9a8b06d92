"""Files that are small on disk and huge in memory, and honest ones with long lines."""

import gzip
import io
import json
import random
import time

import numpy as np
import pyarrow
import pytest
from pyarrow import feather, parquet

from louvain_um import read_labels, read_stream
from louvain_um.distributed.files.part_folder import EdgePiece, read_piece
from louvain_um.errors import GraphFormatError, LouvainUmError
from louvain_um.formats import graph_file, read_graph
from louvain_um.formats.graph_file import GraphFile, open_graph_file
from louvain_um.formats.read_options import ReadOptions
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.placement.policy.find import find_policy
from louvain_um.profiling import load
from louvain_um.profiling.simulator.addresses import read_addresses
from louvain_um.profiling.sources.nsys import KERNELS, read_export


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def test_a_long_line_takes_linear_time():
    def blocks(mebibytes):
        file = GraphFile(io.BytesIO(b"1" * (mebibytes << 20)), "x", trusted=True)
        return seconds(lambda: sum(len(block) for block in file.blocks()))

    # Quadratic time would be 100 times as long for 10 times the bytes, however often it is taken.
    assert any(blocks(200) < 40 * max(blocks(20), 0.01) for _ in range(5))


def test_a_stream_that_packs_well_takes_linear_time(tmp_path):
    def read(mebibytes):
        path = tmp_path / f"{mebibytes}.txt.gz"
        path.write_bytes(gzip.compress(b"\n" * (mebibytes << 20), 1))
        with open_graph_file(str(path), trusted=True) as file:
            return seconds(lambda: sum(len(block) for block in file.blocks()))

    assert any(read(160) < 40 * max(read(16), 0.02) for _ in range(5))


def test_long_lines_are_whole(monkeypatch):
    text = b"1" * 10 + b"\n" + b"2" * 25 + b"\n3\n4" + b"5" * 20
    for size in range(1, 40):
        file = GraphFile(io.BytesIO(text), "x")
        blocks = [block.tobytes() for block in file.blocks(size)]
        assert b"".join(blocks) == text + b"\n"
        assert all(block.endswith(b"\n") for block in blocks)


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_parts_of_a_plain_file_have_all_lines_once(tmp_path, monkeypatch, end):
    monkeypatch.setattr(graph_file, "LINE_BYTES", 3)
    lines = [b"1" * 10, b"2" * 25, b"", b"3", b"4" * 20, b"5", b"6 7"]
    text = b"\n".join(lines) + end.encode()
    path = tmp_path / "a.txt"
    path.write_bytes(text)
    for size in range(1, 40):
        for peeked, consumed in ((2, 0), (2, 11), (40, 0), (40, 11)):
            seen = []
            watch = graph_file.watched_by(lambda size, done: seen.append(done))  # noqa: B023
            with watch, open_graph_file(str(path)) as file:
                file.peek(peeked)
                file.read(consumed)
                blocks = [piece().tobytes() for piece in file.pieces(size)]
            assert b"".join(blocks) == text[consumed:] + b"\n" * (not end)
            assert all(not block or block.endswith(b"\n") for block in blocks)
            assert seen == sorted(seen)
            assert seen[-1] == len(text)


def refused(path, text):
    """Reading is refused in one line, unless the file is trusted."""
    with pytest.raises(GraphFormatError, match=text) as caught:
        read_graph(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert message.count(str(path)) == 1
    assert message.endswith("trusted=True (--trusted)")
    assert read_graph(path, trusted=True).n_edges == 1


def test_line_length(tmp_path, monkeypatch):
    monkeypatch.setattr(graph_file, "LONGEST_LINE", 1 << 20)
    path = tmp_path / "g.txt"
    path.write_text("1 2" + " " * (3 << 20) + "\n")
    refused(path, "a line is longer than 1 MiB")


PACKED = {
    "g.txt": ("1 2\n", f"#{' ' * 62}\n"), "g.csv": ("source,target\n1,2\n", "\n"),
    "g.mtx": ("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n2 1\n", "\n"),
    "g.graph": ("2 1\n2\n1\n", "%\n"), "g.net": ("*Vertices 2\n*Edges\n1 2\n", "\n"),
    "g.gml": ("graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 ] ]", " "),
    "g.graphml": (
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">'
        '<node id="a"/><node id="b"/><edge source="a" target="b"/></graph></graphml>', " "
    ),
    "g.json": ('{"nodes": [{"id": 1}, {"id": 2}], "links": [{"source": 1, "target": 2}]}', " "),
    "g.dl": ("dl n=2\nformat=edgelist1\ndata:\n1 2\n", "\n"),
    "g.gr": ("p sp 2 2\na 1 2 1\na 2 1 1\n", "c\n"), "g.lgl": ("# a\nb\n", "\n"),
    "g.sif": ("a x b\n", "\n"), "g.adjlist": ("a b\n", "\n"),
    "g.jsonl": ('{"source": 1, "target": 2}\n', "\n"), "g.npz": ("", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", PACKED)
def test_unpacked_bytes(tmp_path, monkeypatch, name):
    monkeypatch.setattr(graph_file, "FREE_BYTES", 1 << 20)
    path = tmp_path / (name if name == "g.npz" else f"{name}.gz")
    text, filling = PACKED[name]
    if name == "g.npz":
        np.savez_compressed(path, u=[0], v=[1], filling=np.zeros(1 << 20))
    else:
        path.write_bytes(gzip.compress(f"{text}{filling * ((4 << 20) // len(filling))}".encode()))
    refused(path, "unpacks to more than 200 times its size")


def zeros(rows, *names):
    column = pyarrow.DictionaryArray.from_arrays(np.zeros(rows, np.int8), pyarrow.array([7]))
    return pyarrow.table([column] * len(names), names=names)


def texts(rows):
    return pyarrow.table(
        {"source": [f"{at}{'a' * 50000}" for at in range(rows)], "target": ["b"] * rows}
    )


TABLES = {
    "graph": lambda path: read_graph(path / "t.parquet"),
    "names": lambda path: read_graph(path / "names.parquet"),
    "feather": lambda path: read_graph(path / "t.feather"),
    "names of feather": lambda path: read_graph(path / "names.feather"),
    "labels": lambda path: read_labels(path / "t.parquet"),
    "nodes": lambda path: read_graph(path / "g.txt", nodes=path / "t.parquet"),
    "nodes as text": lambda path: read_graph(path / "g.txt", nodes=path / "n.csv.gz"),
    "stream": lambda path: [*read_stream(path / "t.parquet").steps(every=9)],
    "partitions": lambda path: read_piece(
        EdgePiece(path=str(path / "t.parquet"), group=0, size=1), ReadOptions()
    ),
    "addresses": lambda path: read_addresses(path / "t.parquet"),
    "session": lambda path: load(path / "session.parquet"),
    "export": lambda path: read_export(path / "export"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_that_unpack_to_far_more(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(graph_file, "FREE_BYTES", 1 << 18)
    (tmp_path / "g.txt").write_text("7 8\n")
    (tmp_path / "n.csv.gz").write_bytes(gzip.compress(b"id,x\n7,8\n" + b"\n" * (1 << 20)))
    names = ("vertex", "community", "time", "address", "write", "start", "source", "target")
    table, names = zeros(300_000, *names), texts(400)
    parquet.write_table(table, tmp_path / "t.parquet")
    parquet.write_table(names, tmp_path / "names.parquet", compression="zstd", use_dictionary=False)
    plain = pyarrow.table({name: np.zeros(300_000) for name in table.column_names})
    feather.write_feather(plain, tmp_path / "t.feather", "zstd")
    feather.write_feather(names, tmp_path / "names.feather", "zstd", chunksize=20)
    for folder, file in (("session.parquet", "events.parquet"), ("export", f"{KERNELS}.parquet")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "header.json").write_text("{}")
        parquet.write_table(table, tmp_path / folder / file)
    with pytest.raises(LouvainUmError, match="unpacks to more than 200 times its size"):
        TABLES[kind](tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.txt", "# Nodes: 5000 Edges: 1\n0 1\n"),
        ("g.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n5000 5000 1\n2 1\n"),
        ("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n5000 5000 2\n2 1\n1 2\n"),
        ("g.graph", "5000 1\n2\n1\n"),
        ("g.npz", ""),
    ],
)
def test_vertices_per_edge(tmp_path, monkeypatch, name, text):
    monkeypatch.setattr(graph_file, "FREE_VERTICES", 1000)
    path = tmp_path / name
    path.write_text(text)
    if name == "g.npz":
        np.savez(path, u=[0], v=[1], n=5000)
    refused(path, "has 5,000 vertices for [12] edges")


def test_one_based_ids_are_vertices_too(tmp_path, monkeypatch):
    monkeypatch.setattr(graph_file, "FREE_VERTICES", 1000)
    (tmp_path / "g.txt").write_text("1 5000\n")
    assert read_graph(tmp_path / "g.txt").n_vertices == 2
    with pytest.raises(GraphFormatError, match="5,000 vertices for 1 edges"):
        read_graph(tmp_path / "g.txt", one_based=True)


def test_crafted_ids_take_no_longer(tmp_path):
    """Ids that all collided in a table whose hash everybody knows."""
    golden, n = 0x9E3779B97F4A7C15, 60_000
    back = pow(golden, -1, 2**64)
    high = np.arange(1, 40 * n, dtype=np.uint64)
    with np.errstate(over="ignore"):
        crafted = ((high << np.uint64(32)) | high) * np.uint64(back)
    crafted = crafted[crafted < 10**18][:n].astype(np.int64)
    plain = np.random.default_rng(1).integers(0, 10**18, n)

    def read(ids, kind):
        path = tmp_path / "g.txt"
        np.savetxt(path, ids.reshape(-1, 2), "%d")
        return seconds(lambda: read_graph(path, ids=kind))

    for kind in ("number", "text"):
        read(plain, kind)
        assert read(crafted, kind) < 10 * read(plain, kind) + 1


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
NESTED = 200_000

BOMBS = {
    "laughs.graphml": f'<!DOCTYPE g [<!ENTITY l0 "x">{LAUGHS}]><graphml><node id="&l11;"/>'
    "</graphml>",
    "square.gexf": f'<!DOCTYPE g [<!ENTITY a "{"x" * 60_000}">]><gexf><node id="{"&a;" * 60_000}"/>'
    "</gexf>",
    "outside.graphml": '<!DOCTYPE g [<!ENTITY x SYSTEM "file:///etc/hostname">]>'
    '<graphml><node id="&x;"/></graphml>',
    "outside.gexf": '<!DOCTYPE g [<!ENTITY x SYSTEM "file:///etc/hostname">]><gexf>&x;</gexf>',
    "deep.json": "[" * NESTED,
    "deep.cyjs": '{"elements":' * NESTED,
    "deep.gml": "graph [ " * NESTED,
    "deep.jsonl": '{"source": "a", "target": "b", "more": ' + "[" * NESTED + "]" * NESTED + "}",
    "null.jsonl": 'null\n{"source": 1, "target": 2}\n',
    "mark.jsonl": "\ufeff null",
    "block.jsonl": '{"source": 1, "target": 2}\n' * 35_000 + "null\n" * 40_000,
    "deep_lines.jsonl": '{"source": "]}",\n"more": ' * NESTED,
}


@pytest.mark.parametrize("name", BOMBS)
def test_texts_that_expand_or_nest_are_refused_at_once(tmp_path, name):
    path = tmp_path / name
    path.write_text(BOMBS[name])
    begin = time.process_time()
    with pytest.raises(GraphFormatError) as caught:
        read_graph(path)
    assert time.process_time() - begin < 20
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 60_000, "a = " + "{a=" * 20_000, "a." * 9_000 + "a=1"]
)
def test_policies_and_machines_that_nest_are_refused(tmp_path, text):
    path = tmp_path / "x.toml"
    path.write_text(text)
    for read in (find_policy, load_machine):
        with pytest.raises(LouvainUmError) as caught:
            read(str(path))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["g.parquet", "g.feather", "g.jsonl"])
def test_ids_of_tables_are_looked_at_before_vertices_are_made(tmp_path, name):
    path = tmp_path / name
    for ids, problem in (([0, 2], "id 0 is below 1"), ([1, 1 << 31], "has 2,147,483,648 vertices")):
        if name == "g.jsonl":
            path.write_text(json.dumps({"source": ids[0], "target": ids[1]}))
        else:
            write = feather.write_feather if name == "g.feather" else parquet.write_table
            write(pyarrow.table({"source": ids[:1], "target": ids[1:]}), path)
        with pytest.raises(GraphFormatError, match=f"{name}: {problem}"):
            read_graph(path, one_based=True)


@pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
def test_lengths_of_feather_files_are_checked(tmp_path, compression):
    path, chance = tmp_path / "g.feather", random.Random(1)
    names = pyarrow.array(["a", "b", "c"])
    table = pyarrow.table({"source": names.dictionary_encode(), "target": names[::-1]})
    feather.write_feather(table, path, compression=compression)
    whole, refused = path.read_bytes(), 0
    for _ in range(300):
        changed = bytearray(whole)
        changed[chance.randrange(len(changed))] = chance.choice((0, 1, 0x3E, 0x7F, 0xFF))
        path.write_bytes(changed)
        try:
            read_graph(path)
        except GraphFormatError:
            refused += 1
    assert refused > 10
