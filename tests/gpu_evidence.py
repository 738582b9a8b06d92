"""What the tests on a device ran on: a digest of every file that could change their result."""

from __future__ import annotations

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EVIDENCE = ROOT / "tests/gpu/evidence.json"


def source_digest() -> str:
    """Return a digest of the CUDA engine's files and of its tests."""
    total = hashlib.sha256()
    for folder in ("louvain_um/gpu", "tests/gpu"):
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in (".py", ".cu", ".cuh"):
                text = file.read_text(encoding="utf-8")
                total.update(f"{file.relative_to(ROOT).as_posix()}\0{text}\0".encode())
    return total.hexdigest()
