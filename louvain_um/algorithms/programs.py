"""The algorithms as programs: the arrays of their CUDA kernels, and how these access them.

Counts are upper bounds that follow from the size of a graph: a search visits every arc, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import log
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike

from louvain_um.errors import GraphError, OptionError, check_choice, shown
from louvain_um.gpu.algorithms.workspace import CONTROL_WORDS
from louvain_um.gpu.graph import DeviceGraph, there_of
from louvain_um.graph.graph import Graph
from louvain_um.graph.kinds import refuse_kinds
from louvain_um.graph.row_view import RowView
from louvain_um.placement.program import Atomic, Gather, Phase, Program, ProgramArray, Stream
from louvain_um.placement.program.program import Accesses


def converted(graph: Any) -> Any:
    """Return a graph or a store of rows as it is, and anything else as a graph."""
    if isinstance(graph, Graph | DeviceGraph) or has_rows(graph):
        return graph
    from louvain_um.formats.reading import graph_of

    return graph_of(graph)


def has_rows(graph: Any) -> bool:
    """Return whether an object is a store that shows its rows, such as a changing graph."""
    return hasattr(graph, "view") and hasattr(graph, "snapshot")


def rows_of(graph: Any, *, linked: bool = True) -> RowView:
    """Return the rows of a graph in host memory; those in linked blocks, or a compressed copy."""
    graph = converted(graph)
    if isinstance(graph, DeviceGraph):
        graph = graph.to_host()
    if isinstance(graph, Graph):
        return RowView.of(graph)
    show = getattr(graph, "linked_view", graph.view) if linked else graph.view
    view: RowView = show()
    return view


def rows_there(graph: Any, *, linked: bool = True) -> Any:
    """Return the rows of a graph that are in a device's memory, as `rows_of`; None if none are."""
    if linked and hasattr(graph, "linked_device_view"):
        return graph.linked_device_view()
    graph = there_of(graph) or graph
    if isinstance(graph, DeviceGraph):
        from louvain_um.gpu.algorithms.workspace import KernelRows

        return KernelRows.of(graph)
    return graph.device_view() if hasattr(graph, "device_view") else None


def device_rows_of(graph: Any, *, linked: bool = True) -> Any:
    """Return the rows of a graph in the current device's memory, copied if they are not there."""
    graph = converted(graph)
    found = rows_there(graph, linked=linked)
    if found is None:
        graph = graph if isinstance(graph, Graph) else graph.snapshot()
        found = rows_there(
            graph if isinstance(graph, DeviceGraph) else DeviceGraph.from_host(graph)
        )
    return found


def vertex_of(graph: Any, name: Any) -> int:
    """Return the number of a vertex, given by its name where the graph has names."""
    n, names = graph.n_vertices, getattr(graph, "names", None)
    name = name.item() if isinstance(name, np.generic) else name
    if names is None:
        alive = getattr(graph, "alive", None)  # some of a changing graph were removed
        if type(name) is int and 0 <= name < n and (alive is None or alive[name]):
            return name
        known = f"0 … {n - 1}" if n else "of which there are none"
    else:
        listed = names.tolist()  # a removed vertex has the name None
        for number, other in enumerate(listed):
            if other is not None and type(other) is type(name) and other == name:
                return number
        first = next((other for other in listed if other is not None), None)
        known = "of which there are none" if first is None else f"such as {first!r}"
    raise GraphError(
        f"{shown(name)} is not a vertex of the graph; use one of its vertices, {known}"
    )


Arrays = list[ProgramArray]
SORTING: Final = 36
SORTING_LEAST: Final = 64 << 10
"""Bytes per edge, and in any case, that CuPy sorts a forest's edges with: a copy of the keys, the
order, as much again for a pass over the digits, and tables."""

SORTING_PASSES: Final = 8
"""Passes over that: one for each byte of a key."""

ITERATIONS: Final = 30
"""Of PageRank, to a change of 1e-8: how many a run takes is known only afterwards."""

SEARCH_LEVELS: Final = 8
"""Levels of a breadth-first search, for each of which all slices of rows come: assumed."""

ROUNDS: Final = 4
"""Passes over all arcs that Borůvka's rounds and near and far piles come to; not all are visited
again."""


def program_of(
    name: str,
    *,
    n_vertices: int,
    n_arcs: int,
    weighted: DTypeLike | bool = False,
    loops: bool = False,
    iterations: int | None = None,
) -> Program:
    """Return an algorithm as a program, which `louvain_um.plan` places.

    Parameters
    ----------
    name : str
        "bfs", "sssp", "components", "mst", "pagerank", "triangles" or "spmv".
    n_vertices, n_arcs : int
    weighted : bool or dtype
        Whether arcs have weights, of 4 bytes, or of which type.
    loops : bool
        Whether there are loops, whose weights are an array of their own.
    iterations : int, optional
        Of PageRank.

    Raises
    ------
    OptionError
        There is no such algorithm.

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.algorithms.programs import program_of
    >>> program = program_of("bfs", n_vertices=1000, n_arcs=10_000)
    >>> [array.name for array in program.arrays][:3]
    ['offsets', 'targets', 'distances']
    >>> lu.plan(program, machine="h200").policy
    'auto'
    """
    check_name(name)
    if n_vertices < 0 or n_arcs < 0:
        raise OptionError("n_vertices", min(n_vertices, n_arcs), "must not be negative")
    dtype = np.dtype("u4" if isinstance(weighted, bool | np.bool_) else weighted or "u4")
    made = BUILDERS[name](n_vertices, n_arcs, iterations or ITERATIONS)
    heavy = bool(weighted) and name in WEIGHED
    arrays = [
        graph_array("offsets", n_vertices + 1, "i8", made.rows),
        graph_array("targets", n_arcs, "u4", made.targets, made.by_rows),
        *([graph_array("weights", n_arcs, dtype, made.rows, made.by_rows)] if heavy else []),
        *([graph_array("loops", n_vertices, "u8", made.rows)] if loops and name in LOOPS else []),
        *made.arrays,
        ProgramArray(name="control", shape=CONTROL_WORDS, dtype="u8", group="scratch",
                     role="control", on_device=True),
    ]  # fmt: skip
    return Program(name=name, arrays=arrays, phases=made.phases(n_arcs))


def program_for(name: str, graph: Any) -> Program:
    """Return an algorithm on a graph as a program.

    Raises
    ------
    OptionError
        There is no such algorithm.
    GraphError
        The object is not an undirected graph.

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.algorithms.programs import program_for
    >>> g = lu.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> program_for("spmv", g).arrays[1].size
    8
    """
    check_name(name)
    graph = converted(graph)
    refuse_kinds(graph, "these algorithms take")
    return program_of(name, **size_of(graph.snapshot() if has_rows(graph) else graph))


def size_of(graph: Any) -> dict[str, Any]:
    """Return what `program_of` takes of a graph."""
    return {
        "n_vertices": graph.n_vertices,
        "n_arcs": graph.n_arcs,
        "weighted": False if graph.weights is None else graph.weights.dtype,
        "loops": graph.has_loops,
    }


def iterations_to(tolerance: float, most: int) -> int:
    """Return how many iterations PageRank is expected to take."""
    if tolerance <= 0:
        return most
    return max(1, min(most, round(ITERATIONS * log(tolerance) / log(1e-8))))


def check_name(name: str) -> None:
    """Refuse an unknown algorithm before a long read."""
    check_choice("program", name, BUILDERS)


def graph_array(
    name: str, size: int, dtype: DTypeLike, reads: Accesses, by_rows: float = 0.0
) -> ProgramArray:
    """Return an array that holds part of the graph."""
    return ProgramArray(
        name=name, shape=size, dtype=dtype, group="graph", role=name, reads=reads, from_host=1,
        given=True, by_rows=by_rows,
    )  # fmt: skip


def result(name: str, size: int, dtype: str, accesses: Accesses) -> ProgramArray:
    """Return an array that holds the answer, or part of it."""
    return ProgramArray(
        name=name, shape=size, dtype=dtype, group="result", role=name, reads=accesses,
        writes=Stream(), to_host=1,
    )  # fmt: skip


def scratch(name: str, size: int, dtype: str, accesses: Accesses) -> ProgramArray:
    """Return an array that is used on the way."""
    return ProgramArray(
        name=name, shape=size, dtype=dtype, group="scratch", role=name, reads=accesses,
        writes=Stream(),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmAccesses:
    """What an algorithm declares."""

    passes: float
    arrays: Arrays
    rows: Accesses = ()
    targets: Accesses = ()
    names: Mapping[str, float] = field(default_factory=lambda: {"run": 1.0})
    by_rows: float = 0.0

    def __post_init__(self) -> None:
        rows = self.rows or Stream(self.passes)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "targets", self.targets or rows)

    def phases(self, arcs: int) -> list[Phase]:
        """Return its phases on so many arcs."""
        most = max(self.names, key=lambda name: self.names[name])
        return [
            Phase(name=name, passes=passes, operations=self.passes * arcs * (name == most))
            for name, passes in self.names.items()
        ]


def _bfs(n: int, m: int, iterations: int) -> AlgorithmAccesses:
    return AlgorithmAccesses(passes=1, by_rows=SEARCH_LEVELS, arrays=[
        result("distances", n, "i4", Gather(m)),
        result("parents", n, "i8", Stream()),
        scratch("least_parents", n, "u4", Atomic(n)),
        scratch("queue", n, "u4", Stream()),
        scratch("arcs_before", n + 1, "i8", Stream()),
        scratch("front", (n + 31) // 32, "u4", Gather(m)),
        scratch("next_front", (n + 31) // 32, "u4", Stream()),
    ])  # fmt: skip


def _sssp(n: int, m: int, iterations: int) -> AlgorithmAccesses:
    return AlgorithmAccesses(passes=ROUNDS + 1, arrays=[
        result("distances", n, "u8", Atomic((ROUNDS + 1) * m)),
        result("parents", n, "i8", Stream()),
        scratch("near", 2 * n, "u4", Stream(ROUNDS)),
        scratch("far", 2 * n, "u4", Stream(ROUNDS)),
        scratch("stamps", n, "u4", Atomic(ROUNDS * n)),
        scratch("is_far", n, "u4", Atomic(ROUNDS * n)),
        scratch("arcs_before", n + 1, "i8", Stream(ROUNDS)),
    ])  # fmt: skip


def _components(n: int, m: int, iterations: int) -> AlgorithmAccesses:
    return AlgorithmAccesses(passes=1, arrays=[result("components", n, "u4", Atomic(4 * n))])


def _mst(n: int, m: int, iterations: int) -> AlgorithmAccesses:
    joining = [
        scratch("component", n, "u4", Gather(ROUNDS * m)),
        scratch("hook", n, "u4", Gather(ROUNDS * n)),
        scratch("choice", n, "u4", Stream(ROUNDS)),
        scratch("choice_weight", n, "u8", Stream(ROUNDS)),
        scratch("least_weight", n, "u8", Atomic(ROUNDS * n)),
        scratch("least_pair", n, "u8", Atomic(ROUNDS * n)),
    ]
    sorting = scratch("sorting", SORTING * n + SORTING_LEAST, "u1", Stream(SORTING_PASSES))
    return AlgorithmAccesses(
        passes=ROUNDS,
        arrays=[
            *(replace(array, phases=("run",)) for array in joining),
            result("edges", n, "u8", {"run": Stream(), "sort": Stream(2)}),
            result("edge_weights", n, "u8", {"run": Stream(), "sort": Stream(2)}),
            replace(sorting, phases=("sort",)),
        ],
        rows={"run": Stream(ROUNDS)},
        names={"run": 1.0, "sort": 1.0},
    )


def _pagerank(n: int, m: int, iterations: int) -> AlgorithmAccesses:
    each = Stream(iterations)
    return AlgorithmAccesses(
        passes=iterations,
        arrays=[
            result("ranks", n, "i8", {"iterate": each}),
            scratch("row_weights", n, "f8", {"iterate": each}),
            scratch("shares", n, "f8", {"iterate": Gather(iterations * m / 2)}),
            scratch("next_shares", n, "f8", {"iterate": Gather(iterations * m / 2)}),
        ],
        rows={"weigh": Stream(), "iterate": each},
        targets={"iterate": each},
        names={"weigh": 1.0, "iterate": float(iterations)},
        by_rows=iterations,
    )


def _triangles(n: int, m: int, iterations: int) -> AlgorithmAccesses:
    # An arc's end has at most the root of m arcs to higher degrees.
    upward = m / 2 * m**0.5
    return AlgorithmAccesses(passes=2, arrays=[
        result("counts", n, "u8", Atomic(m)),
        scratch("begins", n + 1, "i8", Gather(m)),
        scratch("upward", m // 2 + 1, "u4", Gather(upward)),
    ])  # fmt: skip


def _spmv(n: int, m: int, iterations: int) -> AlgorithmAccesses:
    x = ProgramArray(
        name="x", shape=n, dtype="f8", group="vector", role="x", reads=Gather(m), from_host=1,
        given=True,
    )  # fmt: skip
    return AlgorithmAccesses(passes=1, by_rows=1, arrays=[x, result("y", n, "f8", Stream())])


BUILDERS: Final[Mapping[str, Callable[[int, int, int], AlgorithmAccesses]]] = {
    "bfs": _bfs,
    "sssp": _sssp,
    "components": _components,
    "mst": _mst,
    "pagerank": _pagerank,
    "triangles": _triangles,
    "spmv": _spmv,
}
"""What each algorithm declares, by vertices, arcs and PageRank's iterations."""

WEIGHED: Final = ("sssp", "mst", "pagerank", "spmv")
LOOPS: Final = ("pagerank", "spmv")
"""Algorithms to which weights, and loops, matter."""
