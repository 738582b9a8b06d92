"""``louvain-um detect``: find, print and save communities."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from louvain_um.cli import common, graphs
from louvain_um.cli.exit_codes import print_note, with_exit_code
from louvain_um.cli.messages import with_flags
from louvain_um.cli.reading import DEFAULT_READING, GraphArgument, Reading, with_reading

if TYPE_CHECKING:
    from louvain_um.distributed.cluster import ClusterRun
    from louvain_um.distributed.files.reading import PartitionedGraph
    from louvain_um.distributed.files.writing import PartitionedLabels
    from louvain_um.graph.graph import Graph
    from louvain_um.options import Options
    from louvain_um.results.communities import Communities

TOP = 10
"""Communities to print by default."""


@with_exit_code
@with_reading
def detect(
    graph: GraphArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="LABELS",
            help="File for the community of each vertex: .csv, .tsv, .parquet, .npz or .json; or "
            "for the graph with its communities: .gexf (Gephi), .graphml or .cyjs (Cytoscape).",
        ),
    ] = None,
    safe_csv: Annotated[
        bool,
        typer.Option(
            "--safe-csv",
            help="In .csv and .tsv files, write ' before names that a spreadsheet would run as "
            "formulas.",
        ),
    ] = False,
    hierarchy: Annotated[
        bool,
        typer.Option(
            "--hierarchy",
            "--levels",
            help="Also write the nested partitions, finest first, as columns hierarchy_0, "
            "hierarchy_1 …",
        ),
    ] = False,
    top: Annotated[
        int, typer.Option(metavar="N", min=0, help="Number of communities to print.")
    ] = TOP,
    method: Annotated[
        common.Method,
        typer.Option(help="leiden takes longer and guarantees connected communities."),
    ] = common.Method.louvain,
    resolution: common.Resolution = 1.0,
    threshold: common.Threshold = 1e-7,
    max_level: common.MaxLevel = None,
    objective: common.ObjectiveOption = common.Objective.modularity,
    initial: Annotated[
        Path | None,
        typer.Option(
            metavar="LABELS",
            help="Label file of communities to start from.  [default: single vertices]",
            show_default=False,
        ),
    ] = None,
    fixed: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Text file of vertices that stay in their initial communities, one per line.",
            show_default=False,
        ),
    ] = None,
    max_size: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Maximum number of vertices of a community.  [default: no limit]",
            show_default=False,
        ),
    ] = None,
    seed: common.Seed = 0,
    device: common.Device = "auto",
    memory: common.Memory = "auto",
    device_budget: common.Budget = None,
    peer_memory: common.Peer = None,
    ballast: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Device memory to occupy during the run, such as 100GiB, to emulate a GPU that is "
            "smaller for all programs on it.  [default: none]",
            show_default=False,
        ),
    ] = None,
    allow_driver_eviction: Annotated[
        bool,
        typer.Option(
            "--allow-driver-eviction",
            help="Run even if --ballast makes the driver evict memory. "
            "This can hang the GPU for all its users.",
        ),
    ] = False,
    threads: common.Threads = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Run on several processes or machines: local:N, the address of a Dask scheduler "
            "such as tcp://head:8786, or mpi (under mpiexec).  [default: this process]",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder shared by the workers of --cluster, from which an interrupted run is "
            "resumed.  [default: none]",
            show_default=False,
        ),
    ] = None,
    on_loss: Annotated[
        common.OnLoss,
        typer.Option(help="What to do when a worker of --cluster is lost."),
    ] = common.OnLoss.fail,
    labels_folder: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Instead of -o: folder, local or remote, to which each rank of --cluster writes "
            "the communities of its own vertices as Parquet.  [default: none]",
            show_default=False,
        ),
    ] = None,
    json: common.Json = False,
    force: common.Force = False,
    quiet: common.Quiet = False,
    verbose: common.Verbose = False,
    reading: Reading = DEFAULT_READING,
) -> None:
    """Find the communities of a graph and print the largest ones."""
    from louvain_um.cli.progress import progress_reporter
    from louvain_um.distributed.cluster import ClusterRun, detect_on_cluster, write_on_cluster
    from louvain_um.errors import OptionError
    from louvain_um.options import Options
    from louvain_um.placement.policy.find import find_policy
    from louvain_um.results.communities import Communities

    # Bad options raise here, before the graph is read.
    options = Options(
        method=method.value,
        resolution=resolution,
        threshold=threshold,
        max_level=max_level,
        objective=objective.value,
        max_size=max_size,
        seed=seed,
        device=device,
        memory=memory,
        device_budget=device_budget,
        peer_memory=peer_memory,
        threads=threads,
        ballast=ballast,
        allow_driver_eviction=allow_driver_eviction,
    )
    find_policy(options.memory)
    clustered = ClusterRun(
        cluster=cluster,
        checkpoint=checkpoint,
        on_loss=on_loss.value,
        labels=labels_folder,
        force=force,
    )
    if labels_folder is not None and output is not None:
        raise OptionError(remedy="pass -o or --labels-folder, not both")
    on_cluster = detect_on_cluster if labels_folder is None else write_on_cluster
    for given, name in ((safe_csv, "--safe-csv"), (hierarchy, "--hierarchy")):
        if given and output is None:
            raise OptionError(remedy=f"{name} needs a file to write: add -o labels.csv")
    if output is not None:
        check_output(output, graph, hierarchy=hierarchy, safe_csv=safe_csv, force=force)
    options = with_constraints(options, initial, fixed)
    if clustered.follows:  # the first process of MPI reads, prints and writes
        own = reading.partitioned(graph) if is_partitioned(graph) else None
        on_cluster(clustered, own, options)
        return
    seconds = {"read": 0.0, "detect": 0.0, "write": 0.0}
    with progress_reporter(quiet=quiet) as reporter:
        from louvain_um.api import run
        from louvain_um.cpu.compiling import announced

        reporter.step(f"reading {graph}")
        start = time.perf_counter()
        with announced(reporter), clustered.leading():
            loaded = read(graph, reading.suited_to(options.objective), clustered)
        compiling_while_reading = reporter.compiled
        seconds["read"] = time.perf_counter() - start - compiling_while_reading

        start = time.perf_counter()
        result: Communities | PartitionedLabels = (
            run(loaded, options, reporter)
            if clustered.cluster is None
            else on_cluster(clustered, loaded, options, reporter)
        )
        compiling = reporter.compiled - compiling_while_reading
        seconds["detect"] = time.perf_counter() - start - compiling

        if output is not None and isinstance(result, Communities):
            reporter.step(f"writing {output}")
            start = time.perf_counter()
            write_output(output, result, hierarchy=hierarchy, safe_csv=safe_csv, force=force)
            seconds["write"] = time.perf_counter() - start

    ran_on = result.provenance.get("device")
    notes = (
        *loaded.notes,
        *common.ignored_memory_options(ran_on, memory, "auto", device_budget, peer_memory),
    )
    if not quiet:
        for text in notes:
            print_note(text)
        for text in common.compiling_notes(reporter.compiled):
            print_note(text)
    if json:
        common.print_json(summary(result, seconds, options.seed, notes))
    elif not quiet:
        show(result, graph, output, compiling, top=top, verbose=verbose)
    elif output is None:
        show_result(result, compiling, top)


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
    from louvain_um.errors import OptionError
    from louvain_um.formats.file_types import ATTRIBUTED, holds_communities
    from louvain_um.formats.labels import check_labels_path

    graphs.refuse_same(graph, output)
    if not holds_communities(str(output)):
        check_labels_path(output, force=force, safe_csv=safe_csv)
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
        write_labels(output, result, hierarchy=hierarchy, force=force, safe_csv=safe_csv)


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


def summary(
    result: Communities | PartitionedLabels,
    seconds: dict[str, float],
    seed: int,
    notes: Iterable[str],
) -> dict[str, Any]:
    """Return what ``--json`` prints."""
    from louvain_um.cli import tables
    from louvain_um.results.communities import Communities
    from louvain_um.version import __version__

    return {
        "schema": 1,
        "version": __version__,
        "graph": tables.numbers_of(result),
        "method": result.method,
        **(
            {"objective": result.objective, "value": result.value}
            if result.objective != "modularity"
            else {}
        ),
        "modularity": result.modularity,
        "communities": result.n_communities,
        "sizes": result.sizes.tolist(),
        "levels": [
            {
                "vertices": level.vertices,
                "arcs": level.arcs,
                "modularity": level.modularity,
                "iterations": level.iterations,
                "seconds": level.seconds,
            }
            for level in result.levels
        ],
        "seconds": seconds,
        "device": result.provenance.get("device"),
        "policy": result.provenance.get("policy"),
        "budget_bytes": result.provenance.get("budget_bytes"),
        "peak_bytes": {
            group: int(result.memory.get(group, 0))
            for group in ("graph", "hash", "community", "scratch")
        },
        "seed": seed,
        "notes": [with_flags(note) for note in notes],
        **({} if isinstance(result, Communities) else {"files": result.files}),
    }


def show(
    result: Communities | PartitionedLabels,
    source: str,
    output: Path | None,
    compiling: float,
    *,
    top: int,
    verbose: bool,
) -> None:
    """Print the graph, the result and where the labels are."""
    from louvain_um.cli import tables
    from louvain_um.results.communities import Communities
    from louvain_um.results.display import count

    console = tables.console()
    name = "standard input" if source == "-" else source
    many = count(result.n_vertices, "vertex", "vertices")
    if result.graph is None:
        size = tables.numbers_of(result)
        arcs = "" if size["arcs"] is None else f", {count(size['arcs'], 'arc', 'arcs')}"
        console.print(f"{name}: {many}{arcs}, read by the ranks", soft_wrap=True)
    else:
        console.print(tables.graph_line(result.graph, name), soft_wrap=True)
    show_result(result, compiling, top)
    if verbose:
        console.print()
        console.print(tables.levels_table(result))
        for line in tables.cost_lines(result, compiling):
            console.print(line, soft_wrap=True)
    if not isinstance(result, Communities):
        files = count(len(result.files), "file", "files")
        folder = result.files[0].rpartition("/")[0]
        console.print(f"\nlabels of {many} written to {folder} ({files})", soft_wrap=True)
    if output is not None:
        from louvain_um.formats.file_types import holds_communities

        what = "graph with communities" if holds_communities(str(output)) else "labels"
        console.print(f"\n{what} of {many} written to {output}", soft_wrap=True)


def show_result(result: Communities | PartitionedLabels, compiling: float, top: int) -> None:
    """Print the result; `compiling` is the number of seconds to exclude."""
    from louvain_um.cli import tables
    from louvain_um.results.communities import Communities

    console = tables.console()
    console.print(tables.result_line(result, compiling), soft_wrap=True)
    if isinstance(result, Communities) and result.n_communities and top:
        console.print()
        console.print(tables.communities_table(result, console.width, top))
