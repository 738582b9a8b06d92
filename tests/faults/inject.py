"""Run a command of the command line again and again, with each of its system calls failing once.

    LD_PRELOAD=fault.so python -m tests.faults.inject [--most N] [--stay] KINDS FOLDER COMMAND …

`fault.c` fails the k-th allocation, read, write, flush, rename or thread start. The
command runs in a forked child for every k, so that kernels are compiled and modules imported once.
It must end as if nothing had failed, or with one line that says what to do; its output file must
be whole or absent; nothing may stay open. Prints one line of JSON for each fault that was not
handled so, and a last one with the number of faults.
"""

import argparse
import ctypes
import gc
import json
import os
import shutil
import signal
import sys
import traceback
from functools import partial
from pathlib import Path

from louvain_um.cli import exit_codes, main
from louvain_um.core import parallel

KINDS = {"allocation": 1, "read": 2, "write": 3, "flush": 4, "rename": 5, "thread": 6}

LEAST_BYTES = 4096
"""Smallest allocation that fails: Python's own small objects come from larger pieces."""

OUTPUT = "OUT"
"""Stands for the output file in a command."""

CHILD_SECONDS = 60

NEVER = 1 << 40
"""A call that does not happen."""


def command_line(words):
    sys.argv = ["louvain-um", *words]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def start_threads():
    """Start the threads of a run: Python waits for ever for one that lacks memory to begin."""
    threads = parallel.default_threads()
    if threads > 1:
        parallel._started_pool(os.getpid(), threads - 1)
        list(parallel.stream(abs, range(threads + 2), threads))


def complaint_problem(text):
    """Return what is wrong about the stderr of a command that failed, "" if nothing is."""
    lines = [
        line
        for line in text.splitlines()
        if not line.startswith("note: ") and "compiling" not in line
    ]
    if len(lines) != 1 or not lines[0].startswith("louvain-um: "):
        return f"not one line: {text[-2000:]!r}"
    if "bug" in lines[0] or "; " not in lines[0]:
        return f"no remedy: {lines[0]}"
    return ""


class Child:
    """What happens in a forked child: one run with one fault."""

    def __init__(self, folder, words, same):
        self.folder, self.same = folder, same
        self.out = folder / "output" / next((w for w in words if w.startswith(OUTPUT)), OUTPUT)
        self.words = [str(self.out) if w.startswith(OUTPUT) else w for w in words]

    def run(self, kind, k, stay):
        library = ctypes.CDLL(None)
        library.fault_seen.argtypes = [ctypes.c_long]
        library.fault_seen.restype = library.fault_disarm.restype = ctypes.c_long
        library.fault_arm.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_int, ctypes.c_size_t]
        shutil.rmtree(self.out.parent, ignore_errors=True)
        self.out.parent.mkdir()
        for stream, name in ((1, "stdout"), (2, "stderr")):
            file = os.open(self.folder / name, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            os.dup2(file, stream)
            os.close(file)
        opened = os.listdir("/proc/self/fd")
        signal.alarm(CHILD_SECONDS)  # what hangs is ended
        if kind == KINDS["allocation"]:
            start_threads()
        entered = exit_codes.warnings_as_notes

        def arm(*, quiet):
            library.fault_arm(kind, k, stay, LEAST_BYTES)
            return entered(quiet=quiet)

        # With the command's own work: the parser of its arguments aborts without memory.
        exit_codes.warnings_as_notes = arm
        code = command_line(self.words)
        fired = library.fault_disarm()
        gc.collect()
        left = [name for name in os.listdir("/proc/self/fd") if name not in opened]
        seen = library.fault_seen(k)
        problem = self.problem(code, left)
        return {"k": k, "fired": fired, "seen": seen, "code": code, "problem": problem}

    def problem(self, code, left):
        present = sorted(path.name for path in self.out.parent.iterdir())
        if any(name != self.out.name for name in present):
            return f"files left: {present}"
        held = [target for name in left if (target := _target(name)) and "/output/" in target]
        if held:
            return f"open files left: {held}"
        if code == 0:
            good = self.same(self.out) if self.out.name != OUTPUT else True
            return "" if good else "another result"
        if present and not self.same(self.out):
            return "half a file, or another result"
        return complaint_problem((self.folder / "stderr").read_text())


def _target(descriptor):
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""


def in_child(work):
    """Return what a function returns in a forked child, or how the child ended."""
    near, far = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(near)
        try:
            result = work()
        except BaseException:
            result = {"fired": 1, "problem": traceback.format_exc()}
        os.write(far, json.dumps(result).encode())
        os._exit(0)
    os.close(far)
    with open(near, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if text:
        return dict(json.loads(text))
    return {"fired": 1, "problem": f"ended with status {status}"}


def inject(kinds, folder, words, most, stay):
    """Let every call of each kind fail, or `most`, spread evenly; return number and problems.

    The first runs, without a fault, compile and import what the command needs, and show what it
    writes.
    """
    child = Child(folder, words, lambda _: True)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    for _ in range(2):
        shutil.rmtree(child.out.parent, ignore_errors=True)
        child.out.parent.mkdir()
        assert command_line(child.words) == 0
    expected = child.out.read_bytes() if child.out.is_file() else b""
    profiles = words[0] == "profile"  # it writes times, too
    child.same = lambda path: _is_session(path) if profiles else path.read_bytes() == expected
    problems, faults = [], 0
    gc.collect()
    gc.freeze()  # collections in children would copy every page
    for kind in kinds:
        # Which allocations are reused varies a little from run to run.
        counted = in_child(partial(child.run, KINDS[kind], NEVER, False))
        calls = int(str(counted["seen"]))
        chosen = range(calls) if most is None else range(0, calls, -(-calls // most) or 1)
        for k in chosen:
            result = in_child(partial(child.run, KINDS[kind], k, stay))
            faults += bool(result["fired"])
            if result["problem"]:
                problems.append({"kind": kind, "k": k, **result})
    return faults, problems


def _is_session(path):
    from louvain_um.profiling import load

    return bool(load(path).phases)


def cli():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", help=f"of {', '.join(KINDS)}, separated by commas, or all")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most", type=int)
    parser.add_argument("--stay", action="store_true")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    out = os.fdopen(os.dup(1), "w")
    kinds = list(KINDS) if options.kinds == "all" else options.kinds.split(",")
    faults, problems = inject(kinds, options.folder, options.words, options.most, options.stay)
    for problem in problems:
        print(json.dumps(problem), file=out)
    print(json.dumps({"faults": faults, "problems": len(problems)}), file=out, flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(cli())
