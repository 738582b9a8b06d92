"""What commands say: arguments as options, notes once, columns by their names."""

import inspect
import re
import sys
import warnings

import pytest

import louvain_um as lu
from louvain_um.cli.exit_codes import message_and_code
from louvain_um.cli.terminal import with_flags
from louvain_um.generators import GENERATORS


@pytest.mark.parametrize(
    ("python", "expected"),
    [
        ("no GPU is visible; use device='cpu'", "no GPU is visible; use --device cpu"),
        ("pass --force (force=True) to replace it", "pass --force to replace it"),
        ("header=False (--no-header) makes it an edge", "--no-header makes it an edge"),
        ("skip it with header=True (--header), or", "skip it with --header, or"),
        ("pass one_based=False (--zero-based) to", "pass --zero-based to"),
        ("pass weighted=False to read", "pass --unweighted to read"),
        ("read ids as names: ids='text'", "read ids as names: --ids text"),
        ("lists: format='adjacency' (--format adjacency)", "lists: --format adjacency"),
        ("of another format (format=…)?", "of another format (--format …)?"),
        ("https://a.org/?page=True&x='y'", "https://a.org/?page=True&x='y'"),
    ],
)
def test_arguments_become_options(python, expected):
    assert with_flags(python) == expected


@pytest.mark.parametrize("kind", GENERATORS)
def test_positional_arguments_have_no_flag(kind, run, tmp_path):
    parameters = inspect.signature(GENERATORS[kind]).parameters.values()
    placed = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    wrong = ["2x2x2x2" if name == "dims" else "-1" for name in placed]
    command = ("generate", kind, "-o", tmp_path / "graph.txt", "--", *wrong)
    assert f": {placed[0]} must be" in run(*command).complaint()


def test_errors_name_options(run, two_triangles, monkeypatch):
    from louvain_um.gpu.runtime import device

    def no_driver():
        raise device.DeviceUnavailableError("no driver; install one or use device='cpu'")

    monkeypatch.setattr(device, "capabilities", no_driver)
    assert "use --device cpu" in run("detect", two_triangles, "--device", "cuda").complaint()
    assert run("doctor", "--json").json["gpu"]["reason"].endswith("use --device cpu")


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


@pytest.mark.parametrize(
    ("arguments", "module", "said"),
    [
        (("resolution", "--points", "3"), "matplotlib", "no profile.svg: pip install"),
        (("sweep", "--machine", "p4000"), "jinja2", "no report.html: pip install"),
        (("stores", "--stores", "rows"), "matplotlib", "no rates.svg: pip install"),
    ],
)
def test_what_cannot_be_drawn_is_reported_before_the_work(
    arguments, module, said, run, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.chdir(tmp_path)
    command, *rest = arguments
    result = run(command, "missing.txt", *rest, "-o", "out")
    assert f"note: {said}" in result.err.partition("missing.txt:")[0]


@pytest.mark.parametrize(
    ("command", "heads"),
    [
        ("detect example:karate --device cpu -v", "cycle level vertices arcs sweeps"),
        ("detect example:karate --device cpu --describe", "size density cut"),
        ("ensemble example:karate --runs 2 --device cpu", "size certainty members"),
        ("plan ranks 4 --vertices 1M --arcs 20M", "received exchange latency total"),
        ("plan --vertices 1M --arcs 20M -v", "placement peak array"),
        ("stores example:karate --batch 10 --steps 1 -o out -q", "insert delete"),
        ("resolution example:karate --points 3 --runs 1 --device cpu", "octaves stability"),
    ],
)
def test_a_narrow_terminal_cuts_nothing(command, heads, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "20")
    done = run(*command.split())
    assert done.code == 0
    assert set(heads.split()) <= set(done.out.split())
    cut = [line for line in done.out.splitlines() if "…" in line and not line.startswith("…")]
    assert not cut


def test_an_ensemble_names_what_it_maximised(run):
    command = "ensemble example:karate --runs 2 --device cpu --objective cpm --resolution 0.1"
    assert "CPM " in run(*command.split()).out
    found = run(*command.split(), "--json").json["consensus"]
    assert (found["objective"], found["value"] > 1) == ("cpm", True)


def test_a_library_that_finds_no_room_is_want_of_memory():
    error = OSError("Could not find/load shared object file 'libllvmlite.so'")
    error.__cause__ = OSError("libllvmlite.so: failed to map segment from shared object")
    assert message_and_code(error, {}) == message_and_code(MemoryError(), {})
