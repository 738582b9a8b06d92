"""A digest of all that decides labels: ranks and checkpoints of other versions differ in it."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

FOLDERS: Final = ("core", "cpu", "gpu", "distributed")
SUFFIXES: Final = (".py", ".cu", ".cuh")


@cache
def version_digest() -> str:
    """Return a digest of the sources of rules, level loop, kernels and exchanges."""
    root, total = Path(__file__).parent.parent, hashlib.sha256()
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in SUFFIXES:
                total.update(file.relative_to(root).as_posix().encode())
                total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()[:16]
