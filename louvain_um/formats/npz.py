"""NumPy archives: a SciPy sparse matrix, or arrays ``u``, ``v`` and perhaps ``n``, ``w``."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from louvain_um.errors import GraphError
from louvain_um.formats.source import Source
from louvain_um.graph import Graph

if TYPE_CHECKING:
    from louvain_um.formats.edgelist import ReadOptions


def read(source: Source, options: ReadOptions) -> Graph:
    """Read a NumPy archive."""
    try:
        # The file itself where it can be sought in: an archive need not be held twice.
        with np.load(source.seekable(), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, KeyError) as error:
        raise source.error(
            f"is no readable .npz archive ({str(error).splitlines()[0] if str(error) else error});"
            " fetch or save it again, without pickled objects"
        ) from None
    try:
        if {"u", "v"} <= arrays.keys():
            return _edges(arrays, options)
        if "indptr" in arrays or "format" in arrays:
            from louvain_um.formats.sparse import from_sparse

            return from_sparse(_matrix(source), options)
    except GraphError as error:
        raise source.error(str(error)) from None
    raise source.error(
        f"holds the arrays {', '.join(arrays) or '(none)'}; a graph is u and v (n, w if need "
        "be), or what scipy.sparse.save_npz writes"
    )


def _edges(arrays: dict[str, Any], options: ReadOptions) -> Graph:
    n = int(arrays["n"]) if "n" in arrays else None
    w = arrays.get("w") if options.weighted is not False else None
    if options.weighted and w is None:
        raise GraphError("has no array w to take weights from; drop weighted=True (--weighted)")
    return Graph.from_edges(
        arrays.pop("u"),
        arrays.pop("v"),
        w,
        n_vertices=n,
        duplicates=options.duplicates,
        names=arrays.get("names"),
    )


def _matrix(source: Source) -> Any:
    from scipy.sparse import load_npz

    return load_npz(source.seekable())
