"""Operators on graphs for algorithms of one's own: `filter`, `advance` and `intersect`.

They follow Marrow-Graph (das Neves: GPU Accelerated Dynamic Graph Processing, 2024). What they
combine is integer and commutes, so that results are unique. They run where their arrays are: by
whole arrays of NumPy, or on the device that has arrays of CuPy, where expressions become kernels.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.algorithms.expressions import Expression
from louvain_um.algorithms.graphs import device_rows_of, rows_of
from louvain_um.errors import GraphError, OptionError

CHUNK: Final = 1 << 20
"""Arcs evaluated at a time: some tens of MiB of scratch."""

COMBINED: Final = {
    "min": np.minimum,
    "max": np.maximum,
    "or": np.bitwise_or,
    "add": np.add,
}


def filter(frontier: ArrayLike, condition: str, **arrays: ArrayLike) -> NDArray[np.uint32]:
    """Return the vertices of a frontier that meet a condition, ascending.

    Parameters
    ----------
    frontier : array of int
        Vertices.
    condition : str
        An expression (`louvain_um.algorithms.expressions`) of ``v``, the vertex, and of the
        names of `arrays`.
    **arrays : array of int, one entry per vertex
        Each name stands for the vertex's entry.

    Returns
    -------
    uint32[k]
        Of CuPy if the frontier or an array is.

    Raises
    ------
    OptionError
        No expression, or an unknown name.
    GraphError
        A vertex that an array has no entry for.

    Examples
    --------
    >>> import numpy as np
    >>> from louvain_um.algorithms.operators import filter
    >>> filter([3, 0, 1], "x > 4 and v != 0", x=np.array([9, 5, 9, 4])).tolist()
    [1]
    """
    if "v" in arrays:
        raise OptionError(remedy="v is the vertex; give the array another name")
    known = Expression(condition, ("v", *arrays), "condition")
    xp = module_of(frontier, *arrays.values())
    items = vertices_of(frontier, xp)
    values = {name: array_of(array, xp) for name, array in arrays.items()}
    for array in values.values():
        check_values(array)
        check_vertices(items, len(array))
    if xp is not np:
        there: NDArray[np.uint32] = _filter_there(items, known, values)
        return there
    kept = known.value(v=items, **{name: array[items] for name, array in values.items()})
    chosen: NDArray[np.uint32] = items.astype(np.uint32)[
        np.broadcast_to(np.not_equal(kept, 0), items.shape)
    ]
    return chosen


def advance(
    graph: Any,
    frontier: ArrayLike,
    *,
    along: str,
    combine: Literal["min", "max", "or", "add"],
    into: NDArray[np.int64],
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
) -> NDArray[np.uint32]:
    """Combine a value along every arc of a frontier into the arc's target.

    All values are computed from the arrays as they were before the call.

    Parameters
    ----------
    graph : Graph, or a store of rows
    frontier : array of int
        Vertices whose arcs are followed, each once.
    along : str
        The value of an arc, an expression of ``u`` and ``v``, its ends, ``w``, its integer weight,
        ``x``, the source's entry, and ``y``, the target's.
    combine : {"min", "max", "or", "add"}
    into : int64[n]
        Changed in place, or left as it was if the call raises. An array of CuPy is changed on its
        device, to which the rows are copied if they are not there.
    x, y : array of int, length n, optional
        What the names stand for; by default `into`.

    Returns
    -------
    uint32[k]
        Vertices whose entry of `into` has changed, ascending; of CuPy if `into` is.

    Raises
    ------
    OptionError
        No expression, or no way to combine.
    GraphError
        Arrays that do not fit the graph, or a vertex that is none.

    Examples
    --------
    >>> import numpy as np, louvain_um as lu
    >>> from louvain_um.algorithms.operators import advance
    >>> g = lu.Graph.from_edges([0, 1, 0], [1, 2, 2], [5, 1, 9])
    >>> d = np.array([0, 100, 100])
    >>> frontier = [0]
    >>> while len(frontier):
    ...     frontier = advance(g, frontier, along="x + w", combine="min", into=d)
    >>> d.tolist()
    [0, 5, 6]
    """
    known = Expression(along, ("u", "v", "w", "x", "y"), "along")
    if combine not in COMBINED:
        raise OptionError("combine", combine, f"must be one of {', '.join(COMBINED)}")
    xp = module_of(into)
    check_changeable("into", into, xp)
    rows = rows_of(graph) if xp is np else device_rows_of(graph)
    n = rows.n_vertices
    sources, targets = (into if given is None else array_of(given, xp) for given in (x, y))
    for array in (into, sources, targets):
        check_values(array)
        if len(array) != n:
            raise GraphError(f"arrays must have {n} entries, one per vertex, not {len(array)}")
    if into.dtype != np.int64:
        raise GraphError(f"into must be int64, not {into.dtype}; convert it with .astype(np.int64)")
    items = vertices_of(frontier, xp)
    check_vertices(items, n)
    before = into.copy()
    # `into` may stand for x and y, or they for parts of it: they keep the values from before.
    sources, targets = (
        before if each is into else each.copy() if xp.may_share_memory(each, into) else each
        for each in (sources, targets)
    )  # fmt: skip
    if xp is not np:
        ends = sources, targets
        changed: NDArray[np.uint32] = _advance_there(
            rows, items, known, combine, into, before, ends
        )
        return changed
    lengths = rows.ends[items] - rows.begins[items]
    starts = np.concatenate(([0], np.cumsum(lengths)))
    try:
        for low in range(0, int(starts[-1]), CHUNK):
            place = np.arange(low, min(low + CHUNK, int(starts[-1])))
            row = np.searchsorted(starts, place, side="right") - 1
            u, arc = items[row], rows.begins[items[row]] + (place - starts[row])
            v = rows.targets[arc].astype(np.int64)
            w = np.ones(len(v), np.int64) if rows.weights is None else rows.weights[arc]
            value = known.value(u=u, v=v, w=w.astype(np.int64), x=sources[u], y=targets[v])
            COMBINED[combine].at(into, v, np.broadcast_to(value, v.shape).astype(np.int64))
    except BaseException:
        into[:] = before
        raise
    return np.flatnonzero(into != before).astype(np.uint32)


def intersect(
    graph: Any, pairs: ArrayLike, *, each: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Count the common neighbours of pairs of vertices.

    Parameters
    ----------
    graph : Graph, or a store of rows
    pairs : array of int, shape (p, 2)
    each : int64[n], optional
        Gets 1 added for every pair that a vertex is a common neighbour of.

    Returns
    -------
    int64[p]

    Raises
    ------
    GraphError
        Not pairs of vertices, or an array that does not fit the graph.

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.algorithms.operators import intersect
    >>> g = lu.Graph.from_edges([0, 1, 2, 2, 3], [1, 2, 0, 3, 0])
    >>> intersect(g, [(0, 2), (1, 3)]).tolist()
    [2, 2]
    """
    xp = module_of(pairs, each)
    given = array_of(pairs, xp)
    given = given.reshape(0, 2) if given.size == 0 else given
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise GraphError(f"pairs must be whole numbers of shape (p, 2), not {given.shape}")
    rows: Any = rows_of(graph) if xp is np else device_rows_of(graph)
    if each is not None:
        check_changeable("each", each, xp)
        if each.dtype != np.int64 or each.shape != (rows.n_vertices,):
            raise GraphError(f"each must be int64 with {rows.n_vertices} entries, one per vertex")
    ends = given.astype(np.int64)
    check_vertices(ends.ravel(), rows.n_vertices)
    if xp is not np:
        from louvain_um.gpu.algorithms.written import operators

        # Kernels take addresses: what lies otherwise is changed in a copy.
        counted: Any = None if each is None else xp.ascontiguousarray(each)
        found: NDArray[np.int64] = operators.count_common(
            rows, xp.ascontiguousarray(ends.astype(np.uint32)), counted
        )
        if each is not None and counted is not each:
            each[...] = counted
        return found
    from louvain_um.cpu.algorithms.operators import arrays, count_common

    counts = np.zeros(len(ends), np.int64)
    count_common(arrays(rows), ends, counts, np.empty(0, np.int64) if each is None else each)
    return counts


def module_of(*arrays: Any) -> Any:
    """Return CuPy if one of the arrays is its, else NumPy."""
    if any(hasattr(array, "__cuda_array_interface__") for array in arrays):
        import cupy

        return cupy
    return np


def _filter_there(items: Any, known: Expression, values: dict[str, Any]) -> Any:
    """Return the items that meet a condition, on the device."""
    import cupy

    from louvain_um.gpu.algorithms.written import operators

    text = known.cuda(**{name: f"arrays[{k}][v]" for k, name in enumerate(values)})
    arrays = [cupy.ascontiguousarray(array, np.int64) for array in values.values()]
    frontier = items.astype(np.uint32)
    kept, fault = operators.keep(frontier, arrays, text)
    if fault:
        raise known.divided_by_zero()
    return frontier[kept]


def _advance_there(
    rows: Any,
    items: Any,
    known: Expression,
    combine: str,
    into: Any,
    before: Any,
    ends: tuple[Any, Any],
) -> Any:
    """Combine along arcs on the device; return what has changed."""
    import cupy

    from louvain_um.gpu.algorithms.written import operators

    xs, ys = (cupy.ascontiguousarray(array, np.int64) for array in ends)
    # Kernels take addresses: what lies otherwise is changed in a copy.
    target = cupy.ascontiguousarray(into)
    fault = operators.follow(rows, items.astype(np.uint32), combine, known.cuda(), xs, ys, target)
    if fault:
        into[...] = before
        raise known.divided_by_zero()
    if target is not into:
        into[...] = target
    return cupy.flatnonzero(into != before).astype(np.uint32)


def vertices_of(frontier: Any, xp: Any) -> Any:
    """Return the vertices of a frontier as int64, each once, ascending."""
    given = array_of(frontier, xp)
    if given.size and given.dtype.kind not in "iu":
        raise GraphError(f"vertices must be whole numbers, not {given.dtype}")
    check_vertices(given, 1 << 32)  # before the type changes: others would wrap around
    return xp.unique(given.astype(np.int64))


def array_of(given: Any, xp: Any) -> Any:
    """Return what a caller gave as an array; refuse masked entries and rows of several lengths."""
    if np.ma.is_masked(given):
        raise GraphError("an array has masked entries; leave them out, or fill them")
    try:
        return xp.asarray(given)
    except ValueError as error:
        raise GraphError(f"no array of integers ({error}); give entries of one length") from None


def check_changeable(name: str, array: Any, xp: Any) -> None:
    """Refuse what a call cannot change in place."""
    masked = isinstance(array, np.ma.MaskedArray)
    if not isinstance(array, xp.ndarray) or masked or (xp is np and not array.flags.writeable):
        raise GraphError(f"{name} must be an array that can be changed; pass a copy")


def check_values(array: NDArray[Any]) -> None:
    """Refuse an array that is not one of integers per vertex."""
    if array.ndim != 1 or array.dtype.kind not in "biu":
        raise GraphError(f"arrays must hold one integer per vertex, not {array.dtype} "
                         f"of shape {array.shape}")  # fmt: skip


def check_vertices(items: NDArray[np.int64], n: int) -> None:
    """Refuse vertices outside 0 … n − 1."""
    if items.size and not 0 <= int(items.min()) <= int(items.max()) < n:
        wrong = int(items.min()) if items.min() < 0 else int(items.max())
        raise GraphError(f"{wrong} is no vertex; vertices are 0 … {n - 1}")
