"""GraphML and GEXF: networks in XML."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from louvain_um.errors import GraphFormatError, Uncertain
from louvain_um.formats.column_roles import NAMES
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.networks import Attributes, Network, from_file
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph.graph import Graph

NUMBERS = {"int", "integer", "long", "float", "double", "short", "byte"}

TRUTH = {"true": True, "1": True, "false": False, "0": False}

DYNAMIC = "weights change in time; the last of each edge is read"


def read_graphml(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a GraphML file."""
    return from_file(parsed_graphml(file), options)


def read_gexf(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a GEXF file; vertices are named by their labels if these are unique."""
    return from_file(parsed_gexf(file), options)


def _root(file: GraphFile, title: str) -> Any:
    """Return the root element of a file, the tags of all elements without their namespaces."""
    parser = ElementTree.XMLParser()
    try:
        text = file.read()
        file.check_entries(text.count(b'="') + text.count(b"='"))
        root = ElementTree.parse(io.BytesIO(text), parser).getroot()
    except GraphFormatError:
        raise  # of what it is unpacked from
    except ElementTree.ParseError as error:
        raise file.error(f"is not valid {title} ({error}); write it again") from None
    except (ValueError, LookupError) as error:  # an encoding that Python lacks
        raise file.error(f"is not valid {title} ({error}); write it again") from None
    for element in root.iter():
        if isinstance(element.tag, str):
            element.tag = element.tag.rpartition("}")[2]
    return root


def parsed_graphml(file: GraphFile) -> Network:
    """Return the network of a GraphML file."""
    root = _root(file, "GRAPHML")
    graphs = [root] if root.tag == "graph" else root.findall("graph")
    if not graphs:
        raise file.error("contains no graph of GRAPHML; write it again")
    keys = {key.get("id"): key for key in root.iter("key")}
    network = Network(directed=graphs[0].get("edgedefault") == "directed")
    network.note_others(len(graphs))
    of_nodes: Attributes = {}
    for key in keys.values():
        default = key.find("default")
        for place, given in (("edge", network.defaults), ("node", of_nodes)):
            if default is not None and key.get("for") in (place, "all", None):
                given[_key_name(key)] = _value(default.text, key)
    of_nodes = _unnamed(of_nodes)
    if any(True for _ in graphs[0].iter("hyperedge")):
        raise file.error("has hyperedges, which join more than two vertices; write pairs as edges")
    for node in graphs[0].iter("node"):
        network.add_node(file, _required(file, node, "id"), of_nodes | _data(node, keys))
    for edge in graphs[0].iter("edge"):
        ends = _required(file, edge, "source"), _required(file, edge, "target")
        marked = edge.get("directed")
        direction = None if marked is None else marked == "true"
        network.add_edge(*ends, _data(edge, keys), directed=direction)
    return network


def _unnamed(defaults: Attributes) -> Attributes:
    """Return the defaults of nodes without those that would give all the same name."""
    return {name: value for name, value in defaults.items() if name.lower() not in NAMES}


def _key_name(key: Any) -> str:
    return str(key.get("attr.name") or key.get("id"))


def _required(file: GraphFile, element: Any, name: str) -> str:
    value = element.get(name)
    if value is None:
        raise file.error(f"an element {element.tag!r} has no attribute {name!r}; write it again")
    return str(value)


def _data(element: Any, keys: dict[str | None, Any]) -> Attributes:
    """Return the attributes of a node or an edge; yEd writes labels as elements of their own."""
    found: Attributes = {}
    for data in element.findall("data"):
        key = keys.get(data.get("key"))
        if key is None:
            found.setdefault(str(data.get("key")), data.text)
        elif len(data):
            for label in data.iter(f"{element.tag.capitalize()}Label"):
                if label.text and label.text.strip():
                    found.setdefault("label", label.text.strip())
        elif data.text is not None:
            found[_key_name(key)] = _value(data.text, key)
    return found


def _value(text: str | None, key: Any) -> Any:
    return _of_type(text or "", key.get("attr.type", key.get("type")))


def _of_type(text: str, kind: str | None) -> Any:
    """Return a value of a declared type; text that does not fit it as it is."""
    if kind == "boolean":
        return TRUTH.get(text.strip().lower(), text)
    return _number(text) if kind in NUMBERS else text


def _number(text: str) -> Any:
    stripped = text.strip()
    try:
        return int(stripped) if re.fullmatch(r"[+-]?[0-9]{1,400}", stripped) else float(stripped)
    except ValueError:
        return text


def parsed_gexf(file: GraphFile) -> Network:
    """Return the network of a GEXF file."""
    root = _root(file, "GEXF")
    graph = root if root.tag == "graph" else root.find("graph")
    if graph is None:
        raise file.error("contains no graph of GEXF; write it again")
    network = Network(directed=graph.get("defaultedgetype", "undirected") == "directed")
    network.note_others(len(root.findall("graph")))
    if any(True for edge in graph.iter("edge") for _ in edge.iter("spell")):
        network.notes.append(Uncertain("edges exist in parts of the time only; all are read"))
    declared = {kind: _declared(graph, kind) for kind in ("node", "edge")}
    network.defaults |= _defaults(declared["edge"])
    of_nodes = _unnamed(_defaults(declared["node"]))
    for node in graph.iter("node"):
        data = of_nodes | _attributes(node, declared["node"])[0]
        label = node.get("label")
        data |= {} if label is None else {"label": label}
        network.add_node(file, _required(file, node, "id"), data)
    changing = False
    for edge in graph.iter("edge"):
        ends = _required(file, edge, "source"), _required(file, edge, "target")
        data, dynamic = _attributes(edge, declared["edge"])
        changing |= dynamic
        if edge.get("weight") is not None:
            data = {k: v for k, v in data.items() if k.lower() != "weight"}
            data["weight"] = _number(edge.get("weight"))
        kind = (edge.get("type") or "").lower()
        direction = {"directed": True, "undirected": False, "mutual": False}.get(kind)
        network.add_edge(*ends, data, directed=direction)
    if changing:
        network.notes.append(Uncertain(DYNAMIC))
    if network.defaults.get("weight") is None and any("weight" in e[2] for e in network.edges):
        network.defaults["weight"] = 1  # as GEXF defines it
    return network


def _declared(graph: Any, kind: str) -> dict[str | None, Any]:
    return {
        attribute.get("id"): attribute
        for attributes in graph.iter("attributes")
        if attributes.get("class") == kind
        for attribute in attributes.iter("attribute")
    }


def _defaults(declared: dict[str | None, Any]) -> Attributes:
    """Return the values of attributes, by title, that elements have which give none."""
    defaults = ((each, each.find("default")) for each in declared.values())
    return {
        _title(each): _of_type(default.text or "", each.get("type"))
        for each, default in defaults
        if default is not None
    }


def _title(attribute: Any) -> str:
    return str(attribute.get("title") or attribute.get("id"))


def _attributes(element: Any, declared: dict[str | None, Any]) -> tuple[Attributes, bool]:
    """Return the attributes of a node or an edge, and whether a weight has several values."""
    found: Attributes = {}
    changes = False
    for value in _values(element):
        attribute = declared.get(value.get("for", value.get("id")))
        if attribute is None:
            continue
        title = _title(attribute)
        changes |= title.lower() == "weight" and (
            title in found or "start" in value.attrib or "end" in value.attrib
        )
        found[title] = _of_type(value.get("value", ""), attribute.get("type"))
    return found, changes


def _values(element: Any) -> Iterator[Any]:
    for values in element.findall("attvalues"):
        yield from values.findall("attvalue")
