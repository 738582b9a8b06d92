"""GML, GraphML, GEXF and Cytoscape JSON, through networkx."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from typing import Any

from louvain_um.errors import GraphError
from louvain_um.formats.column_roles import WEIGHTS
from louvain_um.formats.file_types import first_line_of, require
from louvain_um.formats.graph_file import GraphFile
from louvain_um.formats.read_options import ReadOptions
from louvain_um.graph.graph import Graph

TITLES = {"gml": "GML", "graphml": "GRAPHML", "gexf": "GEXF", "cytoscape": "Cytoscape JSON"}
"""Names of the formats in messages."""

INTEGER = re.compile("0|-?[1-9][0-9]{0,17}")
"""An id as GEXF writes it."""

GRAPHML = b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
"""The root element with the namespace that some programs leave out."""


def read(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a GML file; vertices are named by their labels if these are unique."""
    return _read(file, options, "gml")


def read_graphml(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a GraphML file."""
    return _read(file, options, "graphml")


def read_gexf(file: GraphFile, options: ReadOptions) -> Graph:
    """Read a GEXF file; vertices are named by their labels if these are unique."""
    return _read(file, options, "gexf")


def read_cytoscape(file: GraphFile, options: ReadOptions) -> Graph:
    """Read the JSON of Cytoscape and Cytoscape.js; vertices are named as in GEXF."""
    return _read(file, options, "cytoscape")


def _read(file: GraphFile, options: ReadOptions, kind: str) -> Graph:
    from louvain_um.formats.networks import from_networkx

    graph, names = parsed(file, kind)
    weight = _weight(graph) if options.weight is None else str(options.weight)
    try:
        read = from_networkx(graph, options, names, weight)
    except GraphError as error:
        raise file.error(str(error)) from None
    if read.weighted and options.weight is None and weight != WEIGHTS[0]:
        note = f"weights are read from the edge attribute {weight!r}"
        read = replace(read, notes=(note, *read.notes), check=False)
    return read


def parsed(file: GraphFile, kind: str) -> tuple[Any, list[Any]]:
    """Return a file's graph of networkx, and its vertices' names: labels if these are unique."""
    networkx = require("networkx", file.name)
    data = file.read()
    try:
        if kind == "gml":
            graph = networkx.parse_gml(data.decode("utf-8"), label="id")
        elif kind == "gexf":
            graph = networkx.read_gexf(io.BytesIO(data))
        elif kind == "cytoscape":
            graph = networkx.cytoscape_graph(json.loads(data), name="label")
        else:
            graph = networkx.parse_graphml(data.replace(b"<graphml>", GRAPHML))
    except TypeError:  # networkx looks for a graph once more, and expects text
        raise file.error(f"contains no graph of {TITLES[kind]}; write it again") from None
    except Exception as error:  # networkx passes on any error of its parser
        raise file.error(
            f"is not valid {TITLES[kind]} ({first_line_of(error)}); write it again"
        ) from None
    labels = [data.get("label") for _, data in graph.nodes(data=True)]
    usable = all(isinstance(label, str | int) for label in labels)
    if kind == "gexf" and usable and all(INTEGER.fullmatch(str(label)) for label in labels):
        labels = [int(label) for label in labels]  # GEXF has no other labels than text
    labelled = usable and len(set(labels)) == len(labels)
    return graph, labels if labelled else list(graph)


def _weight(graph: Any) -> str:
    """Return the edge attribute that holds the weights: `value` in many GML files."""
    named = {
        name
        for *_, data in graph.edges(data=True)
        for name, value in data.items()
        if isinstance(value, int | float)
    }
    return next((name for name in WEIGHTS if name in named), WEIGHTS[0])
