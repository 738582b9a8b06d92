"""The files of a detection: graphs, constraints, and where communities go."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from louvain_um.cli import graphs
from louvain_um.cli.reading import Reading

if TYPE_CHECKING:
    from louvain_um.distributed.cluster import ClusterRun
    from louvain_um.distributed.files.reading import PartitionedGraph
    from louvain_um.graph.graph import Graph
    from louvain_um.options import Options
    from louvain_um.results.communities import Communities


def read(name: str, reading: Reading, clustered: ClusterRun) -> Graph | PartitionedGraph:
    """Read a graph; a folder, a pattern and remote files are left to the ranks of a cluster."""
    if clustered.cluster is None or not is_partitioned(name):
        return reading.read(name)
    return reading.partitioned(name)


def is_partitioned(name: str) -> bool:
    """Return whether a name stands for several files, or remote ones."""
    if Path(name).is_file():
        return False
    return "://" in name or any(sign in name for sign in "*?[") or Path(name).is_dir()


def check_output(output: Path, graph: str, *, hierarchy: bool, safe_csv: bool, force: bool) -> None:
    """Raise if the output cannot be written, before any work is done."""
    from louvain_um.errors import LouvainUmError, OptionError
    from louvain_um.formats.file_types import ATTRIBUTED, holds_communities
    from louvain_um.formats.labels import check_labels_path
    from louvain_um.formats.labels.table import WRITERS

    graphs.refuse_same(graph, output)
    if not holds_communities(str(output)):
        try:
            check_labels_path(output, force=force, safe_csv=safe_csv)
        except LouvainUmError as error:
            if output.suffix.lower() in WRITERS:
                raise
            known = ", ".join(ATTRIBUTED)
            raise LouvainUmError(
                f"{error}, or for the graph with its communities one of {known}"
            ) from None
    elif hierarchy or safe_csv:
        name = "--hierarchy" if hierarchy else "--safe-csv"
        raise OptionError(
            remedy=f"{name} is for label files such as .csv, not for {', '.join(ATTRIBUTED)}; "
            "leave it out"
        )
    else:
        graphs.check_output(output, force=force)


def write_output(
    output: Path, result: Communities, *, hierarchy: bool, safe_csv: bool, force: bool
) -> None:
    """Write labels, or the graph with its communities."""
    from louvain_um.formats import write_graph
    from louvain_um.formats.file_types import holds_communities
    from louvain_um.formats.labels import write_labels

    if holds_communities(str(output)):
        write_graph(output, result, force=force)
    else:
        write_labels(result, output, hierarchy=hierarchy, force=force, safe_csv=safe_csv)


def with_constraints(options: Options, initial: Path | None, fixed: Path | None) -> Options:
    """Return options with the communities and the vertices that files list."""
    found: dict[str, Any] = {}
    if initial is not None:
        from louvain_um.formats.labels import read_labels

        labels = read_labels(initial)
        pairs = zip(labels.vertices.tolist(), labels.communities.tolist(), strict=True)
        found["initial"] = dict(pairs)
    if fixed is not None:
        from louvain_um.formats.labels import read_vertices

        found["fixed"] = read_vertices(fixed)
    return replace(options, **found)
