"""Neighbours as graphs: matrices of nearest ones, and cells of an AnnData, given communities."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from louvain_um.errors import GraphError, OptionError, Uncertain
from louvain_um.formats.ids import name_array
from louvain_um.formats.matrices import from_sparse
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.results.partition import Result

ROUNDING: Final = 1e-10
"""Difference of a symmetric matrix and its transpose, relative to its largest entry."""

UNION: Final = (
    "the matrix is not symmetric, as of nearest neighbours: a pair counts if either is a "
    "neighbour of the other"
)


def without_rounding(matrix: Any, tolerance: float = ROUNDING) -> Any:
    """Return a real matrix that is symmetric but for rounding as its mean with its transpose."""
    if matrix.dtype.kind != "f" or matrix.shape[0] != matrix.shape[1] or not matrix.nnz:
        return matrix
    difference = abs(matrix - matrix.T).max()
    if not 0 < difference <= tolerance * abs(matrix).max():
        return matrix
    return (matrix + matrix.T) / 2


def is_nearest(matrix: Any) -> bool:
    """Return whether a sparse matrix lists as many neighbours of each vertex, not both ways."""
    n = matrix.shape[0]
    if n != matrix.shape[1] or not matrix.nnz:
        return False
    rows = matrix.tocsr()
    if len(np.unique(np.diff(rows.indptr))) > 1:
        return False
    listed = _pattern(rows)
    return bool((listed != listed.T).nnz)


def united(matrix: Any) -> tuple[Any, str]:
    """Return the union of a matrix with its transpose, and a note.

    Weights up to 1 are shares: a + b − ab, as UMAP and scanpy unite them; of larger ones the
    larger counts. scikit-learn also lists each vertex as its neighbour, which counts nothing: with
    1, or at distance 0. Distances say the opposite of weights, so that each neighbour counts 1.
    """
    rows = matrix.tocsr().astype(np.float64)
    note: str = UNION
    if rows.nnz and (_pattern(rows).diagonal() > 0).all():
        if (rows.diagonal() == 0).all():
            rows.data[:] = 1
            note = Uncertain(f"{UNION}; its distances are not weights, so each counts 1")
        rows.setdiag(0)
        rows.eliminate_zeros()
    if rows.nnz and not 0 <= rows.data.min() <= rows.data.max() <= 1:
        return rows.maximum(rows.T), f"{UNION}, with the larger of two weights"
    return rows + rows.T - rows.multiply(rows.T), note


def _pattern(rows: Any) -> Any:
    """Return where a matrix has entries, zeros included."""
    from scipy.sparse import csr_array

    ones = np.ones(len(rows.data), np.int8)
    found = csr_array((ones, rows.indices, rows.indptr), shape=rows.shape)
    found.sum_duplicates()
    return found


def from_anndata(data: Any, options: ReadOptions) -> Graph:
    """Build a graph from the neighbours of the cells of an AnnData, named by `obs_names`."""
    from scipy.sparse import csr_array

    key = "connectivities" if options.weight is None else str(options.weight)
    known = ", ".join(map(repr, data.obsp)) or "nothing"
    if key not in data.obsp:
        raise GraphError(
            f"obsp holds {known}, not {key!r}; name one with weight=… (--weight), or compute "
            "neighbours first, as scanpy.pp.neighbors does"
        )
    if problem := replace(options, weight=None).unsuited("an AnnData"):
        raise GraphError(problem)
    matrix = data.obsp[key]
    matrix = matrix if hasattr(matrix, "tocsr") else csr_array(np.asarray(matrix))
    names = data.obs_names.tolist()
    if len(set(names)) < len(names):
        raise GraphError("two cells have the same name; pass one after obs_names_make_unique()")
    note = ""
    if not (options.directed or options.symmetrize):
        matrix = without_rounding(matrix, float(np.finfo(np.float32).eps))
        if (matrix != matrix.T).nnz:
            matrix, note = united(matrix)
    graph = from_sparse(matrix, options, name_array(names))
    return with_note(graph, note)


def with_note(graph: Graph, note: str) -> Graph:
    """Return a graph with one more note, if there is one."""
    return replace(graph, notes=(*graph.notes, note), check=False) if note else graph


def check_cells(data: Any, key: object) -> None:
    """Raise unless communities can be added to the cells of an AnnData under a key."""
    if not (hasattr(data, "obs") and hasattr(data, "uns") and hasattr(data, "obsp")):
        raise OptionError(
            "key_added", key, "leave it out, or pass an AnnData",
            problem=f"key_added names a column of an AnnData, not of a {type(data).__name__}",
        )  # fmt: skip
    if not isinstance(key, str) or not key:
        raise OptionError("key_added", key, "must be text")


def add_communities(data: Any, key: str, found: Result, options: Options) -> None:
    """Write communities to ``obs[key]`` and what found them to ``uns[key]``, as scanpy does."""
    import pandas

    groups = [str(number) for number in range(found.n_communities)]
    data.obs[key] = pandas.Categorical.from_codes(found.labels.astype(np.int64), groups)
    cycles = 1 + max((level.cycle for level in found.levels), default=0)
    data.uns[key] = {
        "params": {
            "resolution": found.resolution,
            "random_state": options.seed,
            "n_iterations": options.n_iterations or cycles,
            "method": found.method,
            "objective": found.objective,
        },
        "modularity": found.modularity,
    }
