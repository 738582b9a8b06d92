"""The graph every engine works on: undirected, compressed rows, integer weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louvain_um.errors import (
    GraphError,
    Underflow,
    check_switch,
    check_table,
    checks_kinds,
    warn,
)
from louvain_um.graph.limits import Duplicates, GraphKind, check_kind, check_scale, checked_names


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph in compressed sparse rows; each edge is stored in the rows of both ends.

    Build one with `read_graph`, `as_graph` or `Graph.from_edges`, or from rows. An edge of weight 0
    connects nothing and is left out, with a note.

    Parameters
    ----------
    offsets : int64[n + 1]
        Row `v` is ``targets[offsets[v]:offsets[v + 1]]``.
    targets : uint32[arcs]
        Neighbours, ascending in each row, without repetition and without `v` itself.
    weights : uint32[arcs] or int64[arcs] or None
        Integer weight of each arc, at least 1; None when every weight is 1.
    loops : int64[n]
        Weight of each vertex's self-loop. A loop adds twice its weight to the degree.
    scale : float
        Power of two by which real weights were multiplied; divide by it to show them.
    names : array of length n, optional
        The vertices' names in the source; None when they are 0 … n − 1.
    notes : tuple of str
        Remarks on the input, such as weights that rounded to 0.
    kind : {"undirected", "directed", "bipartite", "signed"}
        A directed graph's rows hold the sum of both directions, a signed graph's weights of both
        signs.
    imbalance : int64[n] or None
        Out-degree less in-degree of each vertex of a directed graph; of a bipartite graph, whose
        edges lead from the first mode to the second, plus or minus the degree.
    attributes : mapping of str to array of length n, optional
        Attributes of the vertices, which describe communities; None or NaN where missing.
    check : bool
        Whether to `validate`, in two passes over the arcs. Rows that are not those of an
        undirected graph make engines fail or crash.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.Graph.from_edges([0, 1, 2], [1, 2, 0])
    >>> g.n_vertices, g.n_edges, g.degrees.tolist()
    (3, 3, [2, 2, 2])
    """

    offsets: NDArray[np.int64]
    targets: NDArray[np.uint32]
    weights: NDArray[np.uint32] | NDArray[np.int64] | None
    loops: NDArray[np.int64]
    scale: float = 1.0
    names: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()
    kind: GraphKind = "undirected"
    imbalance: NDArray[np.int64] | None = None
    attributes: Mapping[str, NDArray[Any]] | None = None
    check: InitVar[bool] = True
    there: ClassVar[Any] = None
    """What has the arrays on a device (`louvain_um.gpu.graph`); None if none has."""

    def __post_init__(self, check: bool) -> None:
        for name in ("offsets", "targets", "weights", "loops", "imbalance"):
            array = getattr(self, name)
            if array is None and name in ("weights", "imbalance"):
                continue
            if not hasattr(array, "dtype"):
                what = type(array).__name__
                raise GraphError(f"{name} must be an array, not {what}; use Graph.from_edges")
            if np.ndim(array) != 1:
                raise GraphError(f"arrays must be one-dimensional, not of shape {np.shape(array)}")
        n = len(self.offsets) - 1
        if n < 0 or self.offsets.dtype != np.int64 or self.offsets[0] != 0:
            raise GraphError("offsets must be int64 with at least one entry, starting at 0")
        if self.targets.dtype != np.uint32 or len(self.targets) != self.offsets[-1]:
            raise GraphError("targets must be uint32 with offsets[-1] entries")
        if self.loops.dtype != np.int64 or len(self.loops) != n:
            raise GraphError("loops must be int64 with one entry per vertex")
        if self.weights is not None and (
            self.weights.dtype not in (np.dtype(np.uint32), np.dtype(np.int64))
            or len(self.weights) != len(self.targets)
        ):
            raise GraphError("weights must be uint32 or int64 with one entry per arc")
        if self.names is not None:
            object.__setattr__(self, "names", checked_names(self.names, n))
        check_scale(self.scale)
        check_kind(self.kind)
        check_switch("check", check)
        if self.imbalance is not None and len(self.imbalance) != n:
            raise GraphError("imbalance must have one entry per vertex")
        if check:
            self.validate()
            self._check_attributes(n)
        if self.weights is not None and len(self.weights):
            from louvain_um.core.parallel import over_pieces

            lightest = min(over_pieces(lambda piece: int(piece.min()), self.weights))
            if self.kind == "signed":
                if lightest <= 0 and bool((self.weights == 0).any()):
                    self._leave_out_zeros(self.weights)
            elif lightest < 0:
                first = int(np.argmax(self.weights < 0))
                raise GraphError(f"the weight of arc {first} is negative ({self.weights[first]})")
            elif lightest == 0:
                self._leave_out_zeros(self.weights)

    def validate(self) -> None:
        """Raise a GraphError unless the rows are those of an undirected graph.

        Each row ascends, without repetition and without its own vertex; each edge is in the
        rows of both ends, with the same weight.
        """
        from louvain_um.graph.ids import validate_rows

        validate_rows(self.offsets, self.targets, self.weights)
        if self.kind != "signed" and len(self.loops) and int(self.loops.min()) < 0:
            v = int(np.argmax(self.loops < 0))
            raise GraphError(f"the loop of vertex {v} is negative ({self.loops[v]}); correct it")

    def _check_attributes(self, n: int) -> None:
        """Raise an error unless attributes are arrays of one value for each of n vertices."""
        if self.attributes is not None:
            check_table("attributes", self.attributes)
        for name, values in (self.attributes or {}).items():
            if not isinstance(values, np.ndarray) or values.shape != (n,):
                what = f"one value for each of the {n} vertices"
                raise GraphError(f"attribute {name!r} must be an array of {what}")

    def _leave_out_zeros(self, weights: NDArray[np.uint32] | NDArray[np.int64]) -> None:
        """Drop the arcs of weight 0."""
        from louvain_um.graph.build import left_out, without_zeros

        arcs = self.n_arcs
        rows = without_zeros(self.offsets, self.targets, weights)
        for name, array in zip(("offsets", "targets", "weights"), rows, strict=True):
            object.__setattr__(self, name, array)
        object.__setattr__(self, "notes", self.notes + left_out((arcs - self.n_arcs) // 2))

    @classmethod
    def from_edges(
        cls,
        source: ArrayLike,
        target: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        n_vertices: int | None = None,
        duplicates: Duplicates | None = None,
        names: Sequence[Any] | NDArray[Any] | None = None,
        allow_rounding: bool = False,
        kind: GraphKind = "undirected",
    ) -> Self:
        """Build a graph from a list of edges.

        Parameters
        ----------
        source, target : array of int, length e
            Ends of each edge, 0 … n − 1. Order and direction do not matter, except to `kind`.
        weights : array of int or float, length e, optional
            Non-negative, except in signed graphs. Floats are scaled by a power of two and rounded.
            An edge whose weight is or rounds to 0 is left out; its ends stay.
        n_vertices : int, optional
            Vertices in all, for isolated ones behind the largest id.
        duplicates : {"once", "sum"}, optional
            What an edge listed more than once, in either direction, counts for: one edge
            (of the largest weight listed) or the sum. By default "once" for an unweighted
            list and "sum" for a weighted one.
        names : array or list, optional
            The vertices' names in the source.
        allow_rounding : bool
            Round integer weights whose total exceeds 2^52, instead of raising an error. Those
            with a common power of two that makes the total fit stay exact.
        kind : {"undirected", "directed", "bipartite", "signed"}
            What is kept for `louvain(…, objective=…)`: of "directed", which arc leads where; of
            "bipartite", that all edges lead from one mode to the other; of "signed", negative
            weights.

        Raises
        ------
        GraphError
            Ids out of range, arrays of unequal length, weights negative, NaN or infinite, or
            integers that a graph cannot hold exactly.

        Examples
        --------
        >>> import louvain_um as lu
        >>> lu.Graph.from_edges([0, 1], [1, 0], [0.5, 1.0]).weights.tolist()
        [3, 3]
        """
        from louvain_um.graph.build import build

        built = build(
            source,
            target,
            weights,
            n_vertices=n_vertices,
            duplicates=duplicates,
            allow_rounding=allow_rounding,
            kind=kind,
        )
        for note in built.notes:
            if isinstance(note, Underflow):
                warn(note)
        made: Self = built.rows.graph(
            cls,
            scale=built.scale,
            names=names,
            notes=built.notes,
            kind=kind,
            imbalance=built.imbalance,
        )
        return made

    @property
    def n_vertices(self) -> int:
        """Number of vertices, isolated ones included."""
        return len(self.offsets) - 1

    @property
    def n_arcs(self) -> int:
        """Number of arcs: twice the edges that are not loops."""
        return int(self.offsets[-1])

    @property
    def n_edges(self) -> int:
        """Number of distinct edges, loops included."""
        return self.n_arcs // 2 + int(np.count_nonzero(self.loops))

    @property
    def weighted(self) -> bool:
        """Whether arcs carry weights."""
        return self.weights is not None

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """Weighted degree of each vertex, int64[n]; a loop counts twice."""
        from louvain_um.graph.build import weighted_degrees

        return weighted_degrees(self.offsets, self.weights, self.loops)

    @cached_property
    def total_weight(self) -> int:
        """Sum of all degrees, 2m, as an integer (real weights times `scale`)."""
        from louvain_um.core.parallel import over_pieces

        def total(array: NDArray[Any]) -> int:
            return sum(over_pieces(lambda piece: int(piece.sum(dtype=np.int64)), array))

        arcs = self.n_arcs if self.weights is None else total(self.weights)
        return arcs + 2 * total(self.loops) if self.has_loops else arcs

    @cached_property
    def has_loops(self) -> bool:
        """Whether a vertex has a loop."""
        from louvain_um.core.parallel import over_pieces

        return any(over_pieces(np.any, self.loops))

    @cached_property
    def absolute_degrees(self) -> NDArray[np.int64]:
        """Degree of each vertex by absolute weights, int64[n]; of unsigned graphs, `degrees`."""
        from louvain_um.graph.build import weighted_degrees

        if self.kind != "signed" or self.weights is None:
            return self.degrees
        return weighted_degrees(self.offsets, np.abs(self.weights), np.abs(self.loops))

    def arcs(
        self, begin: int, end: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32] | NDArray[np.int64] | None]:
        """Return targets and weights of some arcs, in host memory."""
        weights: Any = None if self.weights is None else self.weights[begin:end]
        return self.targets[begin:end], weights

    def counts_there(
        self, labels: NDArray[np.uint32], *, parts: bool = False
    ) -> NDArray[np.int64] | None:
        """Return sums of communities that a device adds up which has the arrays; None if none."""
        there = self.there
        return None if there is None else there.community_counts(labels, parts=parts)

    def renewed(self, **fields: Any) -> Self:
        """Return a graph of the same rows, with other values of these fields."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, **fields)
        return made

    @property
    def nbytes(self) -> int:
        """Bytes of offsets, targets, weights and loops."""
        weights = 0 if self.weights is None else self.weights.nbytes
        return self.offsets.nbytes + self.targets.nbytes + weights + self.loops.nbytes

    @checks_kinds
    def to_networkx(self, attributes: Mapping[str, NDArray[Any]] | None = None) -> Any:
        """Return the graph as a `networkx.Graph`.

        Parameters
        ----------
        attributes : mapping of str to array of length n, optional
            Further values for the nodes, by the name of the attribute; the graph's own are
            always there.

        Returns
        -------
        networkx.Graph
            Nodes are names, or else ids; the edge attribute ``weight`` holds weights, if there are
            any. `as_graph` turns it back.

        Raises
        ------
        GraphError
            Two vertices have the same name, or an attribute has another length.
        LouvainUmError
            networkx is not installed.

        Examples
        --------
        >>> import louvain_um as lu
        >>> lu.Graph.from_edges([0, 1], [1, 2], [0.5, 2]).to_networkx().edges[0, 1]
        {'weight': 0.5}
        """
        from louvain_um.graph.export import to_networkx

        return to_networkx(self, {**(self.attributes or {}), **(attributes or {})})

    @checks_kinds
    def to_igraph(self, attributes: Mapping[str, NDArray[Any]] | None = None) -> Any:
        """Return the graph as an `igraph.Graph`.

        Parameters
        ----------
        attributes : mapping of str to array of length n, optional
            Further values for the vertices, by the name of the attribute; the graph's own are
            always there.

        Returns
        -------
        igraph.Graph
            The attribute ``name`` holds names and ``weight`` weights, if there are any; another
            attribute ``name`` becomes ``name_2``. `as_graph` turns it back.

        Raises
        ------
        GraphError
            An attribute has another length.
        LouvainUmError
            igraph is not installed.
        """
        from louvain_um.graph.export import to_igraph

        return to_igraph(self, {**(self.attributes or {}), **(attributes or {})})

    def to_scipy(self) -> Any:
        """Return the adjacency matrix as a SciPy sparse array.

        Returns
        -------
        scipy.sparse.csr_array
            n × n, symmetric; int64, or float64 for real weights. The diagonal holds the weights of
            loops. `as_graph` turns it back, without the names.

        Examples
        --------
        >>> import louvain_um as lu
        >>> lu.Graph.from_edges([0, 1, 1], [1, 1, 0]).to_scipy().toarray().tolist()
        [[0, 1], [1, 1]]
        """
        from louvain_um.graph.export import to_scipy

        return to_scipy(self)

    def to_pandas(self) -> Any:
        """Return the edges as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Columns ``source``, ``target`` (names, or else ids) and, for a weighted graph,
            ``weight``; each edge once, loops included. `as_graph` turns it back, without vertices
            that have no edge.

        Raises
        ------
        LouvainUmError
            pandas is not installed.
        """
        from louvain_um.graph.export import to_pandas

        return to_pandas(self)

    def __repr__(self) -> str:
        kind = "weighted" if self.weighted else "unweighted"
        vertices = "vertex" if self.n_vertices == 1 else "vertices"
        edges = "edge" if self.n_edges == 1 else "edges"
        return f"Graph({self.n_vertices:,} {vertices}, {self.n_edges:,} {edges}, {kind})"
