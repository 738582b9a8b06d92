"""The algorithms as programs: the arrays of their CUDA kernels, and how these access them.

Counts are upper bounds that follow from the size of a graph: a search visits every arc, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from louvain_um.errors import OptionError
from louvain_um.placement.program import Atomic, Gather, Phase, Program, ProgramArray, Stream

Arrays = list[ProgramArray]
ITERATIONS: Final = 50
"""Of PageRank: how many a run takes is known only afterwards."""

ROUNDS: Final = 4
"""Passes over all arcs that Borůvka's rounds and near and far piles come to; not all are visited
again."""


def program_of(name: str, *, n_vertices: int, n_arcs: int, weighted: bool = False) -> Program:
    """Return an algorithm as a program, which `louvain_um.plan` places.

    Parameters
    ----------
    name : str
        "bfs", "sssp", "components", "mst", "pagerank", "triangles" or "spmv".
    n_vertices, n_arcs : int
    weighted : bool
        Whether arcs have weights, of 4 bytes.

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
    passes, own = BUILDERS[name](n_vertices, n_arcs)
    heavy = weighted and name in ("sssp", "mst", "pagerank", "spmv")
    return Program(
        name=name,
        arrays=[*rows(n_vertices, n_arcs, passes, weighted=heavy), *own],
        phases=[Phase(name="run", operations=float(passes * n_arcs))],
    )


def program_for(name: str, graph: Any) -> Program:
    """Return an algorithm on a graph as a program.

    Raises
    ------
    OptionError
        There is no such algorithm.

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.algorithms.programs import program_for
    >>> g = lu.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> program_for("spmv", g).arrays[1].size
    8
    """
    from louvain_um.formats.reading import graph_of
    from louvain_um.graph.graph import Graph

    check_name(name)
    graph = graph if isinstance(graph, Graph) else graph_of(graph)
    weighted = graph.weights is not None
    return program_of(name, n_vertices=graph.n_vertices, n_arcs=graph.n_arcs, weighted=weighted)


def check_name(name: str) -> None:
    """Refuse what is no algorithm, before a long read.

    Raises
    ------
    OptionError
        There is no such algorithm.
    """
    if name not in BUILDERS:
        raise OptionError("program", name, f"must be one of {', '.join(BUILDERS)}")


def rows(n: int, m: int, passes: float, *, weighted: bool) -> Arrays:
    """Return the arrays of the graph, gone over so many times."""
    found = [graph_array("offsets", n + 1, "i8", passes), graph_array("targets", m, "u4", passes)]
    return [*found, graph_array("weights", m, "u4", passes)] if weighted else found


def graph_array(name: str, size: int, dtype: str, passes: float) -> ProgramArray:
    """Return an array that holds part of the graph."""
    return ProgramArray(
        name=name, shape=size, dtype=dtype, group="graph", role=name, reads=Stream(passes),
        from_host=1, given=True,
    )  # fmt: skip


def result(name: str, size: int, dtype: str, accesses: Gather | Stream) -> ProgramArray:
    """Return an array that holds the answer, or part of it."""
    return ProgramArray(
        name=name, shape=size, dtype=dtype, group="result", role=name, reads=accesses,
        writes=Stream(), to_host=1,
    )  # fmt: skip


def scratch(name: str, size: int, dtype: str, accesses: Gather | Stream) -> ProgramArray:
    """Return an array that is used on the way."""
    return ProgramArray(
        name=name, shape=size, dtype=dtype, group="scratch", role=name, reads=accesses,
        writes=Stream(),
    )  # fmt: skip


def _bfs(n: int, m: int) -> tuple[float, Arrays]:
    return 1, [
        result("distances", n, "i4", Gather(m)),
        result("parents", n, "i8", Stream()),
        scratch("least_parents", n, "u4", Atomic(n)),
        scratch("queue", n, "u4", Stream()),
        scratch("arcs_before", n + 1, "i8", Stream()),
        scratch("front", (n + 31) // 32, "u4", Gather(m)),
        scratch("next_front", (n + 31) // 32, "u4", Stream()),
    ]


def _sssp(n: int, m: int) -> tuple[float, Arrays]:
    return ROUNDS + 1, [
        result("distances", n, "u8", Atomic((ROUNDS + 1) * m)),
        result("parents", n, "i8", Stream()),
        scratch("near", 2 * n, "u4", Stream(ROUNDS)),
        scratch("far", 2 * n, "u4", Stream(ROUNDS)),
        scratch("stamps", n, "u4", Atomic(ROUNDS * n)),
        scratch("is_far", n, "u4", Atomic(ROUNDS * n)),
        scratch("arcs_before", n + 1, "i8", Stream(ROUNDS)),
    ]


def _components(n: int, m: int) -> tuple[float, Arrays]:
    return 1, [result("components", n, "u4", Atomic(4 * n))]


def _mst(n: int, m: int) -> tuple[float, Arrays]:
    return ROUNDS, [
        scratch("component", n, "u4", Gather(ROUNDS * m)),
        scratch("hook", n, "u4", Gather(ROUNDS * n)),
        scratch("choice", n, "u4", Stream(ROUNDS)),
        scratch("choice_weight", n, "u8", Stream(ROUNDS)),
        scratch("least_weight", n, "u8", Atomic(ROUNDS * n)),
        scratch("least_pair", n, "u8", Atomic(ROUNDS * n)),
        result("edges", n, "u8", Stream()),
        result("edge_weights", n, "u8", Stream()),
    ]


def _pagerank(n: int, m: int) -> tuple[float, Arrays]:
    return ITERATIONS, [
        result("ranks", n, "i8", Stream(ITERATIONS)),
        scratch("row_weights", n, "f8", Stream(ITERATIONS)),
        scratch("shares", n, "f8", Gather(ITERATIONS * m // 2)),
        scratch("next_shares", n, "f8", Gather(ITERATIONS * m // 2)),
    ]


def _triangles(n: int, m: int) -> tuple[float, Arrays]:
    # An arc's end has at most the root of m arcs to higher degrees.
    upward = m / 2 * m**0.5
    return 2, [
        result("counts", n, "u8", Atomic(m)),
        scratch("begins", n + 1, "i8", Gather(m)),
        scratch("upward", m // 2 + 1, "u4", Gather(upward)),
    ]


def _spmv(n: int, m: int) -> tuple[float, Arrays]:
    x = ProgramArray(
        name="x", shape=n, dtype="f8", group="vector", role="x", reads=Gather(m), from_host=1,
        given=True,
    )  # fmt: skip
    return 1, [x, result("y", n, "f8", Stream())]


BUILDERS: Final[Mapping[str, Callable[[int, int], tuple[float, Arrays]]]] = {
    "bfs": _bfs,
    "sssp": _sssp,
    "components": _components,
    "mst": _mst,
    "pagerank": _pagerank,
    "triangles": _triangles,
    "spmv": _spmv,
}
"""Passes over the arcs, and arrays beside the graph, by algorithm."""
