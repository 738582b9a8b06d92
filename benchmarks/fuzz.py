"""Read randomly changed files for some time; report those that raise anything but an error.

    python benchmarks/fuzz.py --seconds 600 [--bounds] [--out FILE]

Half of the time goes to graphs and labels: seeds are `tests/corpus`, which also keeps what was
found. The other half goes to saved files: sessions, recordings, traces, sweeps, policies, machine
profiles, trackers and timed edges.
``--bounds`` compiles every kernel anew with bounds checks, into a cache of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bounds", action="store_true", help="compile with bounds checks")
    parser.add_argument("--out", type=Path, help="add the counts to this record")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-found"))
    options = parser.parse_args()
    if options.bounds:
        with tempfile.TemporaryDirectory() as cache:
            environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": cache}
            command = [arg for arg in sys.argv if arg != "--bounds"]
            return subprocess.run([sys.executable, *command], env=environment).returncode
    texts, found = fuzz(options.seconds / 2, options.seed, options.keep)
    saved, others = fuzz_saved(options.seconds / 2, options.seed, options.keep)
    if options.out:
        counts = {"graphs_and_labels": texts, "saved_files": saved, "failures": found + others}
        record(options.out, counts, os.environ.get("NUMBA_BOUNDSCHECK") == "1")
    return min(found + others, 1)


def record(file: Path, counts: dict[str, int], bounds: bool) -> None:
    """Add the counts of this run to those of earlier ones."""
    from common import machine, save

    runs = json.loads(file.read_text())["runs"] if file.exists() else []
    save("fuzz", {"machine": machine(), "runs": [*runs, counts | {"bounds": bounds}]}, file)


def fuzz(seconds: float, seed: int, keep: Path) -> tuple[int, int]:
    """Read changed files; keep those that fail in a new way; return how many were read and kept."""
    from tests.formats.noise import CORPUS, changed, files_of, read_all

    seeds = [path for path in files_of(CORPUS) if path.is_file()]
    chance = random.Random(seed)
    found: set[str] = set()
    count, end = 0, time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            path = chance.choice(seeds)
            copy = Path(folder, path.parent.name, path.name)
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(changed(path.read_bytes(), chance))
            count += 1
            try:
                read_all(copy, chance)
            except Exception as error:
                what = f"{type(error).__name__} {path.suffix} {str(error)[:40]}"
                if what not in found:
                    found.add(what)
                    kept = keep / path.parent.name / f"{len(found)}_{path.name}"
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    kept.write_bytes(copy.read_bytes())
                    print(f"{what}: {kept}", flush=True)
    print(f"{count} files, {len(found)} failures", flush=True)
    return count, len(found)


def fuzz_saved(seconds: float, seed: int, keep: Path) -> tuple[int, int]:
    """Do the same with saved files."""
    from tests.saved.saved_files import damaged, failure_of, saved_files

    found: set[str] = set()
    count = 0
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as work:
        files = list(saved_files(Path(whole)))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for saved in files:
                failure = failure_of(saved, seed, Path(work))
                count += 1
                if failure is not None and failure not in found:
                    found.add(failure)
                    path = damaged(saved, seed, Path(work))
                    kept = keep / "saved" / f"{len(found)}_{path.name}"
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    (shutil.copytree if path.is_dir() else shutil.copy)(path, kept)
                    print(f"{saved.name}, seed {seed}: {failure}: {kept}", flush=True)
            seed += 1
    print(f"{count} saved files, {len(found)} failures", flush=True)
    return count, len(found)


if __name__ == "__main__":
    sys.exit(main())
