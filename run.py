#!/usr/bin/env python3
"""Run a command in the project's own environment, which is created on first use.

    python3 run.py louvain-um detect example:les-miserables
    python3 run.py pytest

The environment is the folder `.venv` next to this file. For `louvain-um`, it has the package and
the libraries for reading files, pages and pictures; for every other command (pytest, ruff, mypy …)
also the developer tools. Needs Python 3.11 or newer with pip or ensurepip, and a package index.
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
USER = "formats,report,charts"
PYTHON = SCRIPTS / ("python.exe" if os.name == "nt" else "python")


def main(command: list[str]) -> int:
    """Set up the environment if necessary, run `command` in it, return its exit code."""
    if sys.version_info < (3, 11):
        found = ".".join(map(str, sys.version_info[:3]))
        return fail(f"Python 3.11 or newer is required, not {found}; try python3.12 run.py …")
    if not command or command[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if command else 2
    extra = USER if command[0] == "louvain-um" else "dev"
    try:
        prepare(extra)
    except (OSError, subprocess.CalledProcessError) as error:
        return fail(f"the environment could not be set up: {error}")
    paths = os.pathsep.join([str(SCRIPTS), os.environ.get("PATH", "")])
    environment = {**os.environ, "VIRTUAL_ENV": str(ENVIRONMENT), "PATH": paths}
    program = next((str(p) for p in SCRIPTS.glob(f"{command[0]}*") if p.stem == command[0]), None)
    if program is None:
        return fail(f"the environment {ENVIRONMENT} has no command {command[0]}")
    if os.name != "nt":
        os.execve(program, [program, *command[1:]], environment)
    return subprocess.call([program, *command[1:]], env=environment)


def prepare(extra: str) -> None:
    """Create the environment and install the project with `extra`, unless done before."""
    state = hashlib.sha256((HERE / "pyproject.toml").read_bytes())
    state.update(f"{sys.version} {HERE}".encode())
    stamps = {name: ENVIRONMENT / f"installed-{name}" for name in (USER, "dev")}
    done = [name for name, stamp in stamps.items() if read_text(stamp) == state.hexdigest()]
    if PYTHON.exists() and (extra in done or "dev" in done):
        return
    print_line(f"setting up {ENVIRONMENT.name} (once; a minute or two) …")
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
    # Optional: lets `pip` in the activated environment be its own.
    succeeds([*pip, "install", "--disable-pip-version-check", "pip"])


def installer() -> list[str]:
    """Return the command for pip: that of this Python, or the copy of ensurepip."""
    outer = [sys.executable, "-m", "pip", "--python", str(PYTHON)]
    if succeeds([*outer, "--version"]):
        return outer
    if succeeds([str(PYTHON), "-m", "ensurepip"]):
        return [str(PYTHON), "-m", "pip"]
    raise OSError("this Python has no pip (on Debian: apt install python3-venv)")


def succeeds(command: list[str]) -> bool:
    """Run a command without output; return whether it succeeded."""
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def read_text(path: Path) -> str | None:
    """Return a file's text, None if the file does not exist."""
    return path.read_text() if path.exists() else None


def print_line(text: str) -> None:
    """Print a line on stderr."""
    print(text, file=sys.stderr, flush=True)


def fail(text: str) -> int:
    """Print an error; return the exit code."""
    print_line(f"run.py: {text}")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
