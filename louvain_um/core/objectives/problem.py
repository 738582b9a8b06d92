"""What a run is to find: an objective on a graph, and constraints on the communities."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.numbering import community_sizes, number_by_size
from louvain_um.core.objectives.objective import Objective, objective_of
from louvain_um.errors import GraphError, OptionError
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.results.given_labels import labels_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """What a run is to find."""

    objective: Objective
    start: NDArray[np.uint32] | None = None
    fixed: NDArray[np.uint8] | None = None
    max_size: int | None = None
    extended: bool = False


def takes_extended_rule(options: Options) -> bool:
    """Return whether a run takes the extended rule: all but modularity without constraints."""
    given = (options.initial, options.fixed, options.max_size)
    return options.objective != "modularity" or any(each is not None for each in given)


def problem_of(graph: Any, options: Options) -> Problem:
    """Return what a run is to find on a graph."""
    objective = objective_of(graph, options.objective, options.resolution)
    start = None if options.initial is None else start_of(graph, options.initial)
    fixed = None if options.fixed is None else fixed_of(graph, options.fixed)
    if start is not None and options.max_size is not None:
        largest = int(community_sizes(start).max(initial=0))
        if largest > options.max_size:
            raise OptionError(
                "max_size",
                options.max_size,
                f"pass at least {largest}",
                problem=f"the start partition has a community of {largest} vertices",
            )
    return Problem(
        objective=objective,
        start=start,
        fixed=fixed,
        max_size=options.max_size,
        extended=takes_extended_rule(options),
    )


def start_of(graph: Graph, initial: Any) -> NDArray[np.uint32]:
    """Return the community of each vertex, named by its smallest member."""
    labels = number_by_size(labels_of(graph, initial))
    first = np.zeros(int(labels.max(initial=0)) + 1, np.uint32)
    vertices = np.arange(len(labels), dtype=np.uint32)[::-1]
    first[labels[::-1]] = vertices  # the last assignment stands: the smallest
    return first[labels]


def fixed_of(graph: Graph, fixed: Any) -> NDArray[np.uint8]:
    """Return 1 for each fixed vertex, given as a mask or as vertices by id or name."""
    n = graph.n_vertices
    if not isinstance(fixed, Iterable) or isinstance(fixed, str | bytes):
        remedy = "must be a list of vertices, or an array that says True or False of each"
        raise OptionError("fixed", fixed, remedy)
    given = np.asarray(fixed if isinstance(fixed, np.ndarray) else list(fixed))
    if given.dtype == np.bool_ and given.shape == (n,):
        return given.astype(np.uint8)
    names = range(n) if graph.names is None else graph.names.tolist()
    place = {name: at for at, name in enumerate(names)} if graph.names is not None else None
    flags = np.zeros(n, np.uint8)
    for vertex in given.tolist():
        at = vertex if place is None else place.get(vertex, -1)
        if not isinstance(at, int) or isinstance(at, bool) or not 0 <= at < n:
            known = f"such as {names[0]!r}" if n else "of which there are none"
            raise GraphError(
                f"fixed vertex {vertex!r} is not in the graph; use its vertices, {known}"
            )
        flags[at] = 1
    return flags
