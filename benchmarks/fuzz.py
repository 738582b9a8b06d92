"""Does any damaged file raise anything but an error? Reads randomly changed files for some time.

    python benchmarks/fuzz.py --seconds 600 [--kinds graphs,labels] [--bounds] [--out FILE]

Graphs and labels are those of `tests/corpus`, which also keeps what was found. The others are saved
files (sessions, recordings, traces, sweeps, policies, machine profiles, trackers, timed edges), the
folders in which an interrupted run resumes (checkpoints of ranks, streams, searches over
resolutions, comparisons of stores), and tables of other programs. Every kind is damaged as bytes
and inside its archive, JSON, table or database. A reader that takes longer is called less often.
``--bounds`` compiles every kernel anew with bounds checks, into a separate cache.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


LONGEST_SECONDS = 120
"""Of a processor, to read one file; the first ones compile."""

PLACES = re.compile(r"/\S*|\d+|'[^']*'")
"""What does not make a failure a new one: paths, numbers and quoted text."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="", help="of files, such as graphs,labels,anndata")
    parser.add_argument("--bounds", action="store_true", help="compile with bounds checks")
    parser.add_argument("--out", type=Path, help="add the counts to this record")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-found"))
    options = parser.parse_args()
    if options.bounds:
        with tempfile.TemporaryDirectory() as cache:
            environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": cache}
            command = [arg for arg in sys.argv if arg != "--bounds"]
            return subprocess.run([sys.executable, *command], env=environment).returncode
    faulthandler.enable()  # a crash says where it was
    signal.signal(signal.SIGPROF, too_long)
    files, failures = fuzz(options.seconds, options.seed, options.keep, options.kinds)
    if options.out:
        bounds = os.environ.get("NUMBA_BOUNDSCHECK") == "1"
        record(options.out, {"files": files, "failures": failures, "bounds": bounds})
    return min(failures, 1)


def record(file: Path, run: dict[str, Any]) -> None:
    """Add the counts of this run to those of earlier ones."""
    from common import machine, save

    runs = json.loads(file.read_text())["runs"] if file.exists() else []
    save("fuzz", {"machine": machine(), "runs": [*runs, run]}, file)


@dataclass
class Target:
    """A whole file and what reads damaged copies of it; `read` returns the copy and a failure."""

    kind: str
    name: str
    read: Callable[[int, Path], tuple[Path, str | None]]
    files: int = 0
    seconds: float = 0.0

    @property
    def cost(self) -> float:
        """What the next target is chosen by: slow ones are read less often."""
        return self.seconds + 0.0005 * self.files


def texts() -> Iterator[Target]:
    """Yield graphs and labels of the corpus."""
    from tests.formats.noise import CORPUS, changed_file, files_of, read_all

    def reader(path: Path) -> Callable[[int, Path], tuple[Path, str | None]]:
        def read(seed: int, folder: Path) -> tuple[Path, str | None]:
            chance = random.Random(f"{path.name} {seed}")
            copy = folder / path.parent.name / path.name
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(changed_file(path, chance))
            try:
                read_all(copy, chance)
            except Exception as error:
                return copy, f"{type(error).__name__}: {error}"
            return copy, None

        return read

    for path in files_of(CORPUS):
        yield Target(path.parent.name, path.name, reader(path))


def saved(folder: Path) -> Iterator[Target]:
    """Yield saved files, folders in which a run resumes, and tables of other programs."""
    from tests.saved.continued import continued
    from tests.saved.saved_files import Saved, failure_of, saved_files

    def reader(of: Saved) -> Callable[[int, Path], tuple[Path, str | None]]:
        def read(seed: int, folder: Path) -> tuple[Path, str | None]:
            failure = failure_of(of, seed, folder)
            return folder / of.whole.name, failure

        return read

    for of in (*saved_files(folder), *continued(folder)):
        yield Target(of.name.removeprefix("report ").split()[0], of.name, reader(of))


def fuzz(seconds: float, seed: int, keep: Path, kinds: str = "") -> tuple[dict[str, int], int]:
    """Read damaged files; keep those that fail in a new way; return files by kind, and failures."""
    found: set[str] = set()
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as work:
        targets = [*texts(), *saved(Path(whole))]
        if kinds:
            targets = [target for target in targets if target.kind in kinds.split(",")]
        end = time.monotonic() + seconds
        while (begin := time.monotonic()) < end:
            target = min(targets, key=lambda target: target.cost)
            number = chance.getrandbits(40)
            signal.setitimer(signal.ITIMER_PROF, LONGEST_SECONDS)
            copy, failure = target.read(number, Path(work))
            signal.setitimer(signal.ITIMER_PROF, 0)
            target.files += 1
            target.seconds += time.monotonic() - begin
            if failure is None or (what := f"{target.kind} {PLACES.sub('', failure)}") in found:
                continue
            found.add(what)
            kept = keep / target.kind / f"{len(found)}_{copy.name}"
            kept.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if copy.is_dir() else shutil.copy)(copy, kept)
            print(f"{target.name}, seed {number}: {failure}: {kept}", flush=True)
    counts = Counter[str]()
    for target in targets:
        counts[target.kind] += target.files
    slow = sorted(targets, key=lambda target: -target.seconds / max(target.files, 1))[:5]
    shown = ", ".join(f"{t.name} {t.seconds / max(t.files, 1) * 1e3:.0f} ms" for t in slow)
    print(f"{sum(counts.values()):,} files, {len(found)} failures; slowest: {shown}", flush=True)
    return dict(counts), len(found)


def too_long(*_: object) -> None:
    """Report a reader that does not end."""
    raise TimeoutError(f"takes more than {LONGEST_SECONDS} s")


if __name__ == "__main__":
    sys.exit(main())
