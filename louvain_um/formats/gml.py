"""GML and GraphML, through networkx."""

from __future__ import annotations

from typing import TYPE_CHECKING

from louvain_um.errors import GraphError
from louvain_um.formats.needs import first_line, need
from louvain_um.formats.source import Source
from louvain_um.graph import Graph

if TYPE_CHECKING:
    from louvain_um.formats.edgelist import ReadOptions


def read(source: Source, options: ReadOptions) -> Graph:
    """Read a GML file; vertices are named by their labels where all have different ones."""
    return _read(source, options, "gml")


def read_graphml(source: Source, options: ReadOptions) -> Graph:
    """Read a GraphML file."""
    return _read(source, options, "graphml")


def _read(source: Source, options: ReadOptions, kind: str) -> Graph:
    from louvain_um.formats.networks import from_networkx

    networkx = need("networkx", source.name)
    data = source.read()
    try:
        if kind == "gml":
            graph = networkx.parse_gml(data.decode("utf-8"), label="id")
        else:
            graph = networkx.parse_graphml(data)
    except Exception as error:  # networkx lets pass whatever its parser stumbles over
        raise source.error(
            f"is no readable {kind.upper()} ({first_line(error)}); write it again"
        ) from None
    labels = [data.get("label") for _, data in graph.nodes(data=True)]
    words = all(isinstance(label, str | int) for label in labels)
    labelled = words and len(set(labels)) == len(labels)
    try:
        return from_networkx(graph, options, labels if labelled else list(graph))
    except GraphError as error:
        raise source.error(str(error)) from None
