"""Build wheel and source distribution; install them into empty environments, and try them.

    python benchmarks/supply.py [--pythons 3.11,3.12,3.13] [--tests PATH …] [--out FILE]

Needs uv (``pip install uv``), which finds the interpreters, and a package index. For each Python
the wheel is installed twice, with the oldest and with the newest releases of its dependencies that
have wheels, and once from the source distribution. Each environment runs the commands of README and
a part of the test suite, away from the checkout. `pyproject.toml` names the oldest releases that
passed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import HERE, machine, save

ROOT = HERE.parent

TESTS = (
    "tests/formats/test_files.py", "tests/formats/objects/test_objects.py",
    "tests/formats/objects/test_tables.py", "tests/formats/test_write.py",
    "tests/formats/labels", "tests/graph", "tests/results", "tests/cli/commands/test_detect.py",
    "tests/interop/test_networkx_backend.py", "tests/interop/test_estimator.py",
)  # fmt: skip

COMMANDS = (
    "louvain-um --version",
    "louvain-um detect example:les-miserables -o labels.parquet",
    "louvain-um detect example:les-miserables --method leiden --json",
    "louvain-um plan --vertices 1000000 --arcs 20000000 --machine h200",
    "louvain-um generate rmat 10 -o g.mtx.gz",
    "louvain-um profile g.mtx.gz -o run.npz",
    "louvain-um report run.npz -o run.html",
    "louvain-um doctor",
)

WATCHED = ("numpy", "scipy", "numba", "typer", "rich", "pandas", "pyarrow", "networkx", "igraph",
           "scikit-learn", "jinja2", "matplotlib")  # fmt: skip


def run(*command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, env=kept | environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def must(*command: object, cwd: Path, **environment: str) -> str:
    done = run(*command, cwd=cwd, **environment)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}")
    return done.stdout


def build(folder: Path) -> tuple[Path, Path]:
    """Return a new wheel, made from the source distribution, and that."""
    source = folder / "source"
    source.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", source], input=archive, check=True)
    must("uv", "build", "--out-dir", folder / "dist", source, cwd=folder)
    (wheel,) = (folder / "dist").glob("*.whl")
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    return wheel, sdist


def attempt(
    python: str, package: Path, resolution: str, tests: list[str], folder: Path
) -> dict[str, Any]:
    """Install a distribution into an empty environment; return versions and what failed."""
    home = folder / f"{python}-{resolution}-{package.suffix[1:]}"
    place = home / "bin"
    row: dict[str, Any] = {"python": python, "resolution": resolution, "package": package.name}
    must("uv", "venv", "-q", "--python", python, home, cwd=folder)
    target = {"VIRTUAL_ENV": str(home)}
    # Resolved for the project itself: a wheel's own requirements would not count as direct.
    pinned = home / "pinned.txt"
    done = run(
        "uv", "pip", "compile", "-q", "--resolution", resolution, "--only-binary", ":all:",
        "--python", home / "bin" / "python", "--output-file", pinned,
        *("--extra", "formats", "--extra", "report", "--extra", "charts"), ROOT / "pyproject.toml",
        cwd=folder,
    )  # fmt: skip
    if not done.returncode:
        done = run("uv", "pip", "install", "-q", "-r", pinned, cwd=folder, **target)
    if not done.returncode:
        done = run("uv", "pip", "install", "-q", "--no-deps", package, cwd=folder, **target)
    if done.returncode:
        return row | {"failed": [f"install: {done.stdout[-1500:]}"]}
    shown = must("uv", "pip", "list", "--format", "json", cwd=folder, **target)
    listed = json.loads(next(line for line in shown.splitlines() if line.startswith("[")))
    row["versions"] = {p["name"]: p["version"] for p in listed if p["name"] in WATCHED}
    work = home / "work"
    work.mkdir()
    cache = {"NUMBA_CACHE_DIR": str(home / "cache")}
    failed = []
    for command in COMMANDS:
        done = run(place / command.split()[0], *command.split()[1:], cwd=work, **cache)
        if done.returncode:
            failed.append(f"{command}: {done.stdout[-1500:]}")
    if tests and not failed:
        must("uv", "pip", "install", "-q", "pytest>=8", "hypothesis", cwd=folder, **target)
        shutil.copytree(ROOT / "tests", work / "tests", ignore=shutil.ignore_patterns("__pyc*"))
        (work / "pytest.ini").write_text(
            "[pytest]\npythonpath = .\nmarkers =\n    gpu: x\n    alone: x\n"
        )
        # What older releases of SciPy import themselves is no concern of the package.
        skipped = ("-k", "not nothing_is_imported")
        done = run(place / "python", "-m", "pytest", "-q", *skipped, *tests, cwd=work, **cache)
        row["tests"] = done.stdout.strip().splitlines()[-1]
        if done.returncode:
            failed.append(done.stdout[-3000:])
    return row | {"failed": failed}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pythons", default="3.11,3.12,3.13")
    parser.add_argument("--resolutions", default="lowest-direct,highest")
    parser.add_argument("--tests", nargs="*", default=list(TESTS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, sdist = build(folder)
        for python in options.pythons.split(","):
            for resolution in options.resolutions.split(","):
                results.append(attempt(python, wheel, resolution, options.tests, folder))
                print(json.dumps(results[-1]), flush=True)
        newest = options.pythons.split(",")[-1]
        results.append(attempt(newest, sdist, "highest", [], folder))
        print(json.dumps(results[-1]), flush=True)
    save("supply", {"machine": machine(), "environments": results}, options.out)
    return min(1, sum(len(row["failed"]) for row in results))


if __name__ == "__main__":
    sys.exit(main())
