"""Do the tests pass with the oldest dependencies that are declared, the newest, and the next?

    python benchmarks/supply.py oldest|newest|next [--folder FOLDER] [ARGUMENTS OF PYTEST ...]

Makes an environment in FOLDER (a temporary one by default), installs what is committed with the
extra `test` there, every dependency in the lowest version that is declared and exists, or in the
newest, and runs pytest in it. `next` takes releases of `EARLY` that are not yet final, too, and may
fail: it says so, and ends with 0. Prints the versions that were taken.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]

EXTRA = "test"

EARLY = ("numba", "llvmlite", "numpy")
"""What compiles kernels, and CuPy where there is a driver."""


def declared(extra: str | None, project: dict) -> Iterator[str]:
    """Yield the requirements of the project with an extra, those of other extras included."""
    listed = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    for text in listed:
        inner = re.fullmatch(r"louvain-um\[(.*)\]", text)
        if inner:
            for name in inner[1].split(","):
                yield from declared(name, project)
        else:
            yield text


def lowest(python: Path, text: str) -> str:
    """Return a requirement in the lowest version that exists."""
    wanted = Requirement(text.partition(";")[0])
    command = [python, "-m", "pip", "index", "versions", wanted.name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    listed = re.search(r"Available versions: (.*)", done.stdout)
    assert listed, done.stdout
    given = [text for text in listed[1].split(", ") if re.fullmatch(r"[\d.]+", text)]
    return f"{wanted.name}=={min(wanted.specifier.filter(given), key=Version)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", choices=["oldest", "newest", "next"])
    parser.add_argument("--folder", type=Path)
    options, words = parser.parse_known_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        python, tree = folder / "bin" / "python", folder / "tree"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            limits = folder / "limits.txt"
            texts = [*declared(None, project), *declared(EXTRA, project)]
            pinned = {lowest(python, text) for text in texts} if options.which == "oldest" else ()
            limits.write_text("\n".join(pinned))
            print(*sorted(pinned), sep="\n", flush=True)
            packed = subprocess.run(["git", "-C", ROOT, "archive", "HEAD"], stdout=-1, check=True)
            tree.mkdir()
            subprocess.run(["tar", "-x", "-C", tree], input=packed.stdout, check=True)
            install = [python, "-m", "pip", "install", "-q", "--upgrade", "-c", limits]
            early = [f"{name}>=0.dev0" for name in EARLY if options.which == "next"]
            if early and find_library("cuda"):
                early.append("cupy-cuda13x>=0.dev0")
            subprocess.run([*install, *early, "-e", f"{tree}[{EXTRA}]"], check=True)
            if options.which != "oldest":
                subprocess.run([python, "-m", "pip", "list", "--format=freeze"], check=True)
        environment = os.environ | {"PATH": f"{python.parent}:{os.environ['PATH']}"}
        test = [python, "-m", "pytest", "-q", *words]
        if options.which == "oldest":  # old libraries call what newer ones that they need deprecate
            test += ["-W", "ignore::DeprecationWarning"]
        code = subprocess.run(test, cwd=tree, env=environment).returncode
        if code and options.which == "next":
            print(f"pytest ended with {code}, as it may with releases that are not final")
            return 0
        return code


if __name__ == "__main__":
    sys.exit(main())
