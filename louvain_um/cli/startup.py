"""What a process does first: return freed arrays to the system, import Numba faster."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

MMAP_THRESHOLD: Final = -3
"""M_MMAP_THRESHOLD of mallopt."""

LARGE: Final = 1 << 22
"""Bytes from which each array gets a memory mapping of its own: more than a block of a text takes,
since each new mapping is cleared by the system, while the other threads wait."""


def mmap_large_arrays() -> bool:
    """Make malloc use mmap for every large array; return whether the C library accepted.

    glibc starts with a threshold of 128 KiB, but raises it up to 32 MiB as mapped blocks are
    freed. Smaller arrays then come from the heap, whose gaps are not returned to the system: a
    fifth of the peak on graphs of a few million arcs.
    """
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE))
    return False


def folder() -> Path:
    """Return the cache folder: NUMBA_CACHE_DIR, the package's folder or the user's cache."""
    from louvain_um.cpu import move

    kernel: Any = move.run_sweep
    return Path(kernel._cache.cache_path)


def compiled() -> bool:
    """Return whether the slowest kernel to compile is in the cache, for its current source."""
    from louvain_um.cpu import move

    kernel: Any = move.run_sweep
    line = kernel.py_func.__code__.co_firstlineno
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    return any(folder().glob(f"move.run_sweep-{line}.{python}*.nbi"))


def import_numba() -> None:
    """Import Numba without SciPy's BLAS, which no kernel here calls, to start sooner.

    While `arraymath` is imported, it asks `ensure_blas` whether `numpy.dot` can be compiled.
    """
    if "numba.np.arraymath" in sys.modules:
        return
    from numba.np import linalg

    module: Any = linalg
    check = module.ensure_blas
    module.ensure_blas = _no_blas
    try:
        import numba.np.arraymath  # noqa: F401  # imported for its side effects
    finally:
        module.ensure_blas = check


def _no_blas() -> None:
    raise ImportError("louvain-um compiles nothing that calls BLAS")
