"""Compiled kernels on disk, one file per image; a cache that cannot be used never fails a run."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from louvain_um.core import private_files
from louvain_um.gpu.runtime.nvrtc import Image

__all__ = ["cache_folder", "load", "save"]


def cache_folder() -> Path:
    """Return the folder of compiled kernels: LOUVAIN_UM_CACHE or the user's cache folder."""
    chosen = os.environ.get("LOUVAIN_UM_CACHE")
    if chosen:
        return Path(chosen) / "kernels"
    home = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "louvain-um" / "kernels"


def load(file: Path) -> Image | None:
    """Return a cached image, or None if there is none or the file is damaged or not private."""
    with suppress(ValueError, KeyError, TypeError):
        head, _, code = (private_files.read(file) or b"").partition(b"\n")
        entry = json.loads(head)
        if entry["sha256"] == hashlib.sha256(code).hexdigest():
            return Image(code, entry["names"])
    return None


def save(file: Path, image: Image) -> None:
    """Write an image for later processes; a full or read-only disk is no error."""
    entry = {"sha256": hashlib.sha256(image.code).hexdigest(), "names": dict(image.names)}
    with suppress(OSError):
        private_files.write(file, json.dumps(entry).encode() + b"\n" + image.code)
