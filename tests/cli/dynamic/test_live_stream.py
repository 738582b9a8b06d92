"""``louvain-um stream -``: edges are followed as they arrive in a pipe."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from louvain_um.cli import app
from louvain_um.cli.commands import stream as command
from louvain_um.dynamic import arriving
from louvain_um.dynamic.streams import read_stream
from tests.cli.dynamic.conftest import tables

OPTIONS = ("--every", "50", "--window", "300")


def edge_lines(count=620):
    rng = np.random.default_rng(3)
    lines = []
    for second in range(count):
        group = int(rng.integers(0, 4))
        u, v = (15 * group + rng.integers(0, 15, 2)).tolist()
        if rng.random() < 0.1:
            v = int(rng.integers(0, 60))
        lines.append(f"p{u} p{v} {1000 + 10 * second}\n")
    return lines


LINES = edge_lines()


def run(text, folder, *options):
    arguments = ["stream", "-", "-o", str(folder), *map(str, options)]
    return CliRunner().invoke(app, arguments, input=text, catch_exceptions=False)


def same(one, other):
    for name, table in tables(one).items():
        pd.testing.assert_frame_equal(table, tables(other)[name])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the folder of a stream that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    assert run("".join(LINES), folder, *OPTIONS, "-q").exit_code == 0
    return folder


class Piped:
    def __init__(self, folder, *options):
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "louvain_um", "stream", "-", "-o", str(folder), *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, PYTHONPATH=str(Path(__file__).parents[3])),
        )  # fmt: skip

    def send(self, lines):
        self.process.stdin.write("".join(lines).encode())
        self.process.stdin.flush()

    def wait_for(self, batches):
        """Wait until the folder has the rows of some batches, while the pipe is open."""
        path, until = self.folder / "history.csv", time.monotonic() + 90
        while not path.exists() or path.read_text().count("\n") < batches + 1:
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < until, "no batch was followed in time"
            time.sleep(0.05)

    def end(self):
        out, err = self.process.communicate(timeout=90)
        return self.process.returncode, out.decode(), err.decode()


@pytest.mark.system
def test_batches_are_written_while_the_pipe_is_open(whole, tmp_path):
    piped = Piped(tmp_path / "out", *OPTIONS)
    piped.send(LINES[:60])
    piped.wait_for(1)
    assert len(tables(tmp_path / "out")["communities"]) > 20
    piped.send(LINES[60:110])
    piped.wait_for(2)
    piped.send([*LINES[110:], LINES[0][:3]][:-1])
    code, out, err = piped.end()
    assert code == 0, err
    assert "13 batches, 620 edges" in out
    assert (tmp_path / "out" / "report.html").read_text().count("<svg") >= 3
    same(tmp_path / "out", whole)


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stream_that_is_stopped_goes_on(whole, tmp_path, number):
    folder = tmp_path / "out"
    piped = Piped(folder, *OPTIONS)
    piped.send(LINES[:330])
    piped.wait_for(6)
    time.sleep(0.3)
    piped.process.send_signal(number)
    code, _, err = piped.end()
    assert "Traceback" not in err
    if number == signal.SIGKILL:
        assert code == -number
    else:
        assert code == 128 + number
        assert (folder / "report.html").exists()
        # What had arrived without being followed is kept: only what is new is sent.
        assert run("".join(LINES[330:]), folder, *OPTIONS, "-q").exit_code == 0
        same(folder, whole)
    # From its beginning again, whatever was lost.
    result = run("".join(LINES), folder, *OPTIONS, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["edges"] == 620
    same(folder, whole)


@pytest.mark.system
def test_a_stop_reports_that_lines_waited(tmp_path):
    piped = Piped(tmp_path / "out", "--every", "20")
    piped.send(edge_lines(20_000))
    piped.wait_for(3)
    piped.process.send_signal(signal.SIGINT)
    code, _, err = piped.end()
    assert code == 128 + signal.SIGINT
    assert "note: lines waited in the pipe; send all from the first one to continue" in err


@pytest.mark.usefixtures("pageless")
@pytest.mark.parametrize(("every", "window"), [("37", "2h"), ("7m", "100"), ("7m", None)])
def test_parts_of_a_stream_give_what_the_whole_gives(tmp_path, every, window):
    options = ["--every", every, *(["--window", window] if window else []), "-q"]
    assert run("".join(LINES), tmp_path / "one", *options).exit_code == 0
    text = "".join(LINES).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arriving, "READ_BYTES", 61)  # cuts lines
        patch.setattr(command, "CHECKPOINT_SECONDS", 0.0)
        assert run(text, tmp_path / "two", *options).exit_code == 0
    same(tmp_path / "one", tmp_path / "two")
    file = tmp_path / "edges.txt"
    file.write_bytes(text)
    arguments = ["stream", str(file), "-o", str(tmp_path / "three"), *options]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    same(tmp_path / "one", tmp_path / "three")


@pytest.mark.usefixtures("pageless")
@pytest.mark.parametrize(
    ("content", "window"),
    [("numbers", "30"), ("weights", "20m"), ("commas", None), ("dates", "20m")],
)
def test_a_file_gives_what_a_pipe_gives(tmp_path, content, window):
    edges = [line.replace("p", "").split() for line in edge_lines(300)]
    if content == "dates":
        edges = [[*ends, f"2026-01-01T{int(t) // 3600:02}:{int(t) // 60 % 60:02}:00.5Z"]
                 for *ends, t in edges]  # fmt: skip
    elif content in ("weights", "commas"):
        point = "." if content == "weights" else ","
        edges = [[*edge, f"{1 + k % 7 / 4}".replace(".", point)] for k, edge in enumerate(edges)]
    file = tmp_path / "edges.csv"
    separator = ";" if content == "commas" else ","
    head = "sep=;\n" if content == "commas" else ""
    file.write_text(head + "".join(separator.join(edge) + "\n" for edge in edges))
    options = ["--every", "40", *(["--window", window] if window else []), "-q"]
    assert run(file.read_text(), tmp_path / "pipe", *options).exit_code == 0
    arguments = ["stream", str(file), "-o", str(tmp_path / "file"), *options]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    same(tmp_path / "pipe", tmp_path / "file")


@pytest.mark.usefixtures("pageless")
def test_compressed_and_sorted_streams_are_read_whole(tmp_path):
    text = "".join(LINES)
    for name, data, options in (
        ("packed", gzip.compress(text.encode()), ()),
        ("sorted", "".join(reversed(LINES)), ("--sort",)),
    ):
        result = run(data, tmp_path / name, "--every", 100, *options, "--json")
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["edges"] == 620


BAD = {
    "empty": ("", "<stdin>: is empty"),
    "comments": ("# nothing\n", "no edges"),
    "header": ("source,target,time\n", "no edges"),
    "columns": ("1 2\n", "needs u, v and time"),
    "time": ("1 2 soon\n", ":1: time 'soon' is neither"),
    "utf-16": ("1 2 3\n".encode("utf-16"), "is UTF-16 text; convert it"),
    "steps": ("a b 1\na b 99999999999\n", "steps"),
    "units": ("a b 1767225600000\n", "seem to be milliseconds"),
}


@pytest.mark.parametrize("case", BAD)
def test_input_without_edges_leaves_nothing(whole, tmp_path, case):
    text, reported = BAD[case]
    every = {"steps": "1s", "units": "1d"}.get(case, 10)
    before = {path: path.read_bytes() for path in whole.iterdir()}
    for folder, options in ((tmp_path / "new" / "out", ()), (whole, ("--force",))):
        result = run(text, folder, "--every", every, *options)
        assert result.exit_code in (1, 2)
        assert reported in result.output
        assert "Traceback" not in result.output
    assert [*tmp_path.iterdir()] == []
    assert {path: path.read_bytes() for path in whole.iterdir()} == before


LATER = {
    "backwards": ("a b 5\n", ":104: time 5 comes after 2010; sort the edges first, or pass --s"),
    "truncated": ("a b\n", ":104: the time is missing"),
    "fields": ("a b 99999 1 2\n", ":104: has 5 fields instead of 3"),
    "words": ("a b soon\n", ":104: time 'soon'"),
    "bytes": (b"\xff\xfe b 99999\n", ":104: is not UTF-8"),
    "long": ("a" * (1 << 21), "1 MiB"),
    "after comments": ("# a\n\n// b\na b soon\n", ":107: time 'soon'"),
    "quote": ('a "b 99999\na b" c 99999\n', ":104: the time is missing"),
}


@pytest.mark.usefixtures("pageless")
@pytest.mark.parametrize("case", LATER)
def test_a_bad_line_is_one_message_and_what_came_before_is_kept(tmp_path, case, monkeypatch):
    monkeypatch.setattr(arriving, "READ_BYTES", 200)
    bad, reported = LATER[case]
    good = "source target time\n" + "".join(LINES[:102])
    text = good.encode() + (bad if isinstance(bad, bytes) else bad.encode())
    result = run(text, tmp_path / "out", *OPTIONS)
    assert result.exit_code == 1
    assert reported in result.output
    assert result.output.count("louvain-um: ") == 1
    assert "Traceback" not in result.output
    assert len(tables(tmp_path / "out")["history"]) == 2
    # Without the bad line it goes on.
    text = (good + "".join(LINES[102:])).encode()
    result = run(text, tmp_path / "out", *OPTIONS, "--json")
    assert json.loads(result.stdout)["resumed_after"] == 2
    assert json.loads(result.stdout)["edges"] == 620


@pytest.mark.usefixtures("pageless")
@pytest.mark.parametrize("size", [7, 64, 1 << 16])
def test_comments_may_come_at_any_time(whole, tmp_path, monkeypatch, size):
    monkeypatch.setattr(arriving, "READ_BYTES", size)
    between = ("# a\n", "\n", "  // b\n", "%\n")
    text = "".join(line + between[k % 4] * (k % 5) for k, line in enumerate(LINES))
    begin = "\ufeff# first\nsource target time\n# second\n"
    assert run((begin + text).encode(), tmp_path / "out", *OPTIONS, "-q").exit_code == 0
    same(tmp_path / "out", whole)


@pytest.mark.usefixtures("pageless")
def test_weights_keep_the_kind_of_the_first(tmp_path):
    lines = [line.replace("\n", " 2\n") for line in LINES]
    result = run(
        "".join([*lines[:80], lines[80].replace(" 2\n", " .5\n")]), tmp_path / "w", *OPTIONS
    )
    assert result.exit_code == 1
    assert ":81: weight 0.5 is not whole" in result.output
    real = [lines[0].replace(" 2\n", " 2.0\n"), *lines[1:80]]
    assert run("".join(real), tmp_path / "r", *OPTIONS, "-q").exit_code == 0
    # Whole numbers that come later are scaled as the first was.
    assert run("".join(lines[80:]), tmp_path / "r", *OPTIONS, "-q").exit_code == 0
    assert run("".join(real + lines[80:]), tmp_path / "all", *OPTIONS, "-q").exit_code == 0
    one, other = (tables(tmp_path / name)["history"] for name in ("r", "all"))
    assert one["modularity"].iloc[-1] == pytest.approx(other["modularity"].iloc[-1], abs=0.1)
    result = run("".join(LINES[80:]), tmp_path / "r", *OPTIONS)
    assert result.exit_code == 1


@pytest.mark.usefixtures("pageless")
@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("".join(LINES[3:]), "give all of it from its beginning"),
        ("".join([LINES[0], *LINES[2:]]), "other edges than were followed"),
        ("".join(LINES[:90]), "ends after 90 edges"),
        ("".join(f"{line[:-1]} 1\n" for line in LINES), "weights"),
    ],
)
def test_another_stream_is_refused(tmp_path, text, reported):
    folder = tmp_path / "out"
    assert run("".join(LINES[:100]), folder, *OPTIONS, "-q").exit_code == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = run(text, folder, *OPTIONS)
    assert result.exit_code == 1, result.output
    assert reported in result.output
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.usefixtures("pageless")
def test_a_damaged_place_is_refused(tmp_path):
    folder = tmp_path / "out"
    assert run("".join(LINES[:120]), folder, *OPTIONS, "-q").exit_code == 0
    (path,) = folder.glob("place-*.npz")
    whole = path.read_bytes()
    for data in (whole[: len(whole) // 2], b"", None):
        if data is None:
            path.unlink()
        else:
            path.write_bytes(data)
        result = run("".join(LINES), folder, *OPTIONS)
        assert result.exit_code == 1
        assert "is damaged; pass --force" in result.output
    assert run("".join(LINES), folder, *OPTIONS, "--force", "-q").exit_code == 0


@pytest.mark.usefixtures("pageless")
@pytest.mark.parametrize(
    ("name", "value"),
    [("origin", float("nan")), ("origin", None), ("inside", 10**6), ("seen", -1), ("first", 3),
     ("runs", [{"edges": 5}]), ("last", "x"), ("schema", "other")],
)  # fmt: skip
def test_a_place_that_says_something_else_is_refused(tmp_path, name, value):
    folder = tmp_path / "out"
    assert run("".join(LINES[:120]), folder, "--every", "5m", "-q").exit_code == 0
    (path,) = folder.glob("place-*.npz")
    arrays = dict(np.load(path))
    place = json.loads(arrays["place"].tobytes()) | {name: value}
    arrays["place"] = np.frombuffer(json.dumps(place).encode(), np.uint8)
    np.savez(path, **arrays)
    result = run("".join(LINES), folder, "--every", "5m")
    assert result.exit_code == 1
    assert "is damaged; pass --force" in result.output


def test_names_that_mean_nothing_elsewhere_are_names(tmp_path):
    text = "a b 1\nb NA 2\nnull nan 3\n"
    file = tmp_path / "edges.txt"
    file.write_text(text)
    assert run(text, tmp_path / "out", "-q").exit_code == 0
    table = pd.read_csv(tmp_path / "out" / "communities.csv", keep_default_na=False)
    names = {"a", "b", "NA", "null", "nan"}
    assert set(table["vertex"]) == names
    found = read_stream(str(file)).edges.names
    assert set(found.tolist()) == names


def test_without_matplotlib_there_are_tables_and_a_note(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("a b 1\n", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "1 batch, 1 edge of 2 vertices: 1 community, modularity 0.0000" in result.output
    assert "events.csv and history.csv are in" in result.output
    assert "note: no report.html: pip install" in result.output
    assert len(tables(tmp_path / "out")["history"]) == 1
    assert not (tmp_path / "out" / "report.html").exists()
