"""Agreement of communities that overlap: overlapping NMI and the omega index."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.compiled import kernel
from louvain_um.core.plain_data import objects
from louvain_um.results.given_labels import named_labels

OMEGA_TERMS = 3 * 10**8
"""Pairs of vertices above which omega is not computed: they would take over 10 s."""


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """Communities that may overlap."""

    # `matrix` is a SciPy CSR array of vertices × communities; `names` are None for 0 … n − 1.

    names: NDArray[Any] | None
    matrix: Any

    def rows(self, vertices: NDArray[np.int64]) -> Any:
        """Return the memberships of some vertices, without communities that lose all members."""
        matrix = self.matrix[vertices]
        return matrix[:, np.flatnonzero(np.bincount(matrix.indices, minlength=matrix.shape[1]))]


def cover_of(given: Any) -> Cover | None:
    """Return communities as a cover if they overlap, or None if each vertex is in one at most."""
    if isinstance(getattr(given, "vertices", None), np.ndarray):  # lines of a file
        return _from_pairs(given.vertices, given.communities)
    if hasattr(given, "tocsr"):  # `Communities.memberships`
        matrix = given.tocsr()
        rows, columns = matrix.nonzero()
        return Cover(None, _indicator(rows, columns, matrix.shape))
    if getattr(given, "overlap", False) is True:  # cdlib
        given = [set(community) for community in given.communities]
    membership = getattr(given, "membership", None)
    if isinstance(membership, list) and any(isinstance(each, list | tuple) for each in membership):
        names = range(len(membership))  # igraph
        graph = getattr(given, "graph", None)
        if graph is not None and "name" in graph.vs.attributes():
            names = graph.vs["name"]
        given = dict(zip(names, membership, strict=True))
    if isinstance(given, Mapping):
        if (
            not all(isinstance(each, list | tuple | set | frozenset) for each in given.values())
            or not given
        ):
            return None
        pairs = [(v, c) for v, each in given.items() for c in each]
        return _from_pairs(*map(objects, zip(*pairs, strict=True)), always=True) if pairs else None
    listed = named_labels(given, lists=False)
    return None if listed is None else _from_pairs(*listed)


def _from_pairs(
    vertices: NDArray[Any], communities: NDArray[Any], *, always: bool = False
) -> Cover | None:
    row, names = _numbers(vertices)
    if len(names) == len(vertices) and not always:
        return None
    column, known = _numbers(communities)
    return Cover(names, _indicator(row, column, (len(names), len(known))))


def _numbers(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return values as numbers in the order of their first appearance, and what these stand for."""
    if values.dtype.kind in "iu":
        known, numbers = np.unique(values, return_inverse=True)
        return numbers, known
    place: dict[Any, int] = {}
    numbers = np.array([place.setdefault(value, len(place)) for value in values.tolist()], np.int64)
    return numbers, objects(list(place))


def _indicator(rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    from scipy.sparse import coo_array, csr_array

    matrix = csr_array(coo_array((np.ones(len(rows), np.int64), (rows, columns)), shape=shape))
    matrix.data[:] = 1
    matrix.sort_indices()
    return matrix


def one_each(labels: NDArray[np.uint32]) -> Any:
    """Return the matrix of a partition."""
    n = len(labels)
    return _indicator(np.arange(n), labels, (n, int(labels.max()) + 1 if n else 0))


def same_cover(first: Any, second: Any) -> bool:
    """Return whether two matrices have the same communities, in whatever order."""
    if first.shape != second.shape or first.nnz != second.nnz:
        return False
    sides = (
        sorted(map(tuple, np.split(each.tocsc().indices, each.tocsc().indptr[1:-1])))
        for each in (first, second)
    )
    one, other = sides
    return one == other


def overlapping_nmi(first: Any, second: Any) -> tuple[float, float]:
    """Return the overlapping NMI of McDaid, Greene and Hurley, and of Lancichinetti and others."""
    # Pairs of communities without common members matter only where one of both has more than a
    # quarter of the vertices, so all others are left out.
    n = first.shape[0]
    x, y = (np.bincount(each.indices, minlength=each.shape[1]) for each in (first, second))
    if not (len(x) and len(y)):
        return 0.0, 0.0
    met = (first.T @ second).tocoo()
    i, j, common = [met.coords[0]], [met.coords[1]], [met.data]
    for large in np.flatnonzero(4 * x > n).tolist():
        members = np.flatnonzero(first[:, [large]].toarray()[:, 0])
        i.append(np.full(len(y), large))
        j.append(np.arange(len(y)))
        common.append(np.bincount(second[members].indices, minlength=len(y)))
    for large in np.flatnonzero(4 * y > n).tolist():
        members = np.flatnonzero(second[:, [large]].toarray()[:, 0])
        i.append(np.arange(len(x)))
        j.append(np.full(len(x), large))
        common.append(np.bincount(first[members].indices, minlength=len(x)))
    at, to, both = map(np.concatenate, (i, j, common))
    alone = [_information(sizes / n) + _information(1 - sizes / n) for sizes in (x, y)]
    cells = [both, x[at] - both, y[to] - both, n - x[at] - y[to] + both]
    d, c, b, a = (_information(cell / n) for cell in cells)
    left: list[NDArray[np.float64]] = []  # what each community leaves open, given the other cover
    for here, other, mine, theirs in ((at, to, *alone), (to, at, *alone[::-1])):
        found = mine.copy()
        close = a + d > b + c
        np.minimum.at(found, here[close], (a + b + c + d)[close] - theirs[other[close]])
        left.append(np.maximum(found, 0))
    h_x, h_y = (float(each.sum()) for each in alone)
    shared = (h_x - left[0].sum() + h_y - left[1].sum()) / 2
    most = max(h_x, h_y)
    open_shares = [
        np.divide(each, whole, out=np.ones(len(whole)), where=whole > 0).mean()
        for each, whole in zip(left, alone, strict=True)
    ]
    return float(shared / most) if most else 0.0, float(1 - sum(open_shares) / 2)


def _information(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return −p log₂ p, 0 at 0."""
    return -share * np.log2(np.where(share > 0, share, 1))


def omega_index(first: Any, second: Any) -> float:
    """Return the omega index of Collins and Dent, NaN where it takes too long."""
    # Two covers agree on a pair of vertices that is together in as many communities of both.
    # Vertices of the same communities are counted as one class.
    n = first.shape[0]
    pairs = n * (n - 1) // 2
    if not pairs:
        return 1.0
    x, y = _classes(first), _classes(second)
    met, other_met = _together(first, first, first, x), _together(second, second, second, y)
    cells = _pairs_of_cells(first, second)
    common = _together(cells, first, second, x * (int(y.max()) + 1) + y)
    if met is None or other_met is None or common is None:
        return math.nan
    (one, by_times), (other, by_other_times) = met, other_met
    agreed = pairs - one - other + common[0] + sum(common[1])
    expected = (pairs - one) * (pairs - other)
    expected += sum(a * b for a, b in zip(by_times, by_other_times, strict=False))
    most = pairs * pairs
    return 1.0 if expected == most else (agreed * pairs - expected) / (most - expected)


def _classes(matrix: Any) -> NDArray[np.int64]:
    """Return a number for each vertex, the same for vertices of the same communities."""
    lengths = np.diff(matrix.indptr)
    found = np.zeros(len(lengths), np.int64)
    for place in range(int(lengths.max(initial=0))):
        active = np.flatnonzero(lengths > place)
        community = matrix.indices[matrix.indptr[active] + place].astype(np.int64)
        pair = found[active] * (matrix.shape[1] + 1) + community + 1
        found[active] = np.unique(pair, return_inverse=True)[1] + int(found.max()) + 1
    return np.unique(found, return_inverse=True)[1]


def _pairs_of_cells(first: Any, second: Any) -> Any:
    """Return the matrix of vertices × pairs of a community of each cover."""
    a, b = np.diff(first.indptr), np.diff(second.indptr)
    rows = np.repeat(np.arange(len(a)), a * b)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(a * b) - a * b, a * b)
    one = first.indices[first.indptr[rows] + within // np.maximum(b[rows], 1)].astype(np.int64)
    other = second.indices[second.indptr[rows] + within % np.maximum(b[rows], 1)]
    known, column = np.unique(one * second.shape[1] + other, return_inverse=True)
    return _indicator(rows, column, (len(a), len(known)))


def _together(
    cells: Any, first: Any, second: Any, classes: NDArray[np.int64]
) -> tuple[int, list[int]] | None:
    """Count pairs in a common cell, and those as often together in both; None if too many."""
    _, place, sizes = np.unique(classes, return_index=True, return_counts=True)
    cells, first, second = cells[place], first[place], second[place]
    many = np.bincount(cells.indices).astype(np.float64)
    if many @ many > OMEGA_TERMS:
        return None
    members = cells.tocsc()
    most = int(min(np.diff(first.indptr).max(initial=0), np.diff(second.indptr).max(initial=0)))
    same = np.zeros(most + 1, np.int64)
    arrays = [
        array.astype(np.int64)
        for matrix in (cells, members, first, second)
        for array in (matrix.indptr, matrix.indices)
    ]
    counted = _count_pairs(*arrays, sizes.astype(np.int64), same)
    return int(counted), same.tolist()


@kernel()
def _count_pairs(
    cell_starts, cell_ids, member_starts, members, starts_a, a, starts_b, b, sizes, same
):
    """Visit pairs of classes with a common cell once each; `same` counts by communities shared."""
    seen = np.full(len(sizes), -1, np.int64)
    counted = 0
    for p in range(len(sizes)):
        for at in range(cell_starts[p], cell_starts[p + 1]):
            cell = cell_ids[at]
            for k in range(member_starts[cell], member_starts[cell + 1]):
                q = members[k]
                if q > p:
                    break
                if seen[q] == p:
                    continue
                seen[q] = p
                pairs = sizes[p] * sizes[q] if q < p else sizes[p] * (sizes[p] - 1) // 2
                counted += pairs
                in_a = _common(a, starts_a[p], starts_a[p + 1], starts_a[q], starts_a[q + 1])
                in_b = _common(b, starts_b[p], starts_b[p + 1], starts_b[q], starts_b[q + 1])
                if in_a == in_b:
                    same[in_a] += pairs
    return counted


@kernel()
def _common(ids, i, last_i, j, last_j):
    """Count what two ascending runs have in common."""
    found = 0
    while i < last_i and j < last_j:
        if ids[i] == ids[j]:
            found += 1
            i += 1
            j += 1
        elif ids[i] < ids[j]:
            i += 1
        else:
            j += 1
    return found
