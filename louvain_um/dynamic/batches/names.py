"""What a batch is made of as callers have it: names of vertices, columns, and the first graph."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.plain_data import collected, is_missing
from louvain_um.dynamic.batches.batch import ANEW, whole_number
from louvain_um.dynamic.declared import refuse_many_vertices
from louvain_um.errors import GraphError, OptionError, check_switch, is_number
from louvain_um.formats.arrow import from_arrow
from louvain_um.formats.column_roles import choose
from louvain_um.formats.ids import name_array
from louvain_um.formats.networks import DIRECTED
from louvain_um.formats.read_options import ReadOptions
from louvain_um.formats.tables import refuse_cross_table
from louvain_um.graph.graph import Graph
from louvain_um.graph.kinds import refuse_kinds
from louvain_um.graph.limits import MAX_VERTICES


def edge_columns(what: str, edges: Any, *, weighted: bool) -> tuple[Any, ...] | None:
    """Return two columns of ends, and one of weights if there are any; None for no edges."""
    if edges is None:
        return None
    if isinstance(edges, tuple | list) and len(edges) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if type(edges).__module__ == "networkx.classes.reportviews":
        return _of_view(edges, weighted)
    if isinstance(edges, list) and all(isinstance(edge, tuple) for edge in edges):
        widths = {len(edge) for edge in edges}
        if len(widths) == 1 and widths <= {2, 3}:
            return tuple(list(column) for column in zip(*edges, strict=True))
    elif isinstance(edges, tuple | list) and len(edges) in (2, 3):
        return tuple(edges)
    elif hasattr(edges, "is_directed") and hasattr(edges, "edges"):
        return _of_network(edges, weighted)
    elif hasattr(table := collected(edges), "columns") and hasattr(table, "__getitem__"):
        return _of_table(table, weighted)
    elif getattr(edges, "ndim", 0) == 2 and edges.shape[1] == 2:
        return edges[:, 0], edges[:, 1]
    raise GraphError(
        f"{what} must be arrays (u, v) or (u, v, w), a list of edges, a table or a networkx graph; "
        f"pass {what}=(u, v)"
    )


def _of_table(table: Any, weighted: bool) -> tuple[Any, ...]:
    """Return columns of a pandas, Arrow or Polars table: those with known names, or the first."""
    arrow = hasattr(table, "column_names")
    titles = list(table.column_names if arrow else table.columns)
    if len(titles) < 2:
        raise GraphError(f"an edge table needs two columns; got {titles}")
    refuse_cross_table(table, ReadOptions())
    roles = choose(titles, len(titles), ReadOptions())
    places = [roles.source, roles.target]
    if weighted and roles.weight is not None:
        places.append(roles.weight)
    if arrow:
        return tuple(from_arrow(table.column(place), titles[place]) for place in places)
    try:
        return tuple(np.asarray(table[titles[place]]) for place in places)
    except Exception:  # Polars raises one of its own
        raise GraphError(
            "a column of the table cannot be read; convert it to integers, real numbers or text"
        ) from None


def _of_network(graph: Any, weighted: bool) -> tuple[Any, ...]:
    """Return the ends of a networkx graph's edges, and their attribute `weight` if any has it."""
    if graph.is_directed():
        raise GraphError(DIRECTED.partition(";")[0] + "; pass graph.to_undirected()")
    return _with_weights(list(graph.edges(data="weight")), weighted)


def _of_view(view: Any, weighted: bool) -> tuple[Any, ...]:
    """Return what `_of_network` does for `graph.edges`, or `graph.edges(data=…)`."""
    if type(view).__name__.startswith(("In", "Out")):
        raise GraphError(DIRECTED.partition(";")[0] + "; pass graph.to_undirected().edges")
    edges = list(view.data("weight") if hasattr(view, "data") else view)
    if any(len(edge) > 3 for edge in edges):
        raise GraphError("edges of a multigraph come with keys; pass the graph itself")
    triples = [(*edge, None)[:3] for edge in edges]
    attributes = [w.get("weight") if isinstance(w, dict) else w for _, _, w in triples]
    return _with_weights(
        [(u, v, w) for (u, v, _), w in zip(triples, attributes, strict=True)], weighted
    )


def _with_weights(edges: list[tuple[Any, Any, Any]], weighted: bool) -> tuple[Any, ...]:
    """Return columns of edges of a network, of which those without a weight have 1."""
    columns = [edge[0] for edge in edges], [edge[1] for edge in edges]
    weights = [edge[2] for edge in edges]
    if weighted and any(weight is not None for weight in weights):
        return *columns, [1 if weight is None else weight for weight in weights]
    return columns


def graph_of_start(graph_or_n: Any) -> Graph:
    """Return the graph to begin with."""
    refuse_kinds(graph_or_n, "a DynamicGraph begins with")
    if isinstance(graph_or_n, Graph):
        return graph_or_n
    try:
        n = whole_number(graph_or_n)
    except TypeError:
        from louvain_um.formats.reading import graph_of

        return graph_of(graph_or_n)
    if not 0 <= n <= MAX_VERTICES:
        raise GraphError(f"the number of vertices must lie in 0 … {MAX_VERTICES}, not {n}")
    refuse_many_vertices(n)
    none = np.zeros(0, np.uint32)
    return Graph(np.zeros(n + 1, np.int64), none, None, np.zeros(n, np.int64), check=False)


def weights_at(
    graph: Graph, weighted: bool | None, scale: float | None
) -> NDArray[np.uint32] | NDArray[np.int64] | None:
    """Return the weights to begin with, at the scale asked for; None for an unweighted graph."""
    if weighted is not None:
        weighted = check_switch("weighted", weighted)
    if scale is not None:
        refuse_scale(scale)
        if scale < graph.scale:
            raise GraphError(
                f"scale {scale:g} is below the graph's {graph.scale:g}; pass at least that, "
                f"or {ANEW}"
            )
    if graph.scale > 2**62:  # more than a saved tracker holds
        raise GraphError("the graph's weights are too small for changes; multiply them by 2**40")
    factor = 1.0 if scale is None else scale / graph.scale
    if weighted is False and graph.weighted:
        raise GraphError(
            "the graph has weights; leave out weighted=False, or build it without weights"
        )
    if graph.weights is None:
        if not weighted:
            if factor != 1.0:
                raise GraphError("scale is for real weights; pass weighted=True with it")
            return None
        weights: NDArray[Any] = np.ones(graph.n_arcs, np.uint32)
    else:
        weights = graph.weights
    if factor == 1.0:
        return weights
    heavier = weights.astype(np.int64) * int(factor)
    return heavier.astype(np.uint32) if heavier.max(initial=0) < 2**32 else heavier


def refuse_scale(scale: float) -> None:
    """Raise an OptionError unless a scale is a power of two that leaves room for weights."""
    known = is_number(scale)
    known = known and abs(scale) <= 2**52  # NaN is not
    mantissa, exponent = np.frexp(float(scale)) if known else (0.0, 0)
    if not (mantissa == 0.5 and exponent <= 53):
        raise OptionError("scale", scale, "must be a power of two up to 2^52")


_NONE: NDArray[Any] = np.empty(0, object)


def _nothing() -> None:
    """Return what a reference to an array that has gone does."""


class Names:
    """The name of each vertex; a removed vertex has none, and its name may be given again."""

    def __init__(self, names: Iterable[Hashable]) -> None:
        self.of: list[Any] = list(names)
        named = [(name, place) for place, name in enumerate(self.of) if name is not None]
        self.ids: dict[Any, int] = dict(named)
        self._counts = Counter(map(_kind, self.ids))
        self._array: Callable[[], NDArray[Any] | None] = _nothing
        """The first names as an array, while somebody holds it."""
        if len(self.ids) != len(named):
            raise GraphError("some vertices have the same name; make the names different")

    def __getstate__(self) -> dict[str, Any]:
        # Weak references cannot be pickled.
        return {**self.__dict__, "_array": _nothing}

    @property
    def kinds(self) -> set[str]:
        """Which kinds of names there are."""
        return set(+self._counts)

    def add(self, names: list[Any]) -> None:
        """Name the next vertices; the caller has made sure that the names are new."""
        self.ids.update(zip(names, range(len(self.of), len(self.of) + len(names)), strict=True))
        self.of += names
        self._counts.update(map(_kind, names))

    def drop(self, count: int) -> None:
        """Forget the last `count` vertices."""
        known, array = self._array(), self._array
        self.remove(np.arange(len(self.of) - count, len(self.of), dtype=np.uint32))
        del self.of[len(self.of) - count :]
        if known is not None and len(known) <= len(self.of):
            self._array = array

    def remove(self, ids: NDArray[np.uint32]) -> None:
        """Free the names of some vertices."""
        for place in ids.tolist():
            del self.ids[self.of[place]]
            self._counts[_kind(self.of[place])] -= 1
            self.of[place] = None
        self._array = _nothing

    def fresh(self, given: Any) -> list[Any]:
        """Return the names of vertices to add, a list; refuse those that there are."""
        if isinstance(given, int | np.integer | str):
            raise GraphError("vertices of this graph have names; pass add_vertices([name, …])")
        listed = as_list(given)
        if len(set(listed)) != len(listed) or any(name in self.ids for name in listed):
            raise GraphError("a vertex of one of these names is there; leave it out")
        self._refuse_others(listed)
        return listed

    def translated(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of a batch with vertices for the names at both ends."""
        return {
            what: columns and (*(self.ids_of(ends, what) for ends in columns[:2]), *columns[2:])
            for what, columns in given.items()
        }

    def unknown(self, *columns: Any) -> list[Any]:
        """Return the names that no vertex has, each once, sorted where they can be compared."""
        new = {name for column in columns for name in as_list(column) if name not in self.ids}
        try:
            listed = sorted(new)
        except TypeError:
            listed = sorted(new, key=lambda name: (str(type(name)), str(name)))
        self._refuse_others(listed)
        return listed

    def _refuse_others(self, new: list[Any]) -> None:
        """Raise for names of another kind than the others: most likely the same, unconverted."""
        known = self.kinds
        for name in new:
            if is_missing(name):
                raise GraphError("the name of a vertex is missing; leave the edge out")
            kind = _kind(name)
            if not known and kind == "reals":
                raise GraphError(
                    f"a vertex has the real number {name!r} for a name; use whole numbers"
                )
            one = next(iter(self.ids)) if known else new[0]
            if (known or {_kind(one)}) in ({"text"}, {"numbers"}) and kind != _kind(one):
                raise GraphError(
                    f"vertices are named by {_kind(one)}, such as {one!r}, but {name!r} is not; "
                    "convert it"
                )

    def ids_of(self, column: Any, what: str) -> NDArray[np.int64]:
        """Return the vertices of some names."""
        names = as_list(column)
        try:
            return np.array([self.ids[name] for name in names], np.int64)
        except KeyError as error:
            raise GraphError(
                f"{what}: no vertex is named {error.args[0]!r}; insert an edge of it first, or "
                "call add_vertices"
            ) from None

    def at(self, ids: NDArray[np.uint32]) -> NDArray[Any]:
        """Return the names of some vertices; None for removed ones."""
        return name_array([self.of[place] for place in ids.tolist()]) if len(ids) else _NONE

    def array(self) -> NDArray[Any]:
        """Return the name of each vertex, None for removed ones; others may hold the same array."""
        known = self._array()
        if known is None:
            known = _NONE
        if len(known) < len(self.of):
            known = self._longer(known)
            known.flags.writeable = False
            self._array = weakref.ref(known)
        return known

    def _longer(self, known: NDArray[Any]) -> NDArray[Any]:
        """Return an array of all names, of which some are known."""
        fresh = name_array(self.of[len(known) :])
        if len(known) and known.dtype.kind == fresh.dtype.kind:
            return np.concatenate([known, fresh])
        return name_array(self.of) if len(known) else fresh


def _kind(name: Any) -> str:
    if isinstance(name, str):
        return "text"
    if isinstance(name, int | np.integer):
        return "numbers"
    return "reals" if isinstance(name, float | np.floating) else "others"


def as_list(column: Any) -> list[Any]:
    """Return a column as a list of plain Python values."""
    values = column.get() if type(column).__module__.startswith("cupy") else column
    if isinstance(values, str | bytes) or not (hasattr(values, "ndim") or np.iterable(values)):
        raise GraphError(f"names must be a list or an array, not {values!r}; pass [name, …]")
    if getattr(values, "ndim", 1) != 1:
        raise GraphError(f"names must be one-dimensional, not {values.shape}; flatten them")
    listed: list[Any] = values.tolist() if hasattr(values, "tolist") else list(values)
    for name in listed:
        if not isinstance(name, Hashable):
            raise GraphError(f"{name!r} cannot be the name of a vertex; use numbers or text")
    return listed


def are_names(columns: tuple[Any, ...] | None) -> bool:
    """Return whether the ends of edges are text."""
    return columns is not None and any(
        isinstance(next(iter(ends), None), str) for ends in columns[:2] if np.iterable(ends)
    )
