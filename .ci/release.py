"""Use the wheel and the sdist in empty environments, and list the licences that come with them.

    python .ci/release.py [--python python3.11 ...] [-o dist]

Builds both, installs each with what it requires and nothing else into a new environment of every
Python given (by default those of 3.11 to 3.14 that are on the path), and runs README's first
command, `doctor`, and detection with NMI, ARI and AMI there. Writes `sbom.json` next to them: name,
version and licence of every package that the wheel with its extras would install. Ends with 1 and
the reason if anything fails, also where an extra cannot be resolved; this is the release's check
(CONTRIBUTING.md).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = tuple(f"python3.{minor}" for minor in range(11, 15))

FIRST = "6 communities, modularity 0.5658"
"""What README's first command prints."""

CHECK = """
import louvain_um as lu
r = lu.louvain(lu.read_graph("example:karate"), device="cpu")
found = r.compare(lu.leiden(r.graph, device="cpu"))
assert 0 < found.nmi <= 1 and 0 < found.ari <= 1 and 0 < found.ami <= 1
"""

LIBRARY = """
import ctypes
from louvain_um.profiling.attach.program import PREBUILT
ctypes.CDLL(str(PREBUILT)).InitializeInjection
"""

EXTRAS = "formats,report,charts,cluster,mpi,cuda13"
"""What the SBOM covers, besides what the package always needs."""


def output(*command: str | Path) -> str:
    """Run a command outside the checkout; return what it prints, or end with its last lines."""
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, cwd=tempfile.gettempdir(),
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )  # fmt: skip
    if done.returncode:
        text = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{text}")
    return done.stdout


def build(folder: Path) -> list[Path]:
    """Build the sdist, and the wheel from it; return both."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as work:
        environment = Path(work, "env")
        output(sys.executable, "-m", "venv", environment)
        python = environment / "bin" / "python"
        output(python, "-m", "pip", "install", "-q", "build")
        output(python, "-m", "build", "--outdir", folder, ROOT)
    return sorted(folder.iterdir())


def check(archive: Path, python: str) -> None:
    """Install an archive into an empty environment and use it."""
    with tempfile.TemporaryDirectory() as work:
        environment = Path(work, "env")
        output(python, "-m", "venv", environment)
        there = environment / "bin"
        output(there / "python", "-m", "pip", "install", "-q", archive)
        found = output(there / "louvain-um", "detect", "example:les-miserables", "--device", "cpu")
        if FIRST not in found:
            raise SystemExit(f"README's first command prints\n{found}\nwithout {FIRST!r}")
        output(there / "louvain-um", "doctor")
        if archive.suffix == ".whl" and shutil.which("cc") and sys.platform == "linux":
            output(there / "python", "-c", LIBRARY)
        output(there / "python", "-c", CHECK)


def licences(wheel: Path, python: str) -> list[dict[str, str]]:
    """Return name, version and licence of what a wheel with its extras would install."""
    with tempfile.TemporaryDirectory() as work:
        environment, report = Path(work, "env"), Path(work, "report.json")
        output(python, "-m", "venv", environment)
        pip = (environment / "bin" / "python", "-m", "pip", "install", "-q")
        output(*pip, "--upgrade", "pip")  # older ones report no licence expressions
        wanted = f"louvain-um[{EXTRAS}] @ {wheel.as_uri()}"
        output(*pip, "--dry-run", "--report", report, wanted)
        listed = [each["metadata"] for each in json.loads(report.read_text())["install"]]
    return sorted(
        (
            {"name": each["name"], "version": each["version"], "licence": licence(each)}
            for each in listed
        ),
        key=lambda each: each["name"].lower(),
    )


def licence(about: dict[str, Any]) -> str:
    """Return a package's licence in one line: its expression, its classifiers or its text."""
    classes = [
        each.rpartition(" :: ")[2] for each in about.get("classifier", ()) if "License" in each
    ]
    text = (about.get("license") or "").strip().splitlines() or [""]
    return about.get("license_expression") or ", ".join(classes) or text[0]


def answers(python: str) -> bool:
    """Return whether an interpreter is there and runs; a version manager's link may not."""
    found = shutil.which(python)
    return bool(found) and not subprocess.run([python, "-c", ""], capture_output=True).returncode


def release_problems() -> list[str]:
    """Return what of the project's texts does not fit the version."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    problems = []
    for name, pattern in (
        ("CHANGELOG.md", rf"^## {re.escape(version)}\b"),
        ("CITATION.cff", rf"^version: {re.escape(version)}$"),
        ("louvain_um/version.py", rf'"{re.escape(version)}"'),
    ):
        if not re.search(pattern, (ROOT / name).read_text("utf-8"), re.MULTILINE):
            problems.append(f"{name} does not name version {version}")
    return problems


def main() -> None:
    """Build, check and list."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", nargs="+", help="interpreters; those on the path by default")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist")
    given = parser.parse_args()
    if problems := release_problems():
        raise SystemExit("\n".join(problems))
    given.output = given.output.resolve()  # commands run elsewhere
    archives = build(given.output)
    for python in given.python or filter(answers, PYTHONS):
        for archive in archives:
            check(archive, python)
            print(f"{archive.name} works with {python}")
    wheel = next(each for each in archives if each.suffix == ".whl")
    listed = licences(wheel, sys.executable)
    (given.output / "sbom.json").write_text(json.dumps(listed, indent=1) + "\n", "utf-8")
    print(f"{len(listed)} packages in the SBOM")
    print(f"written to {given.output}")


if __name__ == "__main__":
    main()
