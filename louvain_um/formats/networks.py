"""Networks whose vertices and edges have attributes: objects of networkx and igraph, and files.

Every such source becomes a `Network`; one rule finds the names and one the weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import GraphError, Uncertain, shown
from louvain_um.formats.attributes import attributed, of_list, of_rows
from louvain_um.formats.build import make_graph
from louvain_um.formats.column_roles import NAMES, choose_weight, is_id
from louvain_um.formats.ids import ascending, name_array, numbers_or_texts, order_of
from louvain_um.formats.parse_errors import NUMBER
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph.graph import Graph
from louvain_um.graph.integer_weights import weight_array
from louvain_um.results.display import count

if TYPE_CHECKING:
    from louvain_um.formats.graph_file import GraphFile

DIRECTED = (
    "the graph is directed; pass symmetrize=True (--symmetrize) to read its arcs as "
    "undirected edges, or detect with objective='directed'"
)

UNDIRECTED = (
    "the graph is undirected; drop directed=True (--directed), or use another objective than "
    "'directed'"
)

Attributes = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Network:
    """A network as a source lists it."""

    # `nodes` maps each id to its attributes; vertices that only edges name are added at the end. An
    # edge is its two ids and its attributes; those of undirected edges in a directed network are in
    # `both_ways`.

    nodes: dict[Any, Attributes] = field(default_factory=dict)
    edges: list[tuple[Any, Any, Attributes]] = field(default_factory=list)
    directed: bool = False
    both_ways: set[int] = field(default_factory=set)
    defaults: Attributes = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note_others(self, graphs: int) -> None:
        """Note that of several graphs in a file only the first is read."""
        if graphs > 1:
            self.notes.append(Uncertain(f"the first of {graphs} graphs in the file is read"))

    def add_node(self, file: GraphFile, name: Any, data: Attributes) -> None:
        """Add a vertex, unless it is there."""
        if name in self.nodes:
            raise file.error(f"the node id {shown(name)} is repeated; make ids different")
        self.nodes[name] = data

    def add_edge(
        self, source: Any, target: Any, data: Attributes, *, directed: bool | None = None
    ) -> None:
        """Append an edge; `directed` says whether it is directed if not all are as the network."""
        if directed is False:
            self.both_ways.add(len(self.edges))
        elif directed:
            self.directed = True
        self.edges.append((source, target, data))


def from_file(network: Network, options: ReadOptions) -> Graph:
    """Build the graph of a file: vertices ascend by name, texts that are numbers are numbers."""
    nodes = network.nodes
    for source, target, _ in network.edges:
        if source not in nodes:
            nodes[source] = {}
        if target not in nodes:
            nodes[target] = {}
    names, used, notes = names_of(nodes)
    if network.directed and len(network.both_ways) == len(network.edges):
        network.directed = False
    _check_direction(directed=network.directed, options=options)
    number = dict(zip(nodes, range(len(nodes)), strict=True))
    edges = network.edges
    if options.directed and network.both_ways:
        edges = edges + [(edges[i][1], edges[i][0], edges[i][2]) for i in sorted(network.both_ways)]
    u = np.fromiter((number[a] for a, _, _ in edges), np.uint32, len(edges))
    v = np.fromiter((number[b] for _, b, _ in edges), np.uint32, len(edges))
    weights, remarks = _weights([data for _, _, data in edges], options, network.defaults)
    repeated = len(set(zip(u.tolist(), v.tolist(), strict=True))) < len(u)
    if repeated and weights is None and options.duplicates is None:
        options = replace(options, duplicates="sum")
    plain = numbers_or_texts(names)
    array, u, v = ascending(plain, u, v)
    graph = make_graph(u, v, weights, array, options, notes=[*network.notes, *notes, *remarks])
    rows = [*nodes.values()]
    columns = of_rows([rows[place] for place in order_of(plain)]) or {}
    named = [*map(str, map(plain.__getitem__, order_of(plain)))]
    others = {
        name: values
        for name, values in columns.items()
        if name.lower() != used
        and not (name.lower() in NAMES and [*map(str, values.tolist())] == named)
    }
    return attributed(graph, others or None)


def names_of(nodes: dict[Any, Attributes]) -> tuple[list[Any], str | None, list[str]]:
    """Return the names of vertices, the attribute that holds them, if one does, and notes."""
    # They are labels, or else names, where these are all different, or else ids.
    ids = list(nodes)
    listed: dict[str, list[Any]] = {}
    for known in NAMES:
        values = []
        for data in nodes.values():
            key = next((key for key in data if str(key).lower() == known), None)
            value = None if key is None else data[key]
            usable = isinstance(value, str | int) and not isinstance(value, bool) and value != ""
            values.append(value if usable else None)
        if any(value is not None for value in values):
            listed[known] = values
    for known, values in listed.items():
        if None not in values and len(set(map(str, values))) == len(values):
            return values, known, []
    notes: list[str] = []
    for known, values in listed.items():
        missing = values.count(None)
        merged = [name if value is None else value for value, name in zip(values, ids, strict=True)]
        if len(set(map(str, merged))) == len(merged):
            note = f"{missing:,} of {len(ids):,} vertices have no {known} and are named by their id"
            return merged, known, [Uncertain(note)]
        counts = Counter(value for value in values if value is not None)
        word, many = counts.most_common(1)[0]
        what = (
            f"{many} vertices have the {known} {word!r}"
            if many > 1
            else (f"some ids are the {known} of another vertex")
        )
        notes.append(Uncertain(f"{what}, so vertices are named by their ids"))
    return ids, None, notes[:1]


def from_networkx(graph: Any, options: ReadOptions) -> Graph:
    """Build a graph from a networkx graph; weights of parallel edges are summed."""
    _check_direction(directed=graph.is_directed(), options=options)
    if graph.is_multigraph() and options.duplicates is None:
        options = replace(options, duplicates="sum")
    nodes = list(graph)
    number = {node: place for place, node in enumerate(nodes)}
    n_edges = graph.number_of_edges()
    u = np.fromiter((number[a] for a, _ in graph.edges()), np.uint32, n_edges)
    v = np.fromiter((number[b] for _, b in graph.edges()), np.uint32, n_edges)
    weights, notes = _weights([data for *_, data in graph.edges(data=True)], options)
    names, u, v = ascending(nodes, u, v)
    made = make_graph(u, v, weights, names, options, notes=notes)
    return attributed(made, of_rows([graph.nodes[nodes[place]] for place in order_of(nodes)]))


def from_networkit(graph: Any, options: ReadOptions) -> Graph:
    """Build a graph from a NetworKit graph; where vertices were removed, ids become names."""
    _check_direction(directed=graph.isDirected(), options=options)
    kind = [("u", np.int64), ("v", np.int64), ("w", np.float64)]
    edges = np.fromiter(graph.iterEdgesWeights(), kind, graph.numberOfEdges())
    nodes = np.fromiter(graph.iterNodes(), np.int64, graph.numberOfNodes())
    names = None if len(nodes) == graph.upperNodeIdBound() else nodes
    u, v = np.searchsorted(nodes, edges["u"]), np.searchsorted(nodes, edges["v"])
    weights = edges["w"] if graph.isWeighted() and options.weighted is not False else None
    return make_graph(u, v, weights, names, options, n=len(nodes))


def from_igraph(graph: Any, options: ReadOptions) -> Graph:
    """Build a graph from an igraph graph, whose vertices keep their numbers."""
    _check_direction(directed=graph.is_directed(), options=options)
    ends = np.array(graph.get_edgelist(), np.uint32).reshape(-1, 2)
    columns = {name: graph.es[name] for name in graph.es.attributes()}
    weights, notes = _column_of_weights(columns, options)
    attribute = next((a for a in graph.vs.attributes() if a.lower() == "name"), None)
    names = list(range(graph.vcount())) if attribute is None else graph.vs[attribute]
    _refuse_repeated(names, attribute)
    made = make_graph(
        ends[:, 0].copy(), ends[:, 1].copy(), weights, name_array(names), options, notes=notes
    )
    others = [name for name in graph.vs.attributes() if name != attribute]
    return attributed(made, {name: of_list(graph.vs[name]) for name in others} or None)


def _refuse_repeated(names: Sequence[Any], attribute: str | None) -> None:
    """Raise if two vertices have the same name: results by name would hold one of them only."""
    first: dict[Any, int] = {}
    for vertex, name in enumerate(names):
        if (other := first.setdefault(name, vertex)) != vertex:
            raise GraphError(
                f"vertices {other} and {vertex} both have the name {shown(name)}; make names "
                f"different, or delete them: del graph.vs[{attribute!r}]"
            )


def _check_direction(*, directed: bool, options: ReadOptions) -> None:
    """Raise an error if the options say otherwise than the graph whether it is directed."""
    if directed and not (options.symmetrize or options.directed):
        raise GraphError(DIRECTED)
    if options.directed and not directed:
        raise GraphError(UNDIRECTED)


def _weights(
    data: Sequence[Attributes], options: ReadOptions, defaults: Attributes | None = None
) -> tuple[NDArray[Any] | None, list[str]]:
    """Return the weights of edges that each have a dict of attributes, and notes on them."""
    if options.weighted is False:
        return None, []
    defaults = defaults or {}
    if options.weight is None and data and all("weight" in each for each in data):
        columns = {"weight": [each["weight"] for each in data]}
    else:
        known = dict.fromkeys(key for each in data for key in each) | dict.fromkeys(defaults)
        columns = {key: [each.get(key, defaults.get(key)) for each in data] for key in known}
    return _column_of_weights(columns, options)


def _column_of_weights(
    columns: dict[Any, list[Any]], options: ReadOptions
) -> tuple[NDArray[Any] | None, list[str]]:
    """Return the weights among the attributes of edges, and notes on them."""
    if options.weighted is False:
        return None, []
    edges = len(next(iter(columns.values()), ()))
    if options.weight is not None:
        wanted = options.weight
        found = next(
            (k for k in columns if k == wanted or str(k).lower() == str(wanted).lower()), None
        )
        if found is None or (edges and all(value is None for value in columns[found])):
            if edges:
                known = ", ".join(sorted(map(str, columns))[:12]) or "none"
                raise GraphError(
                    f"edges have no attribute {wanted!r} (they have: {known}); pass another "
                    "weight=… (--weight)"
                )
            return None, []
        return _as_weights(columns[found], found, options)
    numeric = {
        str(name): name
        for name, values in columns.items()
        if not is_id(str(name)) and any(v is not None for v in values) and _are_numbers(values)
    }
    title, notes = choose_weight(
        [*numeric], [str(n) for n in columns], options, what="edge attribute"
    )
    if title is None:
        return None, notes
    name = numeric.get(title, next((n for n in columns if str(n) == title), title))
    weights, missing = _as_weights(columns[name], name, options)
    return weights, [*missing, *notes]


def _are_numbers(values: Iterable[Any]) -> bool:
    """Return whether all values that are given are numbers, or texts of numbers."""
    return all(
        (isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_))
        or (isinstance(value, str) and NUMBER.fullmatch(value.strip()) is not None)
        for value in values
        if value is not None
    )


def _as_weights(
    values: list[Any], name: Any, options: ReadOptions
) -> tuple[NDArray[Any], list[str]]:
    """Return the values of an attribute as weights, and a note if some edges lack it."""
    listed = [1 if value is None else value for value in values]
    missing = values.count(None)
    notes: list[str] = []
    if missing:
        where = f"{missing:,} of {count(len(values), 'edge', 'edges')}"
        notes.append(Uncertain(f"{name} is missing for {where}; 1 is read as the weight there"))
    if any(isinstance(value, str) for value in listed):
        listed = [_number(value) if isinstance(value, str) else value for value in listed]
    return weight_array(listed, options.allow_rounding), notes


def _number(text: str) -> Any:
    """Return the number that a text is; other text as it is."""
    stripped = text.strip()
    if not NUMBER.fullmatch(stripped):
        return text
    return int(stripped) if stripped.removeprefix("-").isdigit() else float(stripped)
