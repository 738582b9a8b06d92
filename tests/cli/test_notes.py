"""Notes on a graph speak Python in Python and options on the command line, in every command."""

from __future__ import annotations

import re
import warnings

import pytest

import louvain_um as lu

FLAG, ARGUMENT = re.compile(r"--\w"), re.compile(r"\w=(True|False|'|…)")

FILES = {
    "header.csv": "user_id,friend_id,total,year\n1,2,3.5,7\n2,3,1,8\n3,1,2,9\n",
    "names.csv": "ann,bob\ncid,dan\ndan,eve\neve,fay\n",
    "modes.csv": "user,item,rating\n1,2,3\n2,3,4\n3,1,5\n",
    "fields.txt": "1 2 3 4\n2 3 4 5\n3 1 6 7\n",
    "counts.txt": "3 3\n1 2\n2 3\n3 1\n",
}


@pytest.mark.parametrize("name", FILES)
def test_notes_speak_the_language_of_the_caller(run, tmp_path, name):
    path = tmp_path / name
    path.write_text(FILES[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lu.GraphWarning)
        notes = lu.read_graph(path).notes
    assert notes
    assert not any(FLAG.search(note) for note in notes), notes
    done = run("detect", path, "--json")
    assert len(done.json["notes"]) >= len(notes)
    for line in (*done.err.splitlines(), *done.json["notes"]):
        assert not ARGUMENT.search(line), line
    advice = [note for note in notes if ARGUMENT.search(note)]
    assert len(advice) <= sum(bool(FLAG.search(note)) for note in done.json["notes"])


COMMANDS = {
    "detect": (),
    "plan": ("--read",),
    "profile": ("-o", "session.npz", "--device", "cpu"),
    "simulate": ("--machine", "p4000", "--policies", "base", "--oversubscription", "0"),
    "sweep": ("--machine", "p4000", "--policies", "base", "--oversubscription", "0", "-o", "swept"),
    "convert": ("g.npz",),
    "draw": ("-o", "g.png"),
    "resolution": ("--points", "2", "--runs", "1"),
    "ensemble": ("--runs", "2"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_prints_the_notes_on_its_graph(run, tmp_path, monkeypatch, command):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "edges.csv").write_text("a,b,c\n1,2,3\n2,3,4\n1,2,5\n3,3,1\n")
    done = run(command, "edges.csv", *COMMANDS[command])
    assert done.code == 0, done.err
    assert done.err.count("--no-header reads it as an edge") == 1
    assert done.err.count("loop") == 1


def test_notes_of_several_graphs_name_them(run, tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("source,target\n1,2\n2,3\n1,1\n")
    options = COMMANDS["sweep"][:-1]
    done = run("sweep", tmp_path / "a.csv", tmp_path / "b.csv", *options, tmp_path / "swept")
    assert re.search(r"note: \S*a\.csv: .*loop", done.err)
    assert re.search(r"note: \S*b\.csv: .*loop", done.err)
    again = run("sweep", tmp_path / "a.csv", *options, tmp_path / "other", "-q")
    assert "loop" not in again.err
