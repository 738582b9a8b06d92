"""What ``louvain-um detect`` reads, writes and prints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from louvain_um.cli import reading as graphs
from louvain_um.cli import terminal
from louvain_um.cli.reading import Reading
from louvain_um.cli.terminal import echo, with_flags
from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.formats import write_graph
from louvain_um.formats.file_types import ATTRIBUTED, TABLES, check_table_path, holds_communities
from louvain_um.options import Options
from louvain_um.version import __version__

if TYPE_CHECKING:
    from louvain_um.distributed.cluster import ClusterRun
    from louvain_um.distributed.files.reading import PartitionedGraph
    from louvain_um.distributed.files.writing import PartitionedLabels
    from louvain_um.graph.graph import Graph
    from louvain_um.results.communities import Communities
    from louvain_um.results.description import Description


LEVEL = ("vertices", "arcs", "modularity", "iterations", "seconds")
"""What ``--json`` prints of a level."""


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
    graphs.refuse_same(graph, output)
    if not holds_communities(str(output)):
        try:
            check_table_path(output, force=force, safe_csv=safe_csv)
        except LouvainUmError as error:
            if output.suffix.lower() in TABLES:
                raise
            known = ", ".join(ATTRIBUTED)
            raise LouvainUmError(
                f"{error}, or for the graph with its communities one of {known}; `louvain-um draw` "
                "makes pages and pictures"
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
    output: Path,
    result: Communities,
    described: Description | None,
    *,
    hierarchy: bool,
    safe_csv: bool,
    force: bool,
) -> None:
    """Write labels, or the graph with its communities and what distinguishes them."""
    from louvain_um.formats.labels import write_labels

    if holds_communities(str(output)):
        more = {} if described is None else {"description": described.by_vertex()}
        write_graph(output, result, attributes=more, force=force)
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


def connection_notes(result: Communities | PartitionedLabels) -> tuple[str, ...]:
    """Return a note if communities of the input's graph are not connected."""
    from louvain_um.results.communities import Communities
    from louvain_um.results.quality import parts_of

    if result.method == "leiden" or not isinstance(result, Communities) or result.graph is None:
        return ()
    disconnected = (parts_of(result.graph, result.labels, result.sizes) > 1).nonzero()[0]
    if not len(disconnected):
        return ()
    largest = int(result.sizes[disconnected].max())
    are = "is" if len(disconnected) == 1 else "are"
    return (
        f"{len(disconnected):,} of {result.n_communities:,} communities {are} not connected, "
        f"the largest of {largest:,} vertices; pass method='leiden' for connected ones",
    )


def summary(
    result: Communities | PartitionedLabels,
    seconds: dict[str, float],
    seed: int,
    notes: Iterable[str],
) -> dict[str, Any]:
    """Return what ``--json`` prints."""
    from louvain_um.results.communities import Communities

    return {
        "schema": 1,
        "version": __version__,
        "graph": terminal.numbers_of(result),
        "method": result.method,
        **(
            {"objective": result.objective, "value": result.value}
            if result.objective != "modularity"
            else {}
        ),
        "modularity": result.modularity,
        "communities": result.n_communities,
        "sizes": result.sizes.tolist(),
        "levels": [{name: getattr(level, name) for name in LEVEL} for level in result.levels],
        "seconds": seconds,
        "device": result.provenance.get("device"),
        "policy": result.provenance.get("policy"),
        "budget_bytes": result.provenance.get("budget_bytes"),
        "peak_bytes": {
            group: int(result.memory.get(group, 0))
            for group in ("graph", "hash", "community", "scratch")
        },
        "seed": seed,
        "options": result.provenance.get("options"),
        "notes": [with_flags(note) for note in notes],
        **({} if isinstance(result, Communities) else {"files": result.files}),
    }


def show(
    result: Communities | PartitionedLabels,
    source: str,
    output: Path | None,
    compiling: float,
    described: Description | None,
    *,
    top: int,
    verbose: bool,
) -> None:
    """Print the graph, the result and where the labels are."""
    from louvain_um.results.communities import Communities
    from louvain_um.results.display import count

    many = count(result.n_vertices, "vertex", "vertices")
    if result.graph is None:
        size = terminal.numbers_of(result)
        arcs = "" if size["arcs"] is None else f", {count(size['arcs'], 'arc', 'arcs')}"
        echo(f"{terminal.title_of(source)}: {many}{arcs}, read by the ranks")
    else:
        echo(terminal.graph_line(result.graph, source))
    show_result(result, compiling, top, described)
    if verbose:
        echo("")
        terminal.print_table(terminal.levels_table(result))
        for line in terminal.cost_lines(result, compiling):
            echo(line)
    if not isinstance(result, Communities):
        files = count(len(result.files), "file", "files")
        folder = result.files[0].rpartition("/")[0]
        echo(f"\nlabels of {many} written to {folder} ({files})")
    if output is not None:
        from louvain_um.formats.file_types import holds_communities

        what = "graph with communities" if holds_communities(str(output)) else "labels"
        echo(f"\n{what} of {many} written to {output}")


def show_result(
    result: Communities | PartitionedLabels,
    compiling: float,
    top: int,
    described: Description | None = None,
) -> None:
    """Print the result; `compiling` is the number of seconds to exclude."""
    from louvain_um.results.communities import Communities

    echo(terminal.result_line(result, compiling))
    if isinstance(result, Communities) and result.n_communities and top:
        echo("")
        table = terminal.communities_table(result, described, top)
        terminal.print_table(table)
