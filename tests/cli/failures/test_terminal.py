"""What names in files and a narrow terminal do to the output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress

import pytest


@pytest.mark.skipif(os.name == "nt", reason="no such file names")
def test_names_cannot_carry_commands_to_the_terminal(two_triangles, tmp_path):
    pty = pytest.importorskip("pty")
    bad = "\x1b[31mred\x1b]0;title\x07\u202e\x9b"
    graph = two_triangles.rename(tmp_path / f"{bad}.csv")
    session = tmp_path / f"{bad}.npz"
    commands = [
        ["convert", graph, tmp_path / f"{bad}.mtx"],
        ["detect", tmp_path / f"{bad}.txt"],
        ["detect", graph, "--seed", bad],
        ["detect", graph, f"--{bad}"],
        [bad],
        ["plan", graph],
        ["profile", graph, "-o", session],
        ["report", session],
    ]
    code = (
        "import sys, json; from louvain_um.cli import app\n"
        "for each in json.loads(sys.argv[1]):\n"
        "    try: app(each)\n"
        "    except SystemExit: pass\n"
    )
    shown = bytearray()
    listed = json.dumps([list(map(str, each)) for each in commands])

    main, child = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", code, listed], stdout=child, stderr=child)
    os.close(child)
    with suppress(OSError):  # the end of a terminal
        while data := os.read(main, 4096):
            shown.extend(data)
    process.wait(60)
    os.close(main)
    text = shown.decode()
    assert text.count("red") >= len(commands)
    assert "\x1b[31mred" not in text
    assert [each for each in ("\x1b]", "\x07", "\u202e", "\x9b") if each in text] == []


@pytest.mark.parametrize("columns", ["0", "1", "7", "80"])
def test_narrow_terminals(run, two_triangles, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    done = run("detect", two_triangles)
    assert done.code == 0
    assert "2 communities" in " ".join(done.out.split())
    assert "ann" in done.out


@pytest.mark.skipif(sys.platform != "linux", reason="file names are not bytes")
def test_file_names_that_are_not_utf8(run, two_triangles, tmp_path):
    graph = two_triangles.rename(tmp_path / "g\udcff.csv")
    for name in ("labels\udcff.csv", "labels\udcff.parquet"):
        assert run("detect", graph, "-o", tmp_path / name).code == 0
    assert run("compare", *(tmp_path / f"labels\udcff.{s}" for s in ("csv", "parquet"))).code == 0
    sweep = tmp_path / "sweep\udcff"
    assert run("simulate", graph, "--policies", "base", "-o", tmp_path / "\udcff.csv").code == 0
    assert (
        run("sweep", graph, "-o", sweep, "--policies", "base", "--oversubscription", "0").code == 0
    )
    for name in ("session\udcff.npz", "session\udcff.parquet"):
        assert run("profile", graph, "-o", tmp_path / name).code == 0
    for source in ("session\udcff.npz", "session\udcff.parquet", "sweep\udcff"):
        done = run("report", tmp_path / source, "-o", tmp_path / "page\udcff.html", "--force")
        assert done.code == 0, done.err


def test_formulas_in_names(run, tmp_path):
    graph, out = tmp_path / "g.csv", tmp_path / "labels.csv"
    graph.write_text("source,target\n=1+1,ann\nann,bob\n")
    assert run("detect", graph, "-o", out, "--safe-csv").code == 0
    assert "'=1+1" in out.read_text()
    assert run("detect", graph, "-o", out, "--force").code == 0
    assert "'" not in out.read_text()
    done = run("detect", graph, "--safe-csv")
    assert done.code == 2
    assert "add -o labels.csv" in done.complaint()
