"""Read randomly changed files for some time; report those that raise anything but an error.

    python benchmarks/fuzz.py --seconds 600 --bounds

Seeds are `tests/corpus`, which also keeps what was found. ``--bounds`` compiles every kernel anew
with bounds checks, into a cache of its own.
"""

from __future__ import annotations

import argparse
import os
import random
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
    parser.add_argument("--keep", type=Path, default=Path("fuzz-found"))
    options = parser.parse_args()
    if options.bounds:
        with tempfile.TemporaryDirectory() as cache:
            environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": cache}
            command = [arg for arg in sys.argv if arg != "--bounds"]
            return subprocess.run([sys.executable, *command], env=environment).returncode
    return fuzz(options.seconds, options.seed, options.keep)


def fuzz(seconds: float, seed: int, keep: Path) -> int:
    """Read changed files; keep those that fail in a new way, and return how many."""
    from tests.formats.noise import CORPUS, changed, read_all

    seeds = [path for path in sorted(CORPUS.rglob("*")) if path.is_file()]
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
    print(f"{count} files, {len(found)} failures")
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main())
