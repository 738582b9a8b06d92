"""Write GEXF, GraphML and Cytoscape JSON through networkx, with attributes of vertices."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from louvain_um.formats.optional_dependencies import require
from louvain_um.graph.export import Attributes, to_networkx, vertex_names
from louvain_um.graph.graph import Graph


def write_gexf(stream: BinaryIO, graph: Graph, path: str, attributes: Attributes) -> None:
    """Write GEXF, for Gephi."""
    writer = require("networkx.readwrite.gexf", path).GEXFWriter(prettyprint=False)
    writer.add_graph(_labelled(graph, path, attributes))
    for meta in writer.xml.iter("meta"):
        # The date of writing: the same graph gives the same bytes.
        meta.attrib.pop("lastmodifieddate", None)
    writer.write(stream)


def write_graphml(stream: BinaryIO, graph: Graph, path: str, attributes: Attributes) -> None:
    """Write GraphML, for igraph, yEd, Gephi and others."""
    networkx = require("networkx", path)
    text = io.BytesIO()
    networkx.write_graphml_xml(_labelled(graph, path, attributes), text, prettyprint=False)
    # Readers of XML take a carriage return for a newline unless it is escaped.
    stream.write(text.getvalue().replace(b"\r", b"&#13;"))


def write_cytoscape(stream: BinaryIO, graph: Graph, path: str, attributes: Attributes) -> None:
    """Write the JSON of Cytoscape and Cytoscape.js."""
    found = require("networkx", path).cytoscape_data(
        _labelled(graph, path, attributes), name="label"
    )
    stream.write(json.dumps(found, ensure_ascii=False).encode() + b"\n")


def _labelled(graph: Graph, path: str, attributes: Attributes) -> Any:
    """Return the graph with vertices 0 … n − 1, labelled with their names or ids."""
    names = vertex_names(graph)
    plain = [name if isinstance(name, str | int) else str(name) for name in names]
    # A label is of one type in these formats.
    typed = plain if len({type(name) for name in plain}) < 2 else [str(name) for name in plain]
    labels: NDArray[Any] = np.empty(len(names), object)
    labels[:] = typed
    numbered = replace(graph, names=None, check=False)
    return to_networkx(numbered, {"label": labels, **attributes})
