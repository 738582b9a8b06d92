"""The cache of compiled CPU kernels, and a faster import of Numba."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def folder() -> Path:
    """Return the cache folder: NUMBA_CACHE_DIR, the package's folder or the user's cache."""
    from louvain_um.cpu import move

    kernel: Any = move.sweep
    return Path(kernel._cache.cache_path)


def compiled() -> bool:
    """Return whether the slowest kernel to compile is in the cache, for its current source."""
    from louvain_um.cpu import move

    kernel: Any = move.sweep
    line = kernel.py_func.__code__.co_firstlineno
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    return any(folder().glob(f"move.sweep-{line}.{python}*.nbi"))


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
