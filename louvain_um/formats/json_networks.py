"""Networks in JSON: of Cytoscape, node-link data as networkx and D3 write it, and records."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from louvain_um.errors import GraphFormatError
from louvain_um.formats.file_types import require
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.networks import Attributes, Network, from_file
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph.graph import Graph

UNKNOWN = (
    "is JSON of no kind that is read: Cytoscape's (elements), node-link data (nodes and links or "
    'edges) or a list of edges [{"source": …, "target": …}]; write it again, for example with '
    "networkx"
)


def read(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a JSON file of any kind that is known."""
    parsed = _parsed(file)
    if isinstance(parsed, list) and parsed and all(isinstance(each, dict) for each in parsed):
        return _read_records(file, parsed, options)
    return from_file(network_of(file, parsed), options)


def parsed_json(file: GraphFile) -> Network:
    """Return the network of a JSON file."""
    return network_of(file, _parsed(file))


def _parsed(file: GraphFile) -> Any:
    try:
        text = file.read()
        file.check_entries(text.count(b'":'))
        return json.loads(text)
    except GraphFormatError:
        raise  # of what it is unpacked from
    except RecursionError:
        raise file.error("is not valid JSON (nested too deeply); write it again") from None
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise file.error(f"is not valid JSON ({error}); write it again", line) from None


def network_of(file: GraphFile, parsed: Any) -> Network:
    """Return the network of a parsed JSON value."""
    if isinstance(parsed, dict) and isinstance(parsed.get("graphs"), list) and parsed["graphs"]:
        network = network_of(file, {"graph": parsed["graphs"][0]})
        network.note_others(len(parsed["graphs"]))
        return network
    if isinstance(parsed, dict) and "elements" in parsed:
        return _cytoscape(file, parsed)
    if isinstance(parsed, list) and any(isinstance(e, dict) and "data" in e for e in parsed):
        return _cytoscape(file, {"elements": parsed})
    if isinstance(parsed, dict) and isinstance(parsed.get("graph"), dict) and "nodes" not in parsed:
        parsed = parsed["graph"]
    if isinstance(parsed, dict) and ("links" in parsed or "edges" in parsed):
        return _node_link(file, parsed)
    raise file.error(UNKNOWN)


def _cytoscape(file: GraphFile, parsed: dict[str, Any]) -> Network:
    """Return the network of Cytoscape and Cytoscape.js."""
    elements = parsed["elements"]
    nodes: list[Any]
    edges: list[Any]
    if isinstance(elements, dict):
        nodes, edges = elements.get("nodes", []), elements.get("edges", [])
    elif isinstance(elements, list):
        data = [e.get("data", {}) if isinstance(e, dict) else None for e in elements]
        edges = [
            e for e, d in zip(elements, data, strict=True) if isinstance(d, dict) and "source" in d
        ]
        nodes = [e for e in elements if e not in edges]
    else:
        raise file.error(UNKNOWN)
    network = Network(directed=parsed.get("directed") is True)
    for node in _dicts(file, nodes):
        found = _dict(file, node.get("data"))
        name = str(_id(file, found.get("id")))
        network.nodes[name] = {k: v for k, v in found.items() if k not in ("id", "value")}
    for edge in _dicts(file, edges):
        found = dict(_dict(file, edge.get("data")))
        ends = [str(_id(file, found.pop(end, None))) for end in ("source", "target")]
        for key in ("id", "SUID", "key", "name", "interaction"):
            found.pop(key, None)
        network.add_edge(ends[0], ends[1], found)
    return network


def _node_link(file: GraphFile, parsed: dict[str, Any]) -> Network:
    """Return the network of node-link data; D3's links may be positions of nodes."""
    network = Network(directed=parsed.get("directed") is True)
    listed = parsed.get("nodes", [])
    ids: list[Any] = []
    if isinstance(listed, dict):  # JSON Graph Format
        listed = [{**_dict(file, data), "id": key} for key, data in listed.items()]
    for place, node in enumerate(_dicts(file, listed)):
        known = next((key for key in ("id", "key", "name") if key in node), None)
        name = place if known is None else _id(file, node[known])
        ids.append(name)
        data = {**node, **_dict(file, node.get("attributes", node.get("metadata", {})))}
        network.nodes[name] = {k: v for k, v in data.items() if k != "id"}
    links = list(_dicts(file, parsed.get("links", parsed.get("edges"))))
    ends = [tuple(_id(file, link.get(end)) for end in ("source", "target")) for link in links]
    whole = all(isinstance(end, int) and 0 <= end < len(ids) for pair in ends for end in pair)
    by_place = whole and not any(end in network.nodes for pair in ends for end in pair)
    for link, (source, target) in zip(links, ends, strict=True):
        data = {**link, **_dict(file, link.get("attributes", link.get("metadata", {})))}
        for key in ("source", "target", "key", "id"):
            data.pop(key, None)
        network.add_edge(
            ids[source] if by_place else source, ids[target] if by_place else target, data
        )
    return network


def _dicts(file: GraphFile, values: Any) -> Iterable[Attributes]:
    """Return the entries of a list of objects."""
    if not isinstance(values, list):
        raise file.error(UNKNOWN)
    return (_dict(file, value) for value in values)


def _dict(file: GraphFile, value: Any) -> Attributes:
    if not isinstance(value, dict):
        raise file.error(UNKNOWN)
    return value


def _id(file: GraphFile, value: Any) -> Any:
    """Return an id: text or a number."""
    if isinstance(value, dict) and "id" in value:  # D3, once it has drawn the graph
        value = value["id"]
    if isinstance(value, list):  # a tuple of networkx
        value = str(tuple(value))
    if value is None or isinstance(value, bool) or not isinstance(value, str | int | float):
        raise file.error(
            f"a node or an edge has the id {str(value)[:40]!r}; ids are text or numbers"
        )
    return value


def _read_records(file: GraphFile, records: list[Attributes], options: ReadOptions) -> Graph:
    """Read a list of edges, each an object."""
    from louvain_um.formats.arrow import checked, table_graph

    rows = require("pyarrow", file.name).Table.from_pylist
    # Arrow takes the keys of the first object only.
    first = {**dict.fromkeys(key for each in records for key in each), **records[0]}
    records = [first, *records[1:]]
    return checked(file, lambda: table_graph(rows(records), options), "a list of edges")
