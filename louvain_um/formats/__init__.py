"""Reading and writing graphs: one module per file format, adapters for other libraries' objects.

The modules of the formats, and the libraries they need, are imported when they are used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

from louvain_um.errors import OptionError, checks_kinds
from louvain_um.formats.file_types import READERS, SUFFIXES, check_format, format_of
from louvain_um.formats.reading import as_graph, read_graph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from louvain_um.graph.graph import Graph
    from louvain_um.results.communities import Communities


@overload
def write_graph(
    path: str | os.PathLike[str],
    graph: Graph | Communities,
    *,
    format: str | None = ...,
    attributes: Mapping[str, NDArray[Any]] | None = ...,
    force: bool = ...,
) -> tuple[str, ...]: ...
@overload
def write_graph(
    path: Graph | Communities,
    graph: str | os.PathLike[str],
    *,
    format: str | None = ...,
    attributes: Mapping[str, NDArray[Any]] | None = ...,
    force: bool = ...,
) -> tuple[str, ...]: ...
@checks_kinds
def write_graph(
    path: str | os.PathLike[str] | Graph | Communities,
    graph: Graph | Communities | str | os.PathLike[str],
    *,
    format: str | None = None,
    attributes: Mapping[str, NDArray[Any]] | None = None,
    force: bool = False,
) -> tuple[str, ...]:
    """Write a graph to a file in the format of its suffix; reading it gives the same graph.

    Parameters
    ----------
    path : path
        Edge list, ``.mtx``, ``.graph``, ``.npz``, ``.graphml``, ``.gexf`` (Gephi), ``.cyjs``
        (Cytoscape; each may end in ``.gz``) or ``.parquet``.
    graph : Graph, DeviceGraph, DynamicGraph or Communities
        Each edge is written once (twice for METIS), real weights exactly. Of a graph on a device,
        about a million arcs are in host memory at a time, except for ``.npz.gz``. GraphML, GEXF and
        Cytoscape JSON also take a result, and then hold the attribute ``community`` of each
        vertex. The order of the two is free: ``write_graph(graph, path)`` is the same.
    format : str, optional
        The format, if the suffix does not determine it; names as for `read_graph`.
    attributes : mapping of str to array of length n, optional
        Further attributes of the vertices, by name; for GraphML, GEXF and Cytoscape JSON, which
        also hold the graph's own. One whose name means something else there, such as ``label``,
        becomes ``label_2``.
    force : bool
        Whether to replace an existing file.

    Returns
    -------
    tuple of str
        Notes on what the format cannot store, such as names.

    Raises
    ------
    LouvainUmError
        The format cannot be written or cannot store the graph, the file exists, the folder
        does not, or the disk is full. No partial file is left.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from louvain_um.formats import as_graph, read_graph, write_graph
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "small.mtx.gz")
    ...     notes = write_graph(path, as_graph(([0, 1], [1, 2], [0.5, 0.25])))
    ...     g = read_graph(path)
    >>> (g.weights / g.scale).tolist()
    [0.5, 0.5, 0.25, 0.25]
    """
    from louvain_um.formats.write import write
    from louvain_um.graph.graph import Graph
    from louvain_um.results.communities import Communities

    if isinstance(graph, str | os.PathLike):
        path, graph = graph, path
    chosen = dict(attributes or {})
    if isinstance(graph, Communities):
        chosen = {"community": graph.labels, **chosen}
        graph = graph.require_graph()
    if hasattr(graph, "as_graph") or hasattr(graph, "host_snapshot"):
        graph = as_graph(graph)
    if not isinstance(path, str | os.PathLike) or not isinstance(graph, Graph):
        given = f"({type(path).__name__}, {type(graph).__name__})"
        raise OptionError(
            problem=f"write_graph needs a path and a Graph, not {given}",
            remedy="call write_graph('graph.csv', lu.as_graph(obj))",
        )
    check_format(format)
    return write(os.fspath(path), graph, format, force, chosen)


def check_graph_path(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raise the errors of `write_graph` about the path, before any work is done."""
    from louvain_um.formats.write import writer_for

    writer_for(os.fspath(path), None, force, {})


__all__ = [
    "READERS",
    "SUFFIXES",
    "as_graph",
    "check_graph_path",
    "format_of",
    "read_graph",
    "write_graph",
]
