"""Exit codes of failures: devices, interrupts, disks, pipes, bugs."""

import errno
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import louvain_um as lu
from louvain_um import api
from louvain_um.errors import DeviceUnavailableError, MemoryBudgetError
from louvain_um.events import Event
from louvain_um.options import Options
from tests.cli.failures.processes import COMMAND, start


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (DeviceUnavailableError("no GPU here; use --device cpu"), 3, "no GPU here"),
        (MemoryBudgetError(2**30, 2**20), 1, "needs 1,024 MiB"),
        (MemoryBudgetError(5000, 100, [("labels", 4800)]), 1, "100 bytes it may use (largest: la"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "the disk is full"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "out of memory"),
        (OSError(errno.EACCES, "Permission denied", "a.txt"), 1, "a.txt: permission denied"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 1, "the other end of a connection ended"),
        (ConnectionResetError("by peer"), 1, "check the processes there, and run again"),
    ],
)
def test_errors_become_one_line(run, two_triangles, tmp_path, monkeypatch, error, code, message):
    def fail(*_):
        raise error

    monkeypatch.setattr(api, "run", fail)
    done = run("detect", two_triangles, "-o", tmp_path / "labels.csv")
    assert done.code == code
    assert message in done.complaint()
    assert not (tmp_path / "labels.csv").exists()


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("command", "work"),
    [
        ("sweep", "louvain_um.profiling.sweep.run.sweep"),
        ("stores", "louvain_um.analysis.store_comparison.compare_stores"),
        ("resolution", "louvain_um.analysis.resolution.resolution_profile"),
    ],
)
def test_what_goes_on_says_so(run, two_triangles, tmp_path, monkeypatch, command, work, force):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(work, stop)
    more = ["--force"] if force else []
    done = run(command, two_triangles, "-o", tmp_path / "out", *more)
    without = " without --force" if force else ""
    expected = f"louvain-um: interrupted; repeat the command{without} to continue"
    assert (done.code, done.complaint()) == (130, expected)


@pytest.mark.system
def test_no_writable_cache(two_triangles):
    code = (
        "from numba.core import caching\n"
        "caching.CacheImpl._locator_classes = []\n"
        "from louvain_um.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "detect", str(two_triangles)], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith("louvain-um: compiled code cannot be cached")
    assert "set NUMBA_CACHE_DIR" in done.stderr


def test_bugs_are_reported_with_a_traceback_on_request(run, two_triangles, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("oops\nand more")

    monkeypatch.setattr(api, "run", fail)
    done = run("detect", two_triangles)
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert "this is a bug; run again with -v" in done.err
    assert "Traceback" in run("detect", two_triangles, "-v").err


def test_no_device_is_never_silently_the_cpu(run, two_triangles, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    done = run("detect", two_triangles, "--device", "cuda:77")
    assert done.code == 3
    assert done.complaint()


def test_compiling_is_announced(run, two_triangles, monkeypatch):
    real = api.run

    def announce(graph, options, observer):
        observer(Event(kind="start", phase="compile"))
        observer(Event(kind="end", phase="compile"))
        return real(graph, options, observer)

    monkeypatch.setattr(api, "run", announce)
    assert run("detect", two_triangles).err.count("compiling kernels for the first time") == 1
    assert run("detect", two_triangles, "-q").err == ""


def test_compiling_is_not_counted_in_the_time_shown(run, two_triangles, monkeypatch):
    real = api.run

    def compile_first(graph, options, observer):
        observer(Event(kind="start", phase="compile"))
        time.sleep(0.3)
        observer(Event(kind="end", phase="compile"))
        result = real(graph, options, observer)
        return replace(result, timings={**result.timings, "total": result.timings["total"] + 0.3})

    real(lu.read_graph(two_triangles), Options())  # compiles everything needed
    monkeypatch.setattr(api, "run", compile_first)
    done = run("detect", two_triangles, "-v")
    assert float(re.search(r"([\d.]+) s on", done.out)[1]) < 0.25
    assert re.search(r"seconds: .* \(including 0\.3\d\d s to compile, first run only\)", done.out)
    assert (
        "note: compiling took 0.3 s, on the first run only; the time shown excludes it" in done.err
    )
    assert run("detect", two_triangles, "--json").json["seconds"]["detect"] < 0.25


@pytest.mark.system
def test_compiling_is_announced_when_the_cache_is_empty(tmp_path):
    # A command that needs few kernels: all of a detection take long to compile.
    command = [*COMMAND, "generate", "stencil", "3x3", "--force", "-o", str(tmp_path / "out.npz")]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    message = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr
        for _ in range(2)
    ]
    assert [text.count("compiling kernels for the first time") for text in message] == [1, 0]


def test_no_more_threads(run, two_triangles, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(api, "run", fail)
    done = run("detect", two_triangles, "-o", tmp_path / "labels.csv")
    assert done.code == 1
    assert done.complaint().endswith("close other programs, or pass --threads 1")


@pytest.mark.system
@pytest.mark.parametrize("command", ["detect", "doctor"])
def test_numba_that_compiles_nothing(two_triangles, command):
    arguments = [two_triangles] if command == "detect" else []
    process = start(command, *arguments, env={**os.environ, "NUMBA_DISABLE_JIT": "1"})
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.count("\n") == 1
    assert "NUMBA_DISABLE_JIT is set" in err
    assert err.strip().endswith("unset it")


@pytest.mark.system
@pytest.mark.parametrize("arguments", [["--json", "-q"], ["-q"], ["--help"]])
def test_a_closed_pipe_ends_a_command_as_it_ends_other_programs(two_triangles, arguments):
    read, write = os.pipe()
    os.close(read)
    process = start("detect", two_triangles, *arguments, stdout=write)
    os.close(write)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (141, "")


@pytest.mark.system
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [["--help"], ["detect", "GRAPH", "--json", "-q"]])
def test_full_disk_behind_stdout(two_triangles, arguments):
    with open("/dev/full", "w") as full:
        process = start(*(a.replace("GRAPH", str(two_triangles)) for a in arguments), stdout=full)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert err.strip() == "louvain-um: the disk is full; free some space or write to another place"


@pytest.mark.system
@pytest.mark.parametrize(
    ("arguments", "closing", "code", "message"),
    [
        ("detect -", "<&-", 1, "<stdin>: is empty"),
        ("detect GRAPH -q", ">&-", 0, ""),
        ("detect missing.txt", "2>&-", 1, ""),
    ],
)
def test_closed_streams(two_triangles, arguments, closing, code, message):
    command = shlex.join([*COMMAND, *arguments.replace("GRAPH", str(two_triangles)).split()])
    done = subprocess.run(f"{command} {closing}", shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "bug" not in done.stderr


@pytest.mark.system
def test_names_that_the_terminal_cannot_show(tmp_path):
    path = tmp_path / "stra\u00dfe.csv"
    path.write_text("\u00e4,b\nb,c\n", encoding="utf-8")
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    process = start("detect", path, stdout=subprocess.PIPE, env=ascii_only)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "stra\\xdfe.csv" in out
    process = start(
        "convert", path, tmp_path / "\u00df.npz", "--json", stdout=subprocess.PIPE, env=ascii_only
    )
    out, _ = process.communicate(timeout=120)
    assert json.loads(out)["file"].endswith("\u00df.npz")


@pytest.mark.system
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


@pytest.mark.system
@pytest.mark.skipif(shutil.which("unshare") is None, reason="hides a file system")
@pytest.mark.parametrize("options", [["--threads", "2"], ["--cluster", "local:2"]])
def test_shared_memory_of_the_system_is_not_needed(two_triangles, options):
    hide = "mount -t tmpfs -o size=4k,mode=000 none /dev/shm"
    if subprocess.run(["unshare", "-m", "sh", "-c", hide], capture_output=True).returncode:
        pytest.skip("only root can hide /dev/shm")
    words = shlex.join([*COMMAND, "detect", str(two_triangles), "--json", *options])
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f"{hide} && exec {words}"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["communities"]


@pytest.mark.system
@pytest.mark.skipif(sys.platform != "linux", reason="addresses are limited by the shell")
def test_a_command_ends_however_few_addresses_there_are(tmp_path):
    command = shlex.join([sys.executable, "-m", "louvain_um", "draw", "example:les-miserables"])
    compiling = shlex.split(f"{command} -o {tmp_path}/first.svg")
    subprocess.run(compiling, capture_output=True, check=True)
    for limit, code in ((430_000, 1), (800_000, 0)):
        words = f"ulimit -v {limit}; exec {command} -o {tmp_path}/{limit}.svg"
        done = subprocess.run(
            ["bash", "-c", words], capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr.count("\n")) == (code, code), done.stderr
