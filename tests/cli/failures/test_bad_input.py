"""Bad input gives one line with the file and a remedy, and writes nothing."""

import gzip

import pytest

MM = "%%MatrixMarket matrix coordinate"

FILES = {
    "empty.txt": b"",
    "noise.txt": bytes(range(256)) * 40,
    "noise.mtx": bytes(range(256)) * 40,
    "noise.npz": bytes(range(256)) * 40,
    "cut.txt.gz": gzip.compress(b"1 2\n2 3\n" * 5000)[:40],
    "field.txt": b"1 2\n2 3\n4\n",
    "negative.txt": b"1 2\n2 -3\n",
    "nan.txt": b"1 2 1.5\n2 3 nan\n",
    "infinite.txt": b"1 2 1.5\n2 3 inf\n",
    "below.txt": b"1 2 1.5\n2 3 -1\n",
    "count.mtx": f"{MM} pattern symmetric\n3 3 4\n2 1\n".encode(),
    "more.mtx": f"{MM} pattern symmetric\n3 3 1\n2 1\n3 1\n".encode(),
    "lopsided.graph": b"3 2\n2 3\n1\n\n",
    "directed.mtx": f"{MM} pattern general\n3 3 1\n2 1\n".encode(),
    "unknown.suffix": b"1 2\n",
}

LINES = {"field.txt": 3, "negative.txt": 2, "nan.txt": 2, "infinite.txt": 2, "below.txt": 2}


@pytest.mark.parametrize("name", [n for n in FILES if n != "directed.mtx"])
def test_bad_files(run, tmp_path, name):
    path, out = tmp_path / name, tmp_path / "labels.csv"
    path.write_bytes(FILES[name])
    done = run("detect", path, "-o", out)
    assert done.code in (1, 2)
    line = done.complaint()
    where = f"{name}:{LINES[name]}:" if name in LINES else name
    assert where in line
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_header_taken_for_an_edge_is_noticed(run, shared_data):
    done = run("detect", shared_data / "facebook_combined.txt", "--json")
    assert done.json["graph"]["vertices"] == 4039
    assert "header" in done.err


@pytest.mark.parametrize(
    "command", [["detect", "no.txt", "-o"], ["convert", "no.txt"], ["generate", "ring", "-o"]]
)
def test_a_folder_that_cannot_be_written_is_refused_first(run, tmp_path, monkeypatch, command):
    monkeypatch.setattr("louvain_um.core.atomic_files.os.access", lambda *_: False)
    line = run(*command, tmp_path / "out.csv").complaint()
    assert f"the folder {tmp_path} cannot be written" in line
