"""Neighbours as graphs: matrices of nearest ones, and cells of an AnnData, given communities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from louvain_um.errors import GraphError, OptionError
from louvain_um.formats.attributes import Columns, attributed
from louvain_um.formats.ids import name_array
from louvain_um.formats.matrices import check_indices, from_sparse, rows_as_they_are, united
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.results.partition import Result

ROUNDING: Final = 1e-10
"""Difference of a symmetric matrix and its transpose, relative to its largest entry."""


def without_rounding(matrix: Any, tolerance: float = ROUNDING) -> Any:
    """Return a real matrix that is symmetric but for rounding as its mean with its transpose."""
    check_indices(matrix)
    if matrix.dtype.kind != "f" or matrix.shape[0] != matrix.shape[1] or not matrix.nnz:
        return matrix
    difference = abs(matrix - matrix.T).max()
    if not 0 < difference <= tolerance * abs(matrix).max():
        return matrix
    return (matrix + matrix.T) / 2


def key_of(options: ReadOptions) -> str:
    """Return the key in `obsp` of the neighbours that options choose."""
    return "connectivities" if options.weight is None else str(options.weight)


def from_anndata(data: Any, options: ReadOptions) -> Graph:
    """Build a graph from the neighbours of the cells of an AnnData, named by `obs_names`."""
    graph = from_neighbours(data.obsp, data.obs_names.tolist(), options)
    return attributed(graph, Columns(data.obs) if len(data.obs.columns) else None)


def from_neighbours(obsp: Mapping[str, Any], names: list[str], options: ReadOptions) -> Graph:
    """Build a graph from one of the matrices of cells with names."""
    from scipy.sparse import csr_array

    key = key_of(options)
    known = ", ".join(map(repr, obsp)) or "nothing"
    if key not in obsp:
        raise GraphError(
            f"obsp holds {known}, not {key!r}; name one with weight=… (--weight), or compute "
            "neighbours first, as scanpy.pp.neighbors does"
        )
    if problem := replace(options, weight=None).unsuited("an AnnData"):
        raise GraphError(problem)
    matrix = obsp[key]
    matrix = matrix if hasattr(matrix, "tocsr") else csr_array(np.asarray(matrix))
    if len(set(names)) < len(names):
        raise GraphError("two cells have the same name; pass one after obs_names_make_unique()")
    notes, named = list[str](), name_array(names)
    graph = rows_as_they_are(matrix, options, named)  # if it is symmetric, the usual case
    if graph is not None:
        return graph
    if not (options.directed or options.symmetrize):
        matrix = without_rounding(matrix, float(np.finfo(np.float32).eps))
        if (matrix != matrix.T).nnz:
            matrix, note = united(matrix)
            notes.append(note)
    return from_sparse(matrix, options, named, notes)


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
    given = options.settings()
    cycles = 1 + max((level.cycle for level in found.levels), default=0)
    data.uns[key] = {
        "params": {
            "resolution": found.resolution,
            "random_state": options.seed,
            "n_iterations": options.n_iterations or cycles,
            "method": found.method,
            "objective": found.objective,
            **{name: given[name] for name in ("effort", "best_of", "threshold")},
            **{name: given[name] for name in ("max_level", "max_size") if given[name] is not None},
        },
        "modularity": found.modularity,
    }
