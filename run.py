#!/usr/bin/env python3
"""Run a command in the project's own environment, which is made on first use.

    python3 run.py louvain-um detect example:les-miserables
    python3 run.py pytest

The environment lies in `.venv` beside this file. `louvain-um` needs the package and the
libraries that read files; every other command (pytest, ruff, mypy …) the tools of a developer
as well. Needs Python 3.11 or newer, with pip or venv's own copy of it, and a package index to
install from.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE / ".venv"
SCRIPTS = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")
PYTHON = SCRIPTS / ("python.exe" if os.name == "nt" else "python")


def main(command: list[str]) -> int:
    """Set the environment up if need be, run `command` in it, return its exit code."""
    if sys.version_info < (3, 11):
        found = ".".join(map(str, sys.version_info[:3]))
        return fail(f"Python 3.11 or newer is needed, this is {found}; try python3.12 run.py …")
    if not command or command[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if command else 2
    extra = "formats,report" if command[0] == "louvain-um" else "dev"
    try:
        prepare(extra)
    except (OSError, subprocess.CalledProcessError) as error:
        return fail(f"the environment could not be set up: {error}")
    paths = os.pathsep.join([str(SCRIPTS), os.environ.get("PATH", "")])
    environment = {**os.environ, "VIRTUAL_ENV": str(ENVIRONMENT), "PATH": paths}
    program = next((str(p) for p in SCRIPTS.glob(f"{command[0]}*") if p.stem == command[0]), None)
    if program is None:
        return fail(f"{command[0]} is no command of the environment {ENVIRONMENT}")
    if os.name != "nt":
        os.execve(program, [program, *command[1:]], environment)
    return subprocess.call([program, *command[1:]], env=environment)


def prepare(extra: str) -> None:
    """Make the environment and install the project with `extra`, unless that is done."""
    state = hashlib.sha256((HERE / "pyproject.toml").read_bytes())
    state.update(f"{sys.version} {HERE}".encode())
    stamps = {name: ENVIRONMENT / f"installed-{name}" for name in ("formats,report", "dev")}
    done = [name for name, stamp in stamps.items() if content(stamp) == state.hexdigest()]
    if PYTHON.exists() and (extra in done or "dev" in done):
        return
    say(f"setting up {ENVIRONMENT.name} (once; about a minute) …")
    if not done:
        subprocess.run(
            [sys.executable, "-m", "venv", "--clear", "--without-pip", str(ENVIRONMENT)], check=True
        )
    install(f"{HERE}[{extra}]")
    stamps[extra].write_text(state.hexdigest())


def install(requirement: str) -> None:
    """Install into the environment."""
    arguments = ["install", "--quiet", "--disable-pip-version-check", "--editable", requirement]
    pip = installer()
    subprocess.run([*pip, *arguments], check=True)
    # So that `pip` is the environment's own once it is activated; all else works without.
    works([*pip, "install", "--disable-pip-version-check", "pip"])


def installer() -> list[str]:
    """Return how to call pip: the one of this Python, or Python's spare copy."""
    borrowed = [sys.executable, "-m", "pip", "--python", str(PYTHON)]
    if works([*borrowed, "--version"]):
        return borrowed
    if works([str(PYTHON), "-m", "ensurepip"]):
        return [str(PYTHON), "-m", "pip"]
    raise OSError("this Python has no pip (on Debian: apt install python3-venv)")


def works(command: list[str]) -> bool:
    """Run a command unseen; say whether it succeeded."""
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def content(path: Path) -> str | None:
    """Return a file's text, None where there is no such file."""
    return path.read_text() if path.exists() else None


def say(text: str) -> None:
    """Tell the user what takes its time."""
    print(text, file=sys.stderr, flush=True)


def fail(text: str) -> int:
    """Say in one line what went wrong; return the exit code."""
    say(f"run.py: {text}")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
