"""A stand-in driver, a program linked against it, and the environment in which both run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.paths import ROOT

HERE = Path(__file__).parent


class StandIn(NamedTuple):
    """Folder of the library, the program, and variables under which they are found."""

    folder: Path
    program: Path
    variables: dict[str, str]

    def attach(self, *arguments: object, before: str = "", **options):
        """Run `louvain-um attach` with arguments; `before`, in Python, runs that command."""
        command = [sys.executable, "-m", "louvain_um", "attach", *map(str, arguments)]
        if before:
            command = [sys.executable, "-c", before, *command]
        options = {"capture_output": True, "text": True, "timeout": 60} | options
        return subprocess.run(command, env=self.variables, check=False, **options)


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory):
    """Compile the stand-in once per session."""
    compiler = shutil.which("gcc")
    if not compiler:
        pytest.skip("needs gcc")
    return made_in(tmp_path_factory.mktemp("stand-in"), compiler)


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
