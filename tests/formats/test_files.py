"""What is wrong with a file as a whole: one line that names it and says what to do."""

import gzip
import io
import os
import random
import struct
import tempfile
import zlib
from pathlib import Path

import pytest

import louvain_um as lu
from louvain_um.errors import GraphFormatError
from louvain_um.formats import graph_file, read_graph
from louvain_um.formats.graph_file import is_stream, watched_by
from louvain_um.formats.size_from_header import size_from_header

ALL = ["g.txt", "g.csv", "g.mtx", "g.graph", "g.gml", "g.graphml", "g.npz", "g.parquet"]


def complaint(path, **options):
    with pytest.raises(GraphFormatError) as caught:
        read_graph(path, **options)
    text = str(caught.value)
    assert text.startswith(str(path))
    assert "\n" not in text
    return text


@pytest.mark.parametrize("name", ALL)
def test_missing_folder_empty_noise(tmp_path, name):
    path = tmp_path / name
    assert "no such file" in complaint(path)
    path.touch()
    assert "empty" in complaint(path)
    path.write_bytes(random.Random(1).randbytes(5000))
    complaint(path)
    path.unlink()
    path.mkdir()
    assert "folder; name a graph file inside it, as one file is read at a time" in complaint(path)
    assert "a pattern is not resolved: one file is read at a time" in complaint(tmp_path / "*.txt")


@pytest.mark.parametrize("name", [name + ".gz" for name in ALL])
def test_gzip_that_ends_early_or_is_none(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(random.Random(1).randbytes(5000))[:3000])
    assert "gzip" in complaint(path)
    text = "".join(f"{i} {i * i % 977}\n" for i in range(20000)).encode()
    whole = gzip.compress(text)
    path.write_bytes(whole[: len(whole) // 2])
    assert "gzip" in complaint(path)
    path.write_bytes(whole[:-4000] + b"x" * 4000)
    assert "gzip" in complaint(path)
    path.write_bytes(b"0 1\n")
    assert "not a gzip" in complaint(path)
    path.write_bytes(gzip.compress(b""))
    assert "empty" in complaint(path)


def test_unknown_suffix(tmp_path):
    path = tmp_path / "g.xyz"
    path.write_text("0 1\n")
    assert "'.xyz' is unknown" in complaint(path)
    assert read_graph(path, format="edges").n_edges == 1
    (tmp_path / "graph").write_text("0 1\n")
    assert "no suffix" in complaint(tmp_path / "graph")


@pytest.mark.parametrize("suffix", [".xlsx", ".ods"])
def test_a_spreadsheet_is_to_be_saved_as_csv(tmp_path, suffix):
    assert "save it as CSV" in complaint(_with(tmp_path / f"book{suffix}", "PK"))
    with pytest.raises(GraphFormatError, match=r"is a spreadsheet; save it as CSV$"):
        lu.write_graph(lu.as_graph([(0, 1)]), tmp_path / f"new{suffix}")


def test_what_is_no_path_or_elsewhere_is_reported(tmp_path):
    for given in (None, 5, io.StringIO("a b")):
        with pytest.raises(lu.GraphError, match="as a path; pass one, or an object to as_graph"):
            read_graph(given)
    with pytest.raises(GraphFormatError, match="is an address; download the file first"):
        read_graph("https://example.org/friends.csv")
    path = _with(tmp_path / "g.txt", "0 1\n")
    assert read_graph(os.fsencode(path)).n_edges == 1


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_text_in_utf_16_is_reported_as_such(tmp_path, encoding):
    path = tmp_path / "g.csv"
    path.write_bytes("\ufeffann;bob;1\r\n".encode(encoding))
    assert "is UTF-16 text; convert it" in complaint(path)
    with pytest.raises(lu.GraphFormatError, match="is UTF-16 text"):
        lu.read_stream(path)


@pytest.mark.parametrize(
    "text", ["ann bob\n", "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n"],
    ids=["edges", "matrix"],
)  # fmt: skip
def test_the_format_of_a_pipe_without_a_suffix_is_that_of_its_content(text):
    end, start = os.pipe()
    os.write(start, text.encode())
    os.close(start)
    try:
        assert read_graph(f"/dev/fd/{end}").n_edges == 1
    finally:
        os.close(end)


def test_a_file_in_memory_is_no_pipe():
    assert is_stream("/dev/null")
    if not Path("/dev/shm").is_dir():
        pytest.skip("no /dev/shm")
    with tempfile.NamedTemporaryFile("w", dir="/dev/shm", suffix=".mtx") as file:
        file.write("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n")
        file.flush()
        assert not is_stream(file.name)
        assert (size := size_from_header(file.name)) is not None
        assert size.vertices == 2


def test_gzip_is_known_by_its_bytes(tmp_path):
    path = tmp_path / "g.txt"
    path.write_bytes(gzip.compress(b"0 1\n") + gzip.compress(b"1 2\n"))
    assert read_graph(path).n_edges == 2


def bgzip(text, block=50_000):
    """Return text compressed as `bgzip` does, in streams that tell their size."""
    found = b""
    for begin in range(0, len(text) + block, block):
        part = text[begin : begin + block]  # the last one is empty
        body = zlib.compress(part, wbits=-15)
        size = struct.pack("<H", len(body) + 25)
        found += b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0" + size + body
        found += struct.pack("<II", zlib.crc32(part), len(part))
    return found


def test_streams_that_tell_their_size_are_read_side_by_side(tmp_path, monkeypatch):
    text = b"".join(b"%d %d\n" % (i, i * i % 977) for i in range(400_000))
    path, packed = tmp_path / "g.txt.gz", bgzip(text)
    assert gzip.decompress(packed) == text
    groups = []
    inflated = graph_file._inflated
    monkeypatch.setattr(graph_file, "_inflated", lambda raw: inflated(groups.append(raw) or raw))
    expected = read_graph(_with(tmp_path / "g.txt", text.decode()))
    # An empty block is no end, nor is one of another writer.
    for data in (packed, packed[:-28] + gzip.compress(b"0 400001\n") + packed[-28:]):
        groups.clear()
        path.write_bytes(data)
        assert read_graph(path).n_edges == expected.n_edges + (data is not packed)
        assert 1 < len(groups) == -(-len(text) // 50_000 // 16)
    path.write_bytes(packed[:-100])
    assert "gzip" in complaint(path)
    path.write_bytes(packed[:500_000] + b"x" + packed[500_001:])
    assert "gzip" in complaint(path)
    path.write_bytes(bgzip(bytes(1 << 20), 1 << 20))
    assert "more than 64 KiB" in complaint(path)


def test_small_streams_that_tell_their_size_do_not_pile_up(tmp_path, monkeypatch):
    monkeypatch.setattr(graph_file, "BGZF_GROUPS", 2)
    held, reader = [], graph_file._GzipReader
    more = reader._more_blocks
    monkeypatch.setattr(
        reader, "_more_blocks", lambda one: (more(one), held.append(len(one.raw)))[0]
    )
    text = b"".join(b"%d %d\n" % (i, i * i % 977) for i in range(40_000))
    path = tmp_path / "g.txt.gz"
    path.write_bytes(bgzip(text, 100))
    assert read_graph(path).n_edges == read_graph(_with(tmp_path / "g.txt", text.decode())).n_edges
    assert len(held) > 100
    assert max(held) < 2 * (graph_file.BGZF_GROUP * graph_file.BGZF_GROUPS << 12)


def test_other_formats_in_their_clothes(tmp_path):
    path = tmp_path / "g.txt"
    path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n")
    assert read_graph(path).n_edges == 1
    assert "MatrixMarket" in complaint(_with(tmp_path / "g.mtx", "0 1\n"))
    assert "METIS header" in complaint(_with(tmp_path / "g.graph", "a b\n"))
    assert "GML" in complaint(_with(tmp_path / "g.gml", "0 1\n"))
    assert "GRAPHML" in complaint(_with(tmp_path / "g.graphml", "0 1\n"))


def _with(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize("suffix", ["txt", "txt.gz"])
def test_reading_reports_the_bytes_of_the_file(tmp_path, suffix):
    path = tmp_path / f"g.{suffix}"
    text = b"".join(b"%d %d\n" % (i, i + 1) for i in range(300_000))
    path.write_bytes(gzip.compress(text, 1) if suffix.endswith("gz") else text)
    seen = []
    with watched_by(lambda size, done: seen.append((size, done))):
        read_graph(path)
    done = [bytes_ for _, bytes_ in seen]
    assert {size for size, _ in seen} == {path.stat().st_size}
    assert done == sorted(done)
    assert done[-1] == path.stat().st_size
    assert len(set(done)) > 3
