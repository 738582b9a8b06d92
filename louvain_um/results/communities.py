"""The result of a detection: labels, levels, and the functions that apply to them."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.headroom import check_host_memory
from louvain_um.core.numbering import community_sizes, members, number_by_size
from louvain_um.errors import GraphError, checks_kinds, require_packages, shown
from louvain_um.graph.graph import Graph
from louvain_um.graph.row_view import induced_graph, subgraph
from louvain_um.options import ObjectiveName
from louvain_um.results import display, saving
from louvain_um.results.comparison import Agreement, Significance, compare
from louvain_um.results.description import Description, describe
from louvain_um.results.frame import Library, community_table, to_frame
from louvain_um.results.given_labels import Given, refuse_other_order
from louvain_um.results.partition import Level, labels_at, nested_labels
from louvain_um.results.quality import Quality, dense_labels, memberships, modularity, quality

if TYPE_CHECKING:
    import pandas as pd

    from louvain_um.progress import Progress

__all__ = ["Communities", "Level", "number_by_size"]

ENTRY_BYTES: Final = 150
"""What a vertex takes in a dict, with the lists that it is made of."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Communities:
    """Communities of a graph and the run that found them.

    Engines build it; `louvain`, `leiden` and `Communities.load` return it.

    Parameters
    ----------
    graph : Graph or None
        The graph; None when loaded from a file without it. One that a GPU built for the run stays
        in its memory until the graph is freed; arrays that are asked for are copied to the host.
    labels : uint32[n]
        Community of each vertex, 0 … k − 1 by descending size, ties by smallest member.
    maps : tuple of uint32 arrays
        Map k takes a vertex of level k to its vertex of the next level.
    coarse_labels : tuple of uint32 arrays
        Array k takes a vertex of the level after k to its community at the end of level k;
        empty where every such vertex is a community (Louvain).
    levels : tuple of Level
    modularity : float
        The objective's value; for "cpm", Newman's modularity at resolution 1.
    objective : str
        What was maximised: "modularity", "cpm", "directed", "bipartite" or "signed".
    value : float
        The objective's value, for "cpm" in the units of the graph's weights.
    resolution : float
    method : str
        "louvain" or "leiden".
    timings : mapping of str to float
        Seconds by phase: load, move, refine, aggregate, fetch, total.
    memory : mapping of str to int
        Peak bytes by group: graph, hash, community, scratch.
    provenance : mapping
        Version, device, policy, budget, seed, options, threads.
    library : {"pandas", "polars", "arrow"}
        Library of the table whose communities these are, and of `to_frame`'s.

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.results.communities import Communities
    >>> g = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    >>> r = Communities.of(g, [0, 0, 0, 1, 1, 1])
    >>> r
    Communities(6 vertices in 2 communities, modularity 0.3571)
    >>> r.sizes.tolist(), [c.tolist() for c in r.communities()]
    ([3, 3], [[0, 1, 2], [3, 4, 5]])
    >>> len(r), r[1].tolist(), r.to_dict()[4]
    (2, [3, 4, 5], 1)
    """

    graph: Graph | None
    labels: NDArray[np.uint32]
    maps: tuple[NDArray[np.uint32], ...] = ()
    coarse_labels: tuple[NDArray[np.uint32], ...] = ()
    levels: tuple[Level, ...] = ()
    modularity: float
    objective: ObjectiveName = "modularity"
    value: float | None = None
    resolution: float = 1.0
    method: str = ""
    timings: Mapping[str, float] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    vertex_names: NDArray[Any] | None = None
    library: Library = field(default="pandas", repr=False, compare=False)

    def __post_init__(self) -> None:
        labels: Any = self.labels
        if getattr(labels, "dtype", None) != np.uint32 or np.ndim(labels) != 1:
            raise GraphError(
                "labels must be a one-dimensional uint32 array; for others call Communities.of"
            )
        if self.value is None:
            object.__setattr__(self, "value", self.modularity)
        if not isinstance(self.graph, Graph | None):
            raise GraphError(
                f"graph must be a Graph, not {shown(self.graph)}; for others call Communities.of"
            )
        if self.graph is not None and self.graph.n_vertices != len(self.labels):
            raise GraphError(
                f"{len(self.labels)} labels for a graph of {self.graph.n_vertices} vertices"
            )

    @classmethod
    def of(
        cls,
        graph: Any,
        labels: Given,
        *,
        resolution: float = 1.0,
        objective: ObjectiveName = "modularity",
    ) -> Communities:
        """Wrap labels from elsewhere, to compare, inspect or write them.

        Parameters
        ----------
        graph : Graph or anything `as_graph` takes
        labels : array of int of length n, dict, or list of sets
            As in `modularity`.
        resolution : float
            At which `modularity` is computed.
        objective : {"modularity", "cpm", "directed", "bipartite", "signed"}
            What `modularity` and `value` evaluate.
        """
        if not isinstance(graph, Graph):
            from louvain_um.formats.reading import graph_of

            refuse_other_order(graph, labels)
            graph = graph_of(graph, objective)
        dense = dense_labels(graph, labels)
        value = modularity(graph, dense, resolution, objective=objective)
        return cls(
            graph=graph,
            labels=number_by_size(dense),
            modularity=value,
            resolution=resolution,
            objective=objective,
        )

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return len(self.labels)

    @property
    def n_communities(self) -> int:
        """Number of communities."""
        return len(self.sizes)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Members of each community, int64[k], descending."""
        return community_sizes(self.labels)

    @property
    def names(self) -> NDArray[Any] | None:
        """The vertices' names in the source; None when they are 0 … n − 1."""
        return self.vertex_names if self.graph is None else self.graph.names

    def at_level(self, level: int) -> NDArray[np.uint32]:
        """Return the labels after a level.

        Levels need not nest: a new cycle moves single vertices again, and Leiden may split the
        communities of the level before. `hierarchy` returns partitions that nest.

        Parameters
        ----------
        level : int
            An index of `levels`; negative values count from the last.

        Returns
        -------
        uint32[n]
            Numbered like `labels`; after the last level, equal to them.

        Raises
        ------
        OptionError
            There is no such level.
        """
        return labels_at(level, self.maps, self.coarse_labels, self._cycles)

    def hierarchy(self) -> list[NDArray[np.uint32]]:
        """Return nested partitions, from the finest to the communities found.

        For Louvain, the levels; those of earlier cycles are cut along the communities that
        follow. For Leiden, the sub-communities that each level of the last cycle merges, then
        the communities.

        Returns
        -------
        list of uint32[n]
            Each community is a union of communities of the partition before; the last
            partition is `labels`, the only one for labels from elsewhere.

        Examples
        --------
        >>> import louvain_um as lu
        >>> ring = lu.Graph.from_edges(range(24), [*range(1, 24), 0])
        >>> [int(labels.max()) + 1 for labels in lu.louvain(ring, device="cpu").hierarchy()]
        [12, 6]
        """
        return nested_labels(self.labels, self.maps, self.coarse_labels, self._cycles)

    @property
    def _cycles(self) -> list[int]:
        return [level.cycle for level in self.levels]

    def communities(self) -> list[NDArray[Any]]:
        """Return each community's members, largest community first.

        Returns
        -------
        list of arrays
            Vertex ids, ascending; names where the source had them.
        """
        starts, vertices = members(self.labels)
        listed = vertices if self.names is None else self.names[vertices]
        return np.split(listed, starts[1:-1]) if len(listed) else []

    def induced_graph(self) -> Graph:
        """Return the graph of communities: weights are sums, inner edges become loops.

        Each community on its own has the same modularity on it. That of a graph on a device is
        made there, and stays.
        """
        return induced_graph(self.require_graph(), self.labels)

    def subgraph(self, community: int) -> Graph:
        """Return the graph of a community's members and the edges among them.

        Parameters
        ----------
        community : int
            0 … k − 1; negative values count from the last.

        Returns
        -------
        Graph
            Its vertices are named as in the graph, or else by their ids there. Of a graph on a
            device, it is on that.

        Raises
        ------
        IndexError
            There is no such community.

        Examples
        --------
        >>> import louvain_um as lu
        >>> g = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
        >>> part = lu.louvain(g, device="cpu").subgraph(1)
        >>> part, part.names.tolist()
        (Graph(3 vertices, 3 edges, unweighted), [3, 4, 5])
        """
        graph = self.require_graph()
        return subgraph(graph, np.flatnonzero(self.labels == self._number(community)))

    def quality(self, resolution: float | None = None) -> Quality:
        """Report modularity, coverage, and each community's conductance and density.

        Parameters
        ----------
        resolution : float, optional
            Of the modularity; that of the detection by default.
        """
        chosen = self.resolution if resolution is None else resolution
        return quality(self.require_graph(), self.labels, chosen, objective=self.objective)

    @checks_kinds
    def memberships(self, *, threshold: float = 0.1) -> Any:
        """Return the share of each vertex's edges that lead to each community.

        A vertex between communities belongs to each of them in part; its label is but one of them.

        Parameters
        ----------
        threshold : float
            Least share, 0 to 1, that counts; the rest is shared out again. A vertex keeps its
            largest share in any case.

        Returns
        -------
        scipy.sparse.csr_array
            n × k, float64; rows add up to 1. A vertex without edges is in its community alone.

        Examples
        --------
        >>> import louvain_um as lu
        >>> g = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
        >>> r = lu.louvain(g, device="cpu")
        >>> r.memberships().toarray()[[0, 1]].round(2).tolist()
        [[0.67, 0.33], [1.0, 0.0]]
        """
        return memberships(self.require_graph(), self.labels, self.n_communities, threshold)

    def describe(self, nodes: Any = None) -> Description:
        """Describe communities by attributes of their vertices.

        Parameters
        ----------
        nodes : table, graph, AnnData or path, optional
            As for `read_graph`; by default the graph's own `attributes`.

        Returns
        -------
        Description
            What distinguishes each community: over-represented categories, shifted numbers, top
            terms of texts. Its `to_frame` also has size, density, cut and hubs.

        Raises
        ------
        GraphError
            A vertex has two rows, or no row is that of a vertex.

        References
        ----------
        Benjamini, Hochberg: Controlling the false discovery rate, 1995. Mann, Whitney: On a test of
        whether one of two random variables is stochastically larger than the other, 1947.

        Examples
        --------
        >>> import louvain_um as lu, pandas as pd
        >>> edges = [(f"{a}{i}", f"{a}{j}") for a in "ab" for i in range(9) for j in range(i)]
        >>> sides = pd.DataFrame({"id": [f"{a}{i}" for a in "ab" for i in range(9)]})
        >>> sides["side"] = sides["id"].str[0]
        >>> r = lu.louvain(lu.as_graph(edges + [("a0", "b0")], nodes=sides), device="cpu")
        >>> r.describe().labels
        ['side a (100%, 50% overall)', 'side b (100%, 50% overall)']
        """
        return describe(self, nodes)

    def significance(
        self,
        *,
        graphs: int = 100,
        seed: int = 0,
        progress: Progress | bool | None = None,
        device: str = "auto",
        device_budget: int | str | None = None,
    ) -> Significance:
        """Compare the communities with those of random graphs of the same degrees.

        Parameters
        ----------
        graphs : int
            Random graphs, of the configuration model; weights are drawn again among the edges.
        seed : int
            Of the first graph; the others follow.
        progress : callable or bool, optional
            True: a line on the terminal or in the notebook. A function is called
            before each graph with those done, all graphs, and a text.
        device : str
            As in `louvain`; a GPU also makes the random graphs, the same ones as the CPU.
        device_budget : int or str, optional
            As in `louvain`, of random graphs and their detection together. Where both do not fit
            the GPU, and with a share, the CPU makes the graphs.

        Returns
        -------
        Significance
            z-score and p-value of the modularity, and a p-value for each community.

        Raises
        ------
        OptionError
            The objective is not "modularity".
        GraphError
            The result has no graph.

        References
        ----------
        Molloy, Reed: A critical point for random graphs with a given degree sequence, 1995.

        Examples
        --------
        >>> import networkx as nx, louvain_um as lu
        >>> r = lu.louvain(nx.gnm_random_graph(100, 300, seed=1), device="cpu")
        >>> r.significance(graphs=20).p_value > 0.05
        True
        """
        # By name: detection stands above the results that it returns.
        detecting = import_module("louvain_um.analysis.significance")
        found: Significance = detecting.significance(
            self, graphs=graphs, seed=seed, progress=progress, device=device,
            device_budget=device_budget,
        )  # fmt: skip
        return found

    def table(self, *, hubs: int = 3) -> pd.DataFrame:
        """Return a pandas frame with one row per community.

        Parameters
        ----------
        hubs : int
            Members of the highest degree to list.

        Returns
        -------
        pandas.DataFrame
            Columns of `Quality.to_frame`, and ``hubs``: a list of names or ids, by descending
            degree.

        Raises
        ------
        LouvainUmError
            pandas is not installed.

        Examples
        --------
        >>> import louvain_um as lu
        >>> g = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
        >>> table = lu.louvain(g, device="cpu").table(hubs=1)
        >>> table["size"].tolist(), table["hubs"].tolist()
        ([3, 3], [[0], [3]])
        """
        return community_table(self.require_graph(), self, hubs)

    def compare(self, other: Given) -> Agreement:
        """Measure the agreement with other labels: NMI, ARI and AMI.

        Parameters
        ----------
        other : Communities, array of length n, dict, list of sets, or sparse matrix
            Labels in vertex order, any integers or strings; or as in `modularity`, matched by
            name. Where communities overlap, overlapping NMI and omega are measured instead; see
            `louvain_um.results.comparison.compare`.
        """
        return compare(self, other)

    def to_frame(
        self, *, levels: bool = False, hierarchy: bool = False, library: Library | None = None
    ) -> Any:
        """Return a frame with one row per vertex, without those that lost their name.

        Parameters
        ----------
        levels : bool
            Add the labels after each level: columns ``level_0``, ``level_1`` … for the first
            cycle, ``level_3_cycle_1`` … for the next. They need not nest.
        hierarchy : bool
            Add the partitions of `hierarchy`, which nest: columns ``hierarchy_0``, the finest,
            ``hierarchy_1`` …, without the last, which is ``community``.
        library : {"pandas", "polars", "arrow"}, optional
            By default `self.library`, that of the table whose communities these are.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            Columns ``vertex`` (name or id) and ``community``.

        Raises
        ------
        LouvainUmError
            The library is not installed.
        """
        used = self.library if library is None else library
        return to_frame(self, levels=levels, hierarchy=hierarchy, library=used)

    def plot(self, kind: str | None = None, *, ax: Any = None, seed: int = 0) -> Any:
        """Draw the communities with Matplotlib.

        Parameters
        ----------
        kind : {"graph", "communities", "sizes", "dendrogram", "auto"}, optional
            "graph" draws each vertex, "communities" each community with an area by its size and
            the weight between them, "sizes" a histogram, and "dendrogram" the tree of
            `hierarchy`. By default ("auto") "graph" up to some 1,500 vertices, else
            "communities".
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        seed : int
            Of the positions, which networkx finds.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        LouvainUmError
            The graph is too large for its vertices to be seen, or a library is missing.

        Examples
        --------
        >>> import louvain_um as lu
        >>> from matplotlib.figure import Figure
        >>> g = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
        >>> ax = lu.louvain(g, device="cpu").plot("sizes", ax=Figure().add_subplot())
        >>> ax.get_title()
        '2 communities, modularity 0.3571'
        """
        from louvain_um.drawing.plots import plot

        return plot(self, self.require_graph(), kind, ax, seed)

    def to_networkx(self) -> Any:
        """Return the graph as `Graph.to_networkx` does, with the node attribute ``community``."""
        return self.require_graph().to_networkx({"community": self.labels})

    def to_igraph(self) -> Any:
        """Return the graph as `Graph.to_igraph` does, with the vertex attribute ``community``."""
        return self.require_graph().to_igraph({"community": self.labels})

    def to_cdlib(self) -> Any:
        """Return the communities as a ``NodeClustering`` of cdlib, with the graph of networkx.

        Returns
        -------
        cdlib.NodeClustering

        Raises
        ------
        LouvainUmError
            cdlib is not installed.
        """
        require_packages("this", "cdlib")
        from cdlib import NodeClustering

        return NodeClustering(
            [members.tolist() for members in self.communities()],
            self.require_graph().to_networkx(),
            method_name=self.method or "louvain-um",
            method_parameters={"resolution": self.resolution, "objective": self.objective},
        )

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Save everything but the graph to a ``.npz`` file that `load` reads.

        Parameters
        ----------
        path : path
            Must end in ``.npz``.
        force : bool
            Replace the file if it exists.

        Warns
        -----
        GraphWarning
            Names of vertices, such as dates, that are text when they are loaded.

        Raises
        ------
        LouvainUmError
            The file exists, its folder does not, or the disk is full; nothing is written.
        """
        saving.save(self, path, force=force)

    @classmethod
    def load(cls, path: str | Path, graph: Graph | None = None) -> Communities:
        """Load what `save` wrote.

        Parameters
        ----------
        path : path
        graph : Graph, optional
            The graph it belongs to; needed for the induced graph and quality.

        Raises
        ------
        LouvainUmError
            Not a file that `save` wrote, of another version, or of another graph.
        """
        return cls(graph=graph, **saving.load_fields(path, graph))

    def require_graph(self) -> Graph:
        """Return the graph; the error of a result without one says how to pass it.

        Results that were loaded have none, nor have those of graphs that change.
        """
        if self.graph is None:
            raise GraphError(
                "this result was loaded without its graph, or has none since that changes; pass "
                "it: Communities.load(path, graph=...) or Communities.of(graph, result)"
            )
        return self.graph

    def to_dict(self) -> dict[Any, int]:
        """Return the community of each vertex, by its id, or its name where the source had one.

        Vertices that were removed from a changing graph with names have none, and are left out.
        """
        check_host_memory(
            ENTRY_BYTES * self.n_vertices, f"a dict of {self.n_vertices:,} vertices", "use labels"
        )
        vertices = range(self.n_vertices) if self.names is None else self.names.tolist()
        found = dict(zip(vertices, self.labels.tolist(), strict=True))
        found.pop(None, None)
        return found

    def _number(self, community: int) -> int:
        """Return the number of a community, negative ones counted from the last."""
        try:
            number = operator.index(community)
        except TypeError:
            raise TypeError(
                f"a community is a number, not {shown(community)}; communities() lists all, and "
                "to_dict() has the community of each vertex"
            ) from None
        if not -self.n_communities <= number < self.n_communities:
            many = display.count(self.n_communities, "community", "communities")
            raise IndexError(f"no community {number} among {many}, numbered from 0")
        return number % self.n_communities

    def __len__(self) -> int:
        return self.n_communities

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter(self.communities())

    def __getitem__(self, community: int) -> NDArray[Any]:
        vertices = np.flatnonzero(self.labels == self._number(community))
        return vertices if self.names is None else self.names[vertices]

    def __repr__(self) -> str:
        return display.text_view(self)

    def __rich__(self) -> Any:
        return display.rich_view(self)

    def _repr_html_(self) -> str:
        from louvain_um.drawing.plots import small_picture

        return display.html_view(self, small_picture(self, self.graph))
