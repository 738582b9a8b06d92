"""NumPy archives: a SciPy sparse matrix, or arrays ``u``, ``v`` and perhaps ``n``, ``w``."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import load_npz

from louvain_um.errors import GraphError
from louvain_um.formats.objects.sparse import from_sparse
from louvain_um.formats.optional_dependencies import first_line
from louvain_um.formats.read_options import ReadOptions
from louvain_um.formats.source import Source
from louvain_um.graph.graph import Graph

ZIP_MAGIC = b"PK"

NAMED = 8
"""Arrays that an error names, of an archive that is no graph."""


def read(source: Source, options: ReadOptions) -> Graph:
    """Read a NumPy archive."""
    matrix = None
    if source.peek(2) != ZIP_MAGIC:
        # NumPy would take it for a pickle, and tell how to load one.
        raise source.error("is no .npz archive; fetch or save it again")
    try:
        # The file itself where it can be sought in: an archive need not be held twice.
        with np.load(source.seekable(), allow_pickle=False) as archive:
            found = set(archive.files)
            arrays = {
                name: archive[name] for name in ("n", "u", "v", "w", "names") if name in found
            }
        if "format" in found and not {"u", "v"} <= found:
            matrix = load_npz(source.seekable())
    except Exception as error:  # a damaged archive fails in more ways than can be listed
        raise source.error(
            f"is no readable .npz archive ({first_line(error)}); fetch or save it again, without "
            "pickled objects"
        ) from None
    try:
        if matrix is not None:
            return from_sparse(matrix, options)
        if {"u", "v"} <= found:
            return _edges(arrays, options)
    except GraphError as error:
        raise source.error(str(error)) from None
    if "header" in found:  # of this package's own archives; no graph has one
        raise source.error(
            "is a session or a recording, no graph; louvain-um report and simulate read it"
        )
    named = sorted(found)
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    raise source.error(
        f"holds the arrays {', '.join(named[:NAMED]) or '(none)'}{more}; a graph is u and v "
        "(n, w if need be), or what scipy.sparse.save_npz writes"
    )


def _edges(arrays: dict[str, Any], options: ReadOptions) -> Graph:
    n = None
    if "n" in arrays:
        if arrays["n"].size != 1 or arrays["n"].dtype.kind not in "iu" or arrays["n"].min() < 0:
            raise GraphError("n must be one whole number of at least 0")
        n = int(arrays["n"].reshape(())[()])
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
