"""Operators for algorithms that users write: `advance`, `filter`, `segmented_intersection`.

They follow Marrow-Graph (das Neves: GPU Accelerated Dynamic Graph Processing, 2024). What is done
with an arc, a vertex or a common neighbour is a *functor*: a Python function of scalars, to which
arrays come as further arguments: bool, int32, uint32, int64, float32 or float64, of one dimension.
Functors run side by side, in no order. They change arrays in place; what several may change at once
is changed by `atomic_add`, `atomic_min` and `atomic_max`, which return the entry as it was. A
functor returns whether a vertex is kept, or a number to add up; one that returns nothing keeps all.
Operators run where
their arrays are: Numba compiles functors for arrays of NumPy; for those of CuPy they are translated
to CUDA C++, or are CUDA C++ (`Cuda`).

**On a device** functors consist of assignments to names and entries (also ``+=`` and the like),
``if``, ``while``, ``for`` over ``range(end)`` or ``range(begin, end)``, ``break``, ``continue``,
``return``; numbers, ``+ - * / // % & | ^``, comparisons, ``and``, ``or``, ``not``, conditional
expressions; ``min``, ``max``, ``abs``, ``int``, ``float``, ``bool``, ``len``, ``math.sqrt``,
``math.exp``, ``math.log``, the atomics, and numbers from around them. Their source is in a file.

**Answers.** Integers wrap around at 64 bits; what is computed of uint32 alone is unsigned. Sums
of integers, minima and maxima are the same in any order, hence on CPU and device, bit for bit; sums
of floats by `atomic_add` depend on the order in their last places; with ``returns="sums"`` floats
are added in an order that the length of a row decides, and are the same everywhere. With
``balanced=False`` one thread follows a vertex's arcs, in order: what is done to entries of `u`
needs no atomics, and is the same everywhere, too. Minima and maxima compare the values given; what
the type of an array cannot hold wraps around when it is stored. ``math.exp`` and ``math.log`` may
differ in the last place.

**Errors.** A divisor of 0, a place outside an array and, on the CPU, whatever a functor raises end
in an error. Arrays may have been changed by then.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.algorithms.functors import Cuda, Functor, taken
from louvain_um.algorithms.programs import converted, device_rows_of, rows_of
from louvain_um.cpu.algorithms.functors import atomic_add, atomic_max, atomic_min
from louvain_um.errors import GraphError, OptionError, among, check_switch
from louvain_um.graph.row_view import unchanged

__all__ = [
    "Cuda", "advance", "atomic_add", "atomic_max", "atomic_min", "filter", "segmented_intersection",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")


def over_unchanged_rows(operator: Callable[P, R]) -> Callable[P, R]:
    """Let threads that change a graph wait while an operator reads its rows."""

    @functools.wraps(operator)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with unchanged(args[0] if args else kwargs.get("graph")):
            return operator(*args, **kwargs)

    return call


@over_unchanged_rows
def advance(
    graph: Any,
    frontier: ArrayLike | None,
    visit: Any,
    *arguments: Any,
    returns: Literal["unique", "all", "sums"] | None = "unique",
    balanced: bool = True,
) -> Any:
    """Follow every arc of a frontier.

    Parameters
    ----------
    graph : Graph, or a store of rows
        Loops are no arcs; they are in ``graph.loops``.
    frontier : array of int, or None
        Vertices whose arcs are followed, each as often as it is there; None: all.
    visit : function, or Cuda
        Called with ``u`` and ``v``, the ends of an arc, ``w``, its integer weight, ``arc``, its
        place in ``graph.targets``, and the arguments.
    *arguments : arrays and numbers
    returns : {"unique", "all", "sums"} or None
        What is returned: targets that the functor keeps, once each, or as often as they are kept;
        for each vertex of the frontier the sum of what the functor returns for its arcs; or
        nothing, which takes least time.
    balanced : bool
        Whether threads share the arcs of a vertex. If not, one thread follows them, in order, which
        takes less time where vertices have few arcs, and as long as the arcs of a hub one after
        the other where one has many. Threads share the arcs of hubs for sums in any case.

    Returns
    -------
    uint32[k], float64[k] or None
        The next frontier, ascending if unique, else in the order of arcs; sums; of CuPy if arrays
        are.

    Raises
    ------
    OptionError
        A functor that cannot be compiled, goes wrong or does not fit its arguments.
    GraphError
        A vertex that is none.

    Examples
    --------
    >>> import numpy as np, louvain_um as lu
    >>> from louvain_um.algorithms.operators import advance, atomic_min
    >>> def relax(u, v, w, arc, d):
    ...     return atomic_min(d, v, d[u] + w) > d[u] + w
    >>> g = lu.Graph.from_edges([0, 1, 0], [1, 2, 2], [5, 1, 9])
    >>> d, frontier = np.array([0, 100, 100]), [0]
    >>> while len(frontier):
    ...     frontier = advance(g, frontier, relax, d)
    >>> d.tolist()
    [0, 5, 6]
    >>> advance(g, None, lambda u, v, w, arc, d: w * d[v], d, returns="sums").tolist()
    [79.0, 6.0, 5.0]
    """
    if not among(returns, "unique", "all", "sums", None):
        raise OptionError("returns", returns, "must be 'unique', 'all', 'sums' or None")
    check_switch("balanced", balanced)
    xp, engine, rows = side_of(graph, frontier, arguments)
    given, sums = taken(arguments, xp), returns == "sums"
    functor = Functor.of("visit", ("u", "v", "w", "arc"), visit, given, sums=sums)
    if sums:
        items = vertices_of(frontier, rows.n_vertices, xp)
        return engine.sum_arcs(functor, given, rows, items, whole=frontier is None)
    later = xp is not np and returns != "all" and not rows.linked
    items = vertices_of(frontier, rows.n_vertices, xp, later=later)
    if not len(items):
        return xp.empty(0, np.uint32) if returns else None
    try:
        return engine.visit_arcs(functor, given, rows, items, balanced, returns)
    except IndexError:
        return vertices_of(frontier, rows.n_vertices, xp)  # which says what is wrong


@over_unchanged_rows
def filter(
    graph: Any, frontier: ArrayLike | None, keep: Any, *arguments: Any
) -> NDArray[np.uint32]:
    """Return the vertices of a frontier that a functor keeps, in their order.

    Parameters
    ----------
    graph : Graph, or a store of rows
    frontier : array of int, or None
        Vertices; None: all.
    keep : function, or Cuda
        Called with ``v``, the vertex, and the arguments.
    *arguments : arrays and numbers

    Returns
    -------
    uint32[k]
        Of CuPy if the frontier or an array is.

    Raises
    ------
    OptionError
        A functor that cannot be compiled, goes wrong or does not fit its arguments.
    GraphError
        A vertex that is none.

    Examples
    --------
    >>> import numpy as np, louvain_um as lu
    >>> from louvain_um.algorithms.operators import filter
    >>> g = lu.Graph.from_edges([0, 1, 2], [1, 2, 3])
    >>> filter(g, [3, 0, 1], lambda v, x: x[v] > 0.5, np.array([0.9, 0.1, 0.7, 0.6])).tolist()
    [3, 0]
    """
    xp, engine, rows = side_of(graph, frontier, arguments)
    given = taken(arguments, xp)
    functor = Functor.of("keep", ("v",), keep, given)
    items = vertices_of(frontier, rows.n_vertices, xp)
    if len(items):
        kept = engine.keep_items(functor, given, items)
        items = items[kept] if functor.answers else items
    found: NDArray[np.uint32] = items
    return found


@over_unchanged_rows
def segmented_intersection(
    graph: Any, pairs: ArrayLike | None, visit: Any = None, *arguments: Any
) -> NDArray[np.int64]:
    """Count the common neighbours of pairs of vertices, and call a functor for each.

    Parameters
    ----------
    graph : Graph, or a store of rows
    pairs : array of int, shape (p, 2), or None
        None: the ends of every edge once, the smaller first, in the order of the arcs.
    visit : function, or Cuda, optional
        Called with ``a`` and ``b``, a pair, ``c``, a common neighbour, and the arguments.
    *arguments : arrays and numbers

    Returns
    -------
    int64[p]
        Of CuPy if pairs or an array are.

    Raises
    ------
    OptionError
        A functor that cannot be compiled, goes wrong or does not fit its arguments.
    GraphError
        Not pairs of vertices.

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.algorithms.operators import segmented_intersection
    >>> g = lu.Graph.from_edges([0, 1, 2, 2, 3], [1, 2, 0, 3, 0])
    >>> segmented_intersection(g, [(0, 2), (1, 3)]).tolist()
    [2, 2]
    """
    graph = converted(graph)
    xp, engine, rows = side_of(graph, pairs, arguments)
    given = taken(arguments, xp)
    functor = Functor.of("visit", ("a", "b", "c"), count if visit is None else visit, given)
    if pairs is None:
        listed = side_of(graph, None, arguments, linked=False)[2] if rows.linked else rows
        after = xp.cumsum(listed.ends - listed.begins)
        place = xp.arange(listed.n_arcs)
        u = xp.searchsorted(after, place, side="right")
        v = listed.targets[place + (listed.ends - after)[u]]
        once = u < v
        ends = xp.stack([u[once].astype(np.uint32), v[once]], axis=1)
    else:
        ends = array_of(pairs, xp)
        ends = ends.reshape(0, 2) if ends.size == 0 else ends
        if ends.ndim != 2 or ends.shape[1] != 2:
            raise GraphError(f"pairs must be whole numbers of shape (p, 2), not {ends.shape}")
        ends = vertices_of(ends.ravel(), rows.n_vertices, xp).reshape(-1, 2)
    counts: NDArray[np.int64] = engine.visit_common(functor, given, rows, ends)
    return counts


def count(a: int, b: int, c: int) -> None:
    """Do nothing with a common neighbour but count it."""


def side_of(
    graph: Any, given: Any, arguments: tuple[Any, ...], *, linked: bool = True
) -> tuple[Any, Any, Any]:
    """Return the module of the arrays, what runs functors on them, and the graph's rows there."""
    graph = converted(graph)
    if any(hasattr(array, "__cuda_array_interface__") for array in (given, *arguments)):
        import cupy

        from louvain_um.gpu.algorithms import functors as device

        return cupy, device, device_rows_of(graph, linked=linked)
    from louvain_um.cpu.algorithms import functors as host

    return np, host, rows_of(graph, linked=linked)


def vertices_of(given: Any, n: int, xp: Any, *, later: bool = False) -> Any:
    """Return vertices as uint32, all if None; refuse what is outside 0 … n − 1."""
    # `later` passes over uint32, which kernels check, too.
    if given is None:
        return xp.arange(n, dtype=np.uint32)
    items = array_of(given, xp)
    if items.ndim != 1:
        raise GraphError(f"vertices must be of one dimension, not of shape {items.shape}; ravel()")
    if items.size == 0:
        return items.astype(np.uint32)
    if items.dtype.kind not in "iu":
        raise GraphError(f"vertices must be whole numbers, not {items.dtype}")
    if later and items.dtype == np.uint32:
        return xp.ascontiguousarray(items)
    low = int(items.min()) if items.dtype.kind == "i" else 0
    high = int(items.max())
    if low < 0 or high >= n:
        wrong = low if low < 0 else high
        raise GraphError(f"{wrong} is not a vertex; vertices are 0 … {n - 1}")
    return xp.ascontiguousarray(items.astype(np.uint32))


def array_of(given: Any, xp: Any) -> Any:
    """Return what a caller gave as an array; refuse masked entries and rows of several lengths."""
    if np.ma.is_masked(given):
        raise GraphError("an array has masked entries; leave them out, or fill them")
    try:
        return xp.asarray(given)
    except ValueError as error:
        raise GraphError(
            f"not an array of integers ({error}); give entries of one length"
        ) from None
