"""SciPy and CuPy sparse matrices, and dense adjacency matrices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from louvain_um.errors import GraphError
from louvain_um.formats.objects.symmetric import undirected, without_zeros
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph.graph import Graph
from louvain_um.graph.integer_weights import TOO_LARGE
from louvain_um.graph.limits import MAX_VERTICES

WIDE = {"i": np.int64, "u": np.uint64, "f": np.float64}
"""The widest type of each kind of number."""


def from_sparse(matrix: Any, options: ReadOptions, names: Any = None) -> Graph:
    """Build a graph from a square sparse matrix; zeros are not edges, stored or not."""
    from scipy.sparse import coo_array, csr_array

    rows, columns = matrix.shape
    if rows != columns:
        raise GraphError(f"the matrix is {rows} × {columns}; an adjacency matrix must be square")
    if rows > MAX_VERTICES:
        raise GraphError(f"{rows} vertices; at most {MAX_VERTICES} are supported")
    if hasattr(matrix, "check_format"):
        # Compiled code does not check indices, and those of a damaged file can be out of range.
        try:
            matrix.check_format(full_check=True)
            if (matrix.indptr[1:] < matrix.indptr[:-1]).any():
                raise ValueError("its row pointers descend")
        except ValueError as error:
            raise GraphError(f"the sparse matrix is damaged: {error}") from None
    if matrix.format == "coo" and matrix.dtype.kind in "iuf":
        # Repeated entries are summed, which a narrow type rounds or overflows.
        matrix = matrix.astype(WIDE[matrix.dtype.kind])
        if matrix.dtype.kind in "iu":
            total = np.abs(matrix.data.astype(float)).sum()
            if total >= 2.0**62 and not options.allow_rounding:
                raise GraphError(f"integer weights add up to {total:.3g}{TOO_LARGE}")
            if total >= 2.0**62:
                matrix = matrix.astype(np.float64)
    matrix = csr_array(matrix if matrix.format != "dia" else coo_array(matrix))
    _check_numbers(matrix.data)
    matrix, notes = without_zeros(matrix)
    weighted = _are_weights(matrix.data, options)
    edges = undirected(
        matrix,
        weighted=weighted,
        symmetrize=options.symmetrize,
        directed=options.directed,
        error=GraphError,
    )
    del matrix
    graph = Graph.from_edges(
        edges.u,
        edges.v,
        edges.w,
        n_vertices=rows,
        duplicates=options.duplicates,
        names=names,
        allow_rounding=options.allow_rounding,
        kind=options.kind,
    )
    return replace(graph, notes=(*notes, *graph.notes), check=False) if notes else graph


def from_dense(matrix: Any, options: ReadOptions, names: Any = None) -> Graph:
    """Build a graph from a square array; its zeros are not edges."""
    from scipy.sparse import csr_array

    if matrix.dtype.kind not in "biuf":
        raise GraphError(f"an adjacency matrix must hold numbers, not {matrix.dtype}")
    return from_sparse(csr_array(matrix), options, names)


def _check_numbers(values: Any) -> None:
    """Raise an error unless the values are real numbers."""
    if values.dtype.kind not in "biuf":
        raise GraphError(f"an adjacency matrix must hold real numbers, not {values.dtype}")
    if values.dtype.kind == "f" and np.isnan(values).any():
        # A NaN equals nothing, so the comparison would report an asymmetry instead.
        first = int(np.argmax(np.isnan(values)))
        raise GraphError(f"weight at index {first} is not a number; fill it, or remove the entry")


def _are_weights(values: Any, options: ReadOptions) -> bool:
    """Return whether the values are weights; if all are 1, they are not."""
    if options.weighted is False or values.dtype == np.bool_:
        return False
    return not (len(values) and options.weighted is None and _ones(values))


def _ones(values: Any) -> bool:
    return bool(values[0] == 1 and values.min() == 1 and values.max() == 1)
