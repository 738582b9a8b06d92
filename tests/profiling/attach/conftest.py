"""A stand-in driver, a program linked against it, and the environment in which both run."""

import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.paths import ROOT

HERE = Path(__file__).parent


FORKS = """
import json, os, sys
import louvain_um.cli.commands.attach, louvain_um.profiling.attach.program
from louvain_um.__main__ import main
for line in sys.stdin:
    words, folder, variables, *streams = json.loads(line)
    child = os.fork()
    if not child:
        for number, name in enumerate([os.devnull, *streams]):
            os.dup2(os.open(name, os.O_RDWR), number)
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(folder)
        sys.argv[1:] = words
        main()
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Runs commands in children of a process that has imported what each would import for itself."""


class StandIn(NamedTuple):
    """Folder of the library, the program, and variables under which they are found."""

    folder: Path
    program: Path
    variables: dict[str, str]
    forks: subprocess.Popen[str] | None = None

    def attach(self, *arguments: object, before: str = "", timeout=60, cwd=None):
        """Run `louvain-um attach` with arguments; `before`, in Python, runs that command."""
        words = ["attach", *map(str, arguments)]
        if before or self.forks is None:
            command = [sys.executable, *(["-c", before, sys.executable] if before else [])]
            return subprocess.run(
                [*command, "-m", "louvain_um", *words], env=self.variables, check=False, cwd=cwd,
                capture_output=True, text=True, timeout=timeout,
            )  # fmt: skip
        streams = [self.folder / "stdout", self.folder / "stderr"]
        for each in streams:
            each.write_text("")
        where = str(cwd or Path.cwd())
        print(json.dumps([words, where, self.variables, *map(str, streams)]), file=self.forks.stdin)
        self.forks.stdin.flush()
        assert select.select([self.forks.stdout], [], [], timeout)[0], f"over {timeout} s"
        code = int(self.forks.stdout.readline())
        return subprocess.CompletedProcess(words, code, *(each.read_text() for each in streams))


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory):
    """Compile the stand-in once per session."""
    compiler = shutil.which("gcc")
    if not compiler:
        pytest.skip("needs gcc")
    made = made_in(tmp_path_factory.mktemp("stand-in"), compiler)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", FORKS], env=made.variables, **pipes) as forks:
        yield made._replace(forks=forks)
        forks.stdin.close()


def made_in(folder, compiler="gcc"):
    """Compile the stand-in in a folder."""
    driver, program = folder / "libcuda.so.1", folder / "app"
    shared = ["-shared", "-fPIC", "-pthread", "-Wl,-soname,libcuda.so.1"]
    for command in (
        [*shared, str(HERE / "stand_in.c"), "-o", str(driver), "-ldl"],
        ["-g", str(HERE / "app.c"), str(driver), "-o", str(program), "-pthread"],
        [
            "-g",
            "-no-pie",
            str(HERE / "app.c"),
            str(driver),
            "-o",
            str(folder / "fixed"),
            "-pthread",
        ],
    ):
        subprocess.run([compiler, *command], check=True, capture_output=True)
    variables = os.environ | {
        "LD_LIBRARY_PATH": str(folder), "LOUVAIN_UM_CUPTI": str(driver),
        "LOUVAIN_UM_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    return StandIn(folder, program, variables)
