"""Does a killed command leave torn files? Kills every command at random moments.

    python benchmarks/kill.py [--moments 200] [--fresh 40] [--commands detect,sweep] [--out FILE]

Each run gets one of SIGINT, SIGTERM, SIGHUP and SIGKILL at a moment between its start and its usual
end. `--fresh` of the moments are in a separate process, most of which imports modules. The others
are in a child forked from a process that has run the command: its signals are reset, it runs the
command line's entry point, and its moments are those of the command's work. Its output must be
absent, that of before, or whole. After the three signals that a program can handle nothing else may
be left, nor anything in the folder of temporary files; after SIGKILL nothing next to the output
once the command has been repeated. No traceback may be shown, no process may be left, and the exit
code must be that of the signal, or 0 if the command had ended.
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ctypes.util import find_library
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from common import HERE, kept, machine, save

sys.path.insert(0, str(HERE.parent))
from tests.profiling.attach.conftest import made_in

COMMANDS = {
    "detect": "detect GRAPH -o OUT.csv",
    "replace": "detect GRAPH --method leiden --force -o OUT.npz",
    "json": "detect GRAPH --json",
    "convert": "convert GRAPH OUT.mtx.gz",
    "parquet": "convert GRAPH OUT.parquet",
    "generate": "generate lfr 3000 -o OUT.txt",
    "compare": "compare LABELS LABELS",
    "plan": "plan GRAPH",
    "profile": "profile GRAPH -o OUT.npz",
    "report": "report SESSION -o OUT.html",
    "simulate": "simulate GRAPH --policies base,adv2 --oversubscription 30",
    "sweep": "sweep GRAPH --machine p4000 --policies base,adv2 --oversubscription 0,30 -o OUT",
    "doctor": "doctor",
    "ranks": "plan ranks 4 --vertices 1000000 --arcs 20000000",
    "draw": "draw GRAPH -o OUT.html",
    "ensemble": "ensemble GRAPH --runs 3 -o OUT.csv",
    "bfs": "run bfs GRAPH --source 0 -o OUT.json",
    "pagerank": "run pagerank GRAPH -o OUT.json",
    "stream": "stream TIMED --every 400 -o OUT",
    "resolution": "resolution GRAPH --points 4 --runs 1 -o OUT",
    "stores": "stores GRAPH --batch 100 --steps 1 -o OUT",
    "trace": "report SESSION --trace OUT.json",
    "charts": "report SESSION --charts OUT",
    "replay": "simulate GRAPH --policies base --oversubscription 30 -o OUT.json",
    "picture": "draw GRAPH -o OUT.svg",
    "sssp": "run sssp GRAPH --source 0 -o OUT.json",
    "forest": "run mst GRAPH -o OUT.parquet",
    "components": "run components GRAPH -o OUT.json",
    "triangles": "run triangles GRAPH -o OUT.json",
    "product": "run spmv GRAPH -o OUT.json",
    "gexf": "convert GRAPH OUT.gexf",
    "graphml": "detect GRAPH -o OUT.graphml",
    "session": "simulate GRAPH --policies base --oversubscription 30 --session OUT.npz",
    "parts": "profile GRAPH -o OUT.parquet",
    "drawn": "draw GRAPH -o OUT.png",
    "cluster": "detect GRAPH --cluster local:2 -o OUT.csv",
    "rows": "detect GRAPH --cluster local:2 --labels-folder OUT",
    "checkpoint": "detect GRAPH --cluster local:2 --checkpoint OUT",
    "attach": "attach -o OUT.npz -- APP several",
    "images": "warmup --architecture 90 --into OUT",
    "warmup": "warmup",
    "calibrate": "calibrate -o OUT.json",
}
"""Words in capitals stand for files; OUT… is what the command writes."""

FOLDERS = (
    "sweep", "stream", "resolution", "stores", "checkpoint", "images", "warmup",
)  # fmt: skip
"""Commands that write a folder, from which they resume when they are repeated."""

UNFORKABLE = ("cluster", "rows", "checkpoint", "attach", "images", "warmup", "calibrate")
"""Commands whose threads do not survive a fork, or whose variables are read at a process's start:
every moment is in a separate process."""

LASTING = {"images": 10.0, "warmup": 20.0, "calibrate": 20.0}
"""Commands that compile or measure for long, and the seconds in which each is killed. Those that
write a folder resume from what is there. They are repeated to their end after the last moment."""

VARIABLES: dict[str, dict[str, str]] = {
    "warmup": {"NUMBA_CACHE_DIR": "OUT", "LOUVAIN_UM_CACHE": "OUT"},
    "images": {"LOUVAIN_UM_CACHE": "OUT"},
}
"""Of the environment, by command."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)

START_SECONDS = 0.25
"""The interpreter's start, during which it does not handle signals as the program would."""

FORK_SECONDS = 0.005
"""A forked child's start, before it runs the command."""

MARK = "LOUVAIN_UM_KILLED_IN"
"""A variable of the environment that shows which processes belong to a command."""

Start = Callable[[list[str], Path, float | None, int], tuple[int, str]]
"""Starts a command; see `run`."""


@dataclass
class Outcome:
    """What was seen of one command."""

    moments: int = 0
    endings: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def as_from_a_terminal() -> None:
    """Handle signals as a shell's foreground commands do, whatever this process ignores."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def run(words: list[str], folder: Path, when: float | None, number: int) -> tuple[int, str]:
    """Run a command, and send it a signal after some seconds; return exit code and stderr."""
    process = subprocess.Popen(
        [sys.executable, "-m", "louvain_um", *words],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(HERE.parent),
            "LOUVAIN_UM_THREADS": "2",
            "PYTHONFAULTHANDLER": "1",
            "TMPDIR": str(temporary(folder)),
            MARK: str(folder),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=as_from_a_terminal,
    )
    if when is not None:
        try:
            process.wait(when)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
    try:
        _, err = process.communicate(timeout=120 if when is not None else 1800)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        return 999, process.communicate()[1]
    end = time.monotonic() + 60
    while (left := living(folder)) and time.monotonic() < end:
        time.sleep(0.05)
    return process.returncode, f"{err}Traceback: process {left} is left" if left else err


def temporary(folder: Path) -> Path:
    """Return the folder of temporary files of commands."""
    path = folder / "tmp"
    path.mkdir(exist_ok=True)
    return path


def emptied(folder: Path) -> None:
    """Remove temporary files of killed processes, as the system does."""
    for path in temporary(folder).iterdir():
        shutil.rmtree(path, ignore_errors=True)


def living(folder: Path) -> list[str]:
    """Return the processes of a command that have not ended, or that nobody has waited for."""
    mark, found = f"{MARK}={folder}".encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(process.name)
    return found


def command_line(words: list[str]) -> int:
    """Run a command in this process; return its exit code."""
    from louvain_um.__main__ import main

    sys.argv = ["louvain-um", *words]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def forked(words: list[str], folder: Path, when: float | None, number: int) -> tuple[int, str]:
    """Do as `run` in a child of this process, which has imported and compiled everything."""
    messages = folder / "stderr"
    child = os.fork()
    if child == 0:
        code = 128 + signal.SIGINT  # as the interpreter ends before the command begins
        begun = False
        try:
            as_from_a_terminal()
            os.chdir(folder)
            null, err = (
                os.open(os.devnull, os.O_WRONLY),
                os.open(messages, os.O_CREAT | os.O_WRONLY | os.O_TRUNC),
            )
            os.dup2(null, 1), os.dup2(err, 2)
            faulthandler.enable()
            begun = True
            code = command_line(words)
        except BaseException as error:
            if begun or not isinstance(error, KeyboardInterrupt):
                code = 255
                traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    end = time.monotonic() + (120 if when is None else when)
    sent = when is None
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), messages.read_text()
        if time.monotonic() >= end:
            os.kill(child, signal.SIGABRT if sent else number)
            if sent:
                os.waitpid(child, 0)
                return 999, messages.read_text()
            sent, end = True, time.monotonic() + 120
        time.sleep(0.001)


def whole(path: Path) -> bool:
    """Return whether a file reads as its kind, to the end."""
    import louvain_um as lu
    from louvain_um.formats.labels import read_labels
    from louvain_um.profiling import load

    readers: dict[str, Callable[[Path], object]] = {
        ".csv": read_labels,
        ".gz": lu.read_graph,
        ".txt": lu.read_graph,
        ".gexf": lu.read_graph,
        ".graphml": lu.read_graph,
        ".parquet": lu.read_graph,
        ".html": lambda p: p.read_text().index("</html>"),
        ".json": lambda p: json.loads(p.read_text()),
        ".svg": ElementTree.parse,
        ".png": lambda p: p.read_bytes().rindex(b"IEND"),
        "": whole_folder,
    }
    try:
        if path.is_dir() and path.suffix:
            load(path)
        elif path.suffix != ".npz":
            readers[path.suffix](path)
        elif b"header" in path.read_bytes():
            load(path)
        else:
            read_labels(path)
    except Exception:
        return False
    return True


def whole_folder(path: Path) -> None:
    """Raise an error for a file that does not read as its kind."""
    from pyarrow.parquet import read_table

    from louvain_um.gpu.runtime.compile_cache import parse

    for file in path.rglob("*.pdf"):
        file.read_bytes().rindex(b"%%EOF")
    for file in path.rglob("*.image"):
        assert parse(file.read_bytes())
    for file in path.rglob("*.nb[ic]"):
        content = file.read_bytes()
        assert hashlib.sha256(content[32:]).digest() == content[:32]
    for file in path.glob("*.parquet"):
        assert read_table(file).num_rows


def judge(
    name: str, code: int, err: str, number: int, early: bool, out: Path, old: bytes | None
) -> str:
    """Return what is wrong about an ending, "" if nothing is."""
    if code == 999:
        return f"hangs: {err[-3000:]}"  # where, as `faulthandler` says on SIGABRT
    expected = {0, 128 + number, -number}
    if code not in expected and not early:
        return f"exit code {code}: {err[-500:]}"
    if "Traceback" in err and not early:
        return err[-1500:]
    if "SystemError" in err:
        return err[-500:]
    left = sorted(p.name for p in out.parent.iterdir() if p.name != out.name)
    left += [p.name for p in temporary(out.parents[1]).iterdir()]
    if left and number != signal.SIGKILL:
        return f"left {left}"
    if not out.exists():
        return "" if old is None else "the old file is gone"
    if old is not None and out.read_bytes() == old:
        return ""
    return "" if whole(out) else f"{out.name} is torn"


def resumed(name: str, words: list[str], folder: Path, out: Path, start: Start) -> str:
    """Repeat a command that was killed; return what is wrong, "" if it finishes."""
    force = [] if name in FOLDERS else ["--force"]
    emptied(folder)
    end = words.index("--") if "--" in words else len(words)  # of the command's own options
    code, err = start([*words[:end], *force, *words[end:]], folder, None, 0)
    if code:
        return f"cannot be repeated: {err[-500:]}"
    left = [path.name for path in out.parent.rglob("*") if path.name.endswith(".part")]
    left += [path.name for path in temporary(folder).iterdir()]
    if left:
        return f"still left {left}"
    if name != "sweep":
        return ""
    rows = (out / "results.csv").read_text().count("\n")
    return "" if rows == 5 else f"{rows - 1} rows of 4"


def kill(
    name: str, moments: int, fresh: int, seed: int, places: dict[str, str], folder: Path
) -> Outcome:
    """Run a command whole, then `moments` times with a signal."""
    chance = random.Random(f"{name} {seed}")
    out = folder / name / next((w for w in COMMANDS[name].split() if w.startswith("OUT")), "OUT")
    words = [
        str(out) if word.startswith("OUT") else places.get(word, word)
        for word in COMMANDS[name].split()
    ]
    variables = {k: v.replace("OUT", str(out)) for k, v in VARIABLES.get(name, {}).items()}
    os.environ.update(variables)
    outcome = Outcome()
    old = None
    for start, count in ((run, fresh), (forked, moments - fresh)):
        if not count:
            continue
        seconds = LASTING.get(name, 0.0)
        if name in LASTING:
            (out if name in FOLDERS else out.parent).mkdir(parents=True)
        for turn in () if name in LASTING else range(3):  # the first compiles, or imports
            shutil.rmtree(out.parent, ignore_errors=True)
            out.parent.mkdir()
            begin = time.monotonic()
            if start is forked and turn == 0:
                with hidden():
                    code, err = command_line(words), ""
            else:
                code, err = start(words, folder, None, 0)
            seconds = time.monotonic() - begin
            assert code == 0, err
        old = out.read_bytes() if name == "replace" else None
        for moment in range(count):
            emptied(folder)
            if not (name in LASTING and name in FOLDERS):
                shutil.rmtree(out.parent)
                out.parent.mkdir()
            if old is not None:
                out.write_bytes(old)
            number = SIGNALS[moment % len(SIGNALS)]
            when = chance.uniform(0, 1.02 * seconds)
            code, err = start(words, folder, when, number)
            early = when < (START_SECONDS if start is run else FORK_SECONDS)
            problem = judge(name, code, err, number, early, out, old)
            again = name in FOLDERS or ("OUT" in COMMANDS[name] and number == signal.SIGKILL)
            turn = moment == count - 1 if name in LASTING else moment % 8 < 4
            if not problem and again and turn:
                problem = resumed(name, words, folder, out, start)
            outcome.moments += 1
            outcome.endings["ended before" if code == 0 else number.name] += 1
            if problem:
                kind = "forked, " * (start is forked)
                outcome.problems.append(f"{kind}{number.name} after {when:.3f} s: {problem}")
                print(f"{name}: {outcome.problems[-1]}", flush=True)
    for variable in variables:
        del os.environ[variable]
    return outcome


@contextmanager
def hidden() -> Iterator[None]:
    """Hide what is printed."""
    kept = os.dup(1), os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1), os.dup2(null, 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept[0], 1), os.dup2(kept[1], 2)
        for file in (*kept, null):
            os.close(file)


def inputs(folder: Path) -> dict[str, str]:
    """Write a graph, labels and a session."""
    import louvain_um as lu
    from louvain_um.generators import lfr

    graph = lfr(3000, seed=1).graph
    lu.write_graph(folder / "g.csv", graph)
    lu.louvain(graph, device="cpu").save(folder / "labels.npz")
    lu.profile(graph, device="cpu").save(folder / "session.npz")
    ends = graph.targets[:2000].reshape(-1, 2).tolist()
    lines = (f"{u} {v} {time}" for time, (u, v) in enumerate(ends))
    (folder / "timed.txt").write_text("\n".join(lines))
    if shutil.which("gcc"):
        VARIABLES["attach"] = dict(made_in(folder).variables.items() - os.environ.items())
    files = {"APP": "app", "GRAPH": "g.csv", "LABELS": "labels.npz", "SESSION": "session.npz",
             "TIMED": "timed.txt"}  # fmt: skip
    return {word: str(folder / name) for word, name in files.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=200, help="of each command")
    parser.add_argument("--fresh", type=int, default=40, help="of them in a separate process")
    usual = [name for name in COMMANDS if name != "calibrate" or find_library("cuda")]
    parser.add_argument("--commands", default=",".join(usual))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    os.environ["LOUVAIN_UM_THREADS"] = "2"
    results, bad = kept("kill", options.out).get("commands", {}), 0
    with tempfile.TemporaryDirectory() as folder:
        places = inputs(Path(folder))
        for name in options.commands.split(","):
            fresh = options.moments if name in UNFORKABLE else options.fresh
            found = kill(name, options.moments, fresh, options.seed, places, Path(folder))
            bad += len(found.problems)
            results[name] = {
                "moments": found.moments, "endings": found.endings, "problems": found.problems
            }  # fmt: skip
            print(name, json.dumps(results[name]), flush=True)
            if options.out:
                about = {"machine": machine(), "seed": options.seed}
                save("kill", about | {"commands": results}, options.out)
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
