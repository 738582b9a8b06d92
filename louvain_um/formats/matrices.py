"""SciPy, CuPy and dense adjacency matrices; and lists that hold each edge twice, as matrices do.

Rows that already ascend become the graph's as they are, after a parallel look at them. For others,
SciPy's transposition sorts rows and keeps repeated entries, so a matrix transposed twice and the
matrix transposed once compare entry by entry.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.errors import GraphError, Uncertain
from louvain_um.formats.build import make_graph
from louvain_um.formats.edge_list.edges import EdgeList
from louvain_um.formats.ids import name_array, order_of
from louvain_um.formats.read_options import ReadOptions
from louvain_um.generators.hashing import mix64
from louvain_um.graph.build import loop_note
from louvain_um.graph.graph import Graph
from louvain_um.graph.integer_weights import SMALL, TOO_LARGE, at_scale, quantise
from louvain_um.graph.limits import MAX_VERTICES

DIAGONAL: Final = (
    "the diagonal is all 1, as in a matrix of correlations, and each counts as a loop; "
    "loops='drop' leaves them out"
)

UNION: Final = (
    "the matrix is not symmetric, as of nearest neighbours: a pair counts if either is a "
    "neighbour of the other"
)

WIDE = {"i": np.int64, "u": np.uint64, "f": np.float64}
"""The widest type of each kind of number."""

ROWS: Final = 1 << 10
"""Rows that a thread looks at before it takes more."""


def from_sparse(
    matrix: Any,
    options: ReadOptions,
    names: Any = None,
    notes: Sequence[str] = (),
    *,
    unite: bool = True,
) -> Graph:
    """Build a graph from a square sparse matrix; zeros are not edges, stored or not."""
    # A matrix of nearest neighbours is united with its transpose, unless `options` or `unite` say
    # otherwise: a matrix that is written whole, as text or an array, may as well be a mistake.
    from scipy.sparse import coo_array, csr_array

    rows = matrix.shape[0]
    if matrix.shape != (rows, rows):
        shape = " × ".join(map(str, matrix.shape))
        raise GraphError(f"the matrix is {shape}; an adjacency matrix must be square")
    if rows > MAX_VERTICES:
        raise GraphError(f"{rows} vertices; at most {MAX_VERTICES} are supported")
    if names is not None and names.dtype.kind in "iu" and np.array_equal(names, np.arange(rows)):
        names = None
    found = rows_as_they_are(matrix, options, names)
    if found is not None:
        return replace(found, notes=(*found.notes, *notes), check=False) if notes else found
    check_indices(matrix)
    if matrix.format != "coo":
        matrix = csr_array(matrix if matrix.format != "dia" else coo_array(matrix))
    _check_numbers(matrix.data)
    if options.duplicates == "once" and matrix.format == "coo":
        matrix = matrix_of_entries(matrix.row, matrix.col, matrix.data, rows)
    elif options.duplicates != "once" and not matrix.has_canonical_format:
        # As SciPy does, repeated entries are summed, which a narrow type rounds or overflows.
        matrix = matrix.astype(WIDE.get(matrix.dtype.kind, matrix.dtype))
        if matrix.dtype.kind in "iu":
            total = np.abs(matrix.data.astype(float)).sum()
            if total >= 2.0**62 and not options.allow_rounding:
                raise GraphError(f"integer weights add up to {total:.3g}{TOO_LARGE}")
            if total >= 2.0**62:
                matrix = matrix.astype(np.float64)
    matrix = csr_array(matrix)
    if options.duplicates != "once":
        matrix.sum_duplicates()  # in place, of the copy above
    unite = unite and not (options.symmetrize or options.directed or options.signed)
    if unite and is_nearest(matrix):
        matrix, note = united(matrix)
        notes = *notes, note
    matrix, zeros = without_zeros(matrix)
    notes = [*zeros, *notes]
    weighted = _are_weights(matrix.data, options)
    edges = undirected(matrix, options, weighted=weighted, names=names, error=GraphError)
    if weighted and options.loops == "keep" and _is_correlation(matrix):
        notes.append(DIAGONAL)
    del matrix
    return make_graph(edges.u, edges.v, edges.w, names, options, n=rows, notes=notes)


def check_indices(matrix: Any) -> None:
    """Raise an error for a sparse matrix of rows or columns whose indices are out of range."""
    # SciPy's compiled code does not check them, and those of a damaged file can be anything.
    if not hasattr(matrix, "check_format"):
        return
    try:
        if not {matrix.indices.dtype.kind, matrix.indptr.dtype.kind} <= {*"iu"}:
            raise ValueError("its indices are not whole numbers")
        for name in ("indices", "indptr"):
            found = getattr(matrix, name)
            if found.dtype.kind == "u":  # as SciPy converts them, with a warning
                setattr(matrix, name, found.astype(np.int64))
        matrix.check_format(full_check=True)
        if (matrix.indptr[1:] < matrix.indptr[:-1]).any():
            raise ValueError("its row pointers descend")
    except ValueError as error:
        raise GraphError(f"the sparse matrix is damaged: {error}") from None


def is_nearest(matrix: Any) -> bool:
    """Return whether a matrix of rows lists as many neighbours of each vertex, not both ways."""
    rows = matrix
    if not len(rows.data) or not rows.data.min() >= 0:
        return False
    if len(np.unique(np.diff(rows.indptr))) > 1:
        return False
    listed = _pattern(rows)
    return bool((listed != listed.T).nnz)


def united(matrix: Any) -> tuple[Any, str]:
    """Return the union of a matrix with its transpose, and a note."""
    # Weights up to 1 are shares: a + b − ab, as UMAP and scanpy unite them; of larger ones the
    # larger counts. scikit-learn also lists each vertex as its neighbour, which counts nothing:
    # with 1, or at distance 0. Distances say the opposite of weights, so that each neighbour counts
    # 1.
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
    found = csr_array((ones, rows.indices, rows.indptr), shape=rows.shape, copy=True)
    found.sum_duplicates()  # in place, hence of a copy
    return found


def _is_correlation(matrix: Any) -> bool:
    """Return whether a matrix has 1 all along its diagonal, and nothing beyond."""
    n = matrix.shape[0]
    if n < 2 or len(matrix.data) < n or matrix.dtype.kind != "f":
        return False
    return bool((matrix.diagonal() == 1).all() and np.abs(matrix.data).max() == 1)


def rows_as_they_are(matrix: Any, options: ReadOptions, names: Any) -> Graph | None:
    """Return the graph of a CSR or CSC matrix whose rows ascend; arrays are shared."""
    # Returns None where something else must be done: copy, sort, merge, or report an error.
    if (
        matrix.format not in ("csr", "csc")
        or options.kind != "undirected"
        or matrix.dtype.kind not in "biuf"
    ):
        return None
    n = matrix.shape[0]
    indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    if len(indptr) != n + 1 or indptr[0] != 0 or not indptr[-1] == len(indices) == len(data):
        return None
    least, most = value_range(data)
    if not 0 < least <= most < np.inf or data.itemsize > 8:  # NaN included
        return None
    unweighted = options.weighted is False or data.dtype == np.bool_
    ones = len(data) > 0 and least == 1 == most
    weighted = not unweighted and (options.weighted is True or not ones)
    if options.loops == "drop" or (options.duplicates == "sum" and not weighted):
        return None
    if options.weighted and not weighted:  # an error
        return None
    threads = parallel.default_threads() if len(indices) > SMALL else 1
    looked = np.zeros((threads, 3), np.uint64)
    key = np.frombuffer(os.urandom(8), np.uint64)[0]
    values = bits_of(data) if weighted else np.empty(0, np.uint64)
    parallel.run(_look, threads, np.zeros(1, np.int64), indptr, indices, values, key, looked)
    faults, loops, difference = (int(total) for total in looked.sum(axis=0))
    if faults or difference:
        return None
    upper = (len(data) - loops) // 2
    integers, scale = None, 1.0
    notes: tuple[str, ...] = ()
    if weighted:
        half = np.empty(upper + loops, data.dtype)
        ends = np.empty(n + 1, np.int64)
        parallel.run(_count_kept, threads, indptr, indices, ends, True)
        np.cumsum(ends, out=ends)
        parallel.run(_take_upper, threads, indptr, indices, data, ends, half)
        _, scale, notes = quantise(half, options.allow_rounding)
        if notes:  # some are rounded
            return None
        del half
        integers = at_scale(data, scale, threads)
    targets = _as_ids(indices, threads)
    offsets = indptr.astype(np.int64, copy=False)
    loop_weights = np.zeros(n, np.int64)
    if loops:
        if weighted and loops == n > 1 and data.dtype.kind == "f" and most == 1:
            notes += (DIAGONAL,) if (matrix.diagonal() == 1).all() else ()
        kept = np.empty(n + 1, np.int64)
        parallel.run(_count_kept, threads, offsets, targets, kept, False)
        np.cumsum(kept, out=kept)
        given = np.empty(0, np.int64) if integers is None else integers
        others = np.empty(int(kept[-1]), np.uint32)
        left = np.empty(0 if integers is None else len(others), np.int64)
        parallel.run(
            _leave_out_loops, threads, offsets, targets, given, kept, others, left, loop_weights
        )
        offsets, targets = kept, others
        integers = None if integers is None else left
        notes += loop_note(loops)
    if integers is not None and (not len(integers) or value_range(integers)[1] < 2**32):
        integers = integers.astype(np.uint32)
    return Graph(offsets, targets, integers, loop_weights, scale, names, notes, check=False)


def value_range(values: NDArray[Any]) -> tuple[float, float]:
    """Return the least and the largest value, (1, 1) of none; NaN if there is one."""
    if not len(values):
        return 1, 1
    pieces = parallel.over_pieces(lambda piece: (piece.min(), piece.max()), values)
    least, most = np.array(pieces).T
    return least.min(), most.max()


def bits_of(values: NDArray[Any]) -> NDArray[Any]:
    """Return values as unsigned words of the same size: equal ones have equal bits."""
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


def _as_ids(indices: NDArray[Any], threads: int) -> NDArray[np.uint32]:
    """Return indices as ids, without a copy if they have 32 bits."""
    if indices.dtype.itemsize == 4:
        return np.ascontiguousarray(indices).view(np.uint32)
    ids = np.empty(len(indices), np.uint32)
    parallel.run(_copy_ids, threads, indices, ids)
    return ids


def from_dense(matrix: Any, options: ReadOptions, names: Any = None) -> Graph:
    """Build a graph from a square array; its zeros are not edges."""
    if matrix.dtype.kind not in "biuf":
        raise GraphError(f"an adjacency matrix must hold numbers, not {matrix.dtype}")
    return from_sparse(sparse(matrix), options, names, unite=False)


def sparse(matrix: NDArray[Any]) -> Any:
    """Return a matrix without its zeros, as SciPy holds it."""
    from scipy.sparse import csr_array

    # SciPy takes neither half precision nor bytes in another order.
    kind = np.float32 if matrix.dtype == np.float16 else matrix.dtype.newbyteorder("=")
    return csr_array(matrix.astype(kind, copy=False))


def from_labelled(matrix: Any, labels: Sequence[Any], options: ReadOptions) -> Graph:
    """Build a graph from a square matrix with a label for each row; vertices ascend by label."""
    if len(set(labels)) < len(labels):
        raise GraphError("two rows have the same label; make the labels different")
    if problem := options.unsuited("a matrix with labels"):
        raise GraphError(problem)
    order = order_of(labels)
    if order != [*range(len(labels))]:
        matrix = matrix[order][:, order]
    named = name_array([labels[place] for place in order])
    return (from_dense if isinstance(matrix, np.ndarray) else from_sparse)(matrix, options, named)


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


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first entry of a matrix that its transpose lacks, or has with another weight."""

    row: int
    column: int
    missing: bool

    def describe(self, base: int = 0, names: Any = None) -> str:
        """Return the difference in words, by the names of vertices or ids counted from `base`."""
        rows = self.row, self.column
        ends = (row + base for row in rows) if names is None else (names[row] for row in rows)
        a, b = (repr(str(end)) if isinstance(end, str) else str(end) for end in ends)
        if self.missing:
            return f"{a} lists {b} as a neighbour, but {b} does not list {a} as often"
        return f"the weights of {a} to {b} and of {b} to {a} differ"


def matrix_of_entries(
    u: NDArray[np.uint32], v: NDArray[np.uint32], w: NDArray[Any] | None, n: int
) -> Any:
    """Return the n × n matrix of a list of entries; repeated entries stay separate."""
    from scipy.sparse import coo_array  # lists of edges need none

    entries = coo_array((_values(w, len(u)), (_signed(u, n), _signed(v, n))), shape=(n, n))
    # Otherwise tocsr() sums repeated entries.
    entries.has_canonical_format = True
    return entries.tocsr()


def matrix_of_rows(
    offsets: NDArray[np.int64], columns: NDArray[np.uint32], values: NDArray[Any] | None
) -> Any:
    """Return the matrix with these compressed rows."""
    from scipy.sparse import csr_array

    n = len(offsets) - 1
    data = _values(values, len(columns)), _signed(columns, n), offsets
    return csr_array(data, shape=(n, n))


def read_as_matrix(
    edges: EdgeList, n: int, options: ReadOptions, error: Callable[..., Exception], *line: int
) -> EdgeList:
    """Return the edges of a list of entries, both ways each, whose vertices count from 1."""
    weighted, matrix = edges.w is not None, matrix_of_entries(edges.u, edges.v, edges.w, n)
    edges.u, edges.v, edges.w = np.empty(0, np.uint32), np.empty(0, np.uint32), None
    found = undirected(matrix, options, weighted=weighted, base=1, error=error, line=line)
    found.notes, found.inexact = [*edges.notes, *found.notes], edges.inexact
    return found


def undirected(
    matrix: Any,
    options: ReadOptions,
    *,
    weighted: bool,
    base: int = 0,
    names: Any = None,
    error: Callable[..., Exception],
    line: tuple[int, ...] = (),
) -> EdgeList:
    """Return the edges of a symmetric matrix; all entries to symmetrize, or if it is directed."""
    if options.directed:
        return all_entries(matrix, weighted)
    half = one_half(matrix, weighted)
    if isinstance(half, EdgeList):
        return half
    if options.symmetrize:
        return all_entries(matrix, weighted)
    raise error(
        f"the matrix is not symmetric, so its graph is directed: {half.describe(base, names)}; "
        "pass symmetrize=True (--symmetrize) to read every entry as an undirected edge",
        *line,
    )


def one_half(matrix: Any, weighted: bool) -> EdgeList | Mismatch:
    """Return each edge of a symmetric CSR matrix once, or its first mismatch."""
    notes: list[str] = []
    if weighted:
        matrix, notes = without_zeros(matrix)
    transposed = matrix.tocsc()
    ordered = transposed.tocsr()
    if weighted:
        _sort_repeated(ordered)
        _sort_repeated(transposed)
    mismatch = _first_mismatch(ordered, transposed, weighted)
    if mismatch is not None:
        return mismatch
    del transposed
    rows = _row_numbers(ordered)
    upper = rows <= ordered.indices
    v = ordered.indices[upper].astype(np.uint32)
    return EdgeList(rows[upper], v, ordered.data[upper] if weighted else None, notes)


def without_zeros(matrix: Any) -> tuple[Any, list[str]]:
    """Return a CSR matrix without the zeros it stores, and a note on their number, if any."""
    zeros = len(matrix.data) - int(np.count_nonzero(matrix.data))
    if not zeros:
        return matrix, []
    matrix = matrix.copy()
    matrix.eliminate_zeros()
    what = "1 entry of the matrix is" if zeros == 1 else f"{zeros:,} entries of the matrix are"
    return matrix, [f"{what} 0 and left out: weight 0 connects nothing"]


def all_entries(matrix: Any, weighted: bool) -> EdgeList:
    """Return each entry of a CSR matrix as an edge."""
    columns = matrix.indices.astype(np.uint32)
    return EdgeList(_row_numbers(matrix), columns, matrix.data if weighted else None)


def _values(values: NDArray[Any] | None, entries: int) -> NDArray[Any]:
    """Return the values, or as many bytes: a SciPy matrix needs values."""
    return np.ones(entries, np.int8) if values is None else values


def _signed(ids: NDArray[np.uint32], n: int) -> NDArray[Any]:
    """Return ids below n as signed indices for SciPy, without a copy if 31 bits suffice."""
    return ids.view(np.int32) if n < 2**31 and ids.dtype == np.uint32 else ids


def _row_numbers(matrix: Any) -> NDArray[np.uint32]:
    return np.repeat(np.arange(matrix.shape[0], dtype=np.uint32), np.diff(matrix.indptr))


def _sort_repeated(matrix: Any) -> None:
    """Sort the values of repeated entries, which a file may list in any order."""
    columns, starts = matrix.indices, matrix.indptr
    if len(columns) == 0:
        return
    repeated = columns[1:] == columns[:-1]
    repeated[starts[(starts > 0) & (starts < len(columns))] - 1] = False
    if repeated.any():
        place = np.concatenate(([0], np.cumsum(~repeated)))
        matrix.data = matrix.data[np.lexsort((matrix.data, place))]


def _first_mismatch(matrix: Any, transposed: Any, weighted: bool) -> Mismatch | None:
    """Return the first difference between a matrix by rows and its transpose, both sorted."""
    starts, starts_t = matrix.indptr, transposed.indptr
    unequal = matrix.indices != transposed.indices
    if weighted:
        unequal |= matrix.data != transposed.data
    rows = [*np.flatnonzero(np.diff(starts) != np.diff(starts_t))[:1].tolist()]
    if unequal.any():
        rows.append(int(np.searchsorted(starts, int(unequal.argmax()), "right")) - 1)
    if not rows:
        return None
    # Up to the first row that differs, entries of both are at the same positions.
    row = min(rows)
    start, stop, stop_t = int(starts[row]), int(starts[row + 1]), int(starts_t[row + 1])
    both = unequal[start : min(stop, stop_t)]
    place = start + (int(both.argmax()) if both.any() else len(both))
    column = int(matrix.indices[place]) if place < stop else None
    column_t = int(transposed.indices[place]) if place < stop_t else None
    if column is not None and (column_t is None or column <= column_t):
        return Mismatch(row, column, missing=column != column_t)
    assert column_t is not None
    return Mismatch(column_t, row, missing=True)


@kernel()
def _look(t, threads, turn, offsets, indices, values, key, looked):
    """Count rows that do not ascend within the matrix, and loops; compare both halves."""
    # A matrix is symmetric if the keyed hashes of its entries below the diagonal have the same sum,
    # modulo 2^64, as those above: by chance one of 2^64 others passes, which depends on the key.
    n = len(offsets) - 1
    faults, loops, difference = np.uint64(0), np.uint64(0), np.uint64(0)
    begin = parallel.take(turn, ROWS)
    while begin < n:
        for v in range(begin, min(begin + ROWS, n)):
            first, end = np.int64(offsets[v]), np.int64(offsets[v + 1])
            if first < 0 or end < first or end > len(indices):
                faults += np.uint64(1)
                continue
            before = np.int64(-1)
            for j in range(first, end):
                w = np.int64(indices[j])
                faults += np.uint64(w <= before)
                before = w
                if w == v:
                    loops += np.uint64(1)
                    continue
                low, high = (v, w) if v < w else (w, v)
                pair = np.uint64(low) << np.uint64(32) | np.uint64(high)
                word = mix64(key ^ pair)
                if len(values) > 0:
                    word = mix64(word ^ values[j])
                if w > v:
                    difference += word
                else:
                    difference -= word
            faults += np.uint64(before >= n)
        begin = parallel.take(turn, ROWS)
    looked[t, 0] = faults
    looked[t, 1] = loops
    looked[t, 2] = difference


@kernel()
def _count_kept(t, threads, offsets, indices, counts, upper):
    """Write how many entries of each row are no loops, or not below it, at ``counts[v + 1]``."""
    n = len(offsets) - 1
    counts[0] = 0
    for v in range(n * t // threads, n * (t + 1) // threads):
        count = np.int64(0)
        for j in range(offsets[v], offsets[v + 1]):
            w = np.int64(indices[j])
            count += w >= v if upper else w != v
        counts[v + 1] = count


@kernel()
def _take_upper(t, threads, offsets, indices, values, ends, out):
    """Write the values on the diagonal and above."""
    n = len(offsets) - 1
    for v in range(n * t // threads, n * (t + 1) // threads):
        place = ends[v]
        for j in range(offsets[v], offsets[v + 1]):
            if np.int64(indices[j]) >= v:
                out[place] = values[j]
                place += 1


@kernel()
def _leave_out_loops(t, threads, offsets, targets, weights, kept, others, left, loop_weights):
    """Write rows without loops, and each loop's weight."""
    n = len(offsets) - 1
    has = len(weights) > 0
    for v in range(n * t // threads, n * (t + 1) // threads):
        place = kept[v]
        for j in range(offsets[v], offsets[v + 1]):
            if np.int64(targets[j]) == v:
                loop_weights[v] = weights[j] if has else 1
                continue
            others[place] = targets[j]
            if has:
                left[place] = weights[j]
            place += 1


@kernel()
def _copy_ids(t, threads, indices, ids):
    """Write a thread's part of the indices as ids."""
    for i in range(len(ids) * t // threads, len(ids) * (t + 1) // threads):
        ids[i] = indices[i]
