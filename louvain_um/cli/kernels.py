"""Whether the CPU's kernels are compiled already, and where Numba keeps them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

BLAS: Final = "scipy.linalg.cython_blas"


def folder() -> Path:
    """Return the folder of the cache: NUMBA_CACHE_DIR, the package's own, or the user's."""
    from louvain_um.cpu import move

    kernel: Any = move.sweep
    return Path(kernel._cache.cache_path)


def compiled() -> bool:
    """Return whether the longest kernel to compile is in the cache, as its source is now."""
    from louvain_um.cpu import move

    kernel: Any = move.sweep
    line = kernel.py_func.__code__.co_firstlineno
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    return any(folder().glob(f"move.sweep-{line}.{python}*.nbi"))


def import_numba() -> None:
    """Import what of Numba every kernel needs, without the BLAS that none of ours calls.

    Numba looks for SciPy's as it is imported, a sixth of a second: more than small graphs take.
    """
    if BLAS in sys.modules or "numba.np.arraymath" in sys.modules:
        return
    hidden: dict[str, Any] = sys.modules
    hidden[BLAS] = None
    try:
        import numba.np.arraymath  # noqa: F401  # it is imported for what it keeps
    finally:
        del hidden[BLAS]
