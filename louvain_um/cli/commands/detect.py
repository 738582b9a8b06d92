"""``louvain-um detect``: find, print and save communities."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from louvain_um.cli import common
from louvain_um.cli.common import option
from louvain_um.cli.detection import (
    check_output,
    connection_notes,
    is_partitioned,
    read,
    show,
    show_result,
    summary,
    with_constraints,
    write_output,
)
from louvain_um.cli.exit_codes import print_note, with_exit_code
from louvain_um.cli.reading import DEFAULT_READING, GraphArgument, Reading, refuse_two_inputs
from louvain_um.cli.terminal import echo
from louvain_um.errors import OptionError, Taken, require_packages
from louvain_um.options import Method, Options
from louvain_um.placement.policy.find import find_policy

if TYPE_CHECKING:
    from louvain_um.distributed.files.writing import PartitionedLabels


@with_exit_code
def detect(
    graph: GraphArgument,
    output: Annotated[
        Path | None,
        option(
            "--output -o LABELS",
            "File for the community of each vertex: .csv, .tsv, .parquet, .npz or .json; or "
            "for the graph with its communities: .gexf (Gephi), .graphml or .cyjs (Cytoscape).",
        ),
    ] = None,
    safe_csv: common.SafeCsv = False,
    hierarchy: Annotated[
        bool,
        option(
            "--hierarchy --levels",
            "Also write the nested partitions, finest first, as columns hierarchy_0, hierarchy_1 …",
            common.WRITING,
        ),
    ] = False,
    top: Annotated[int, option("N", "Number of communities to print.", min=0)] = common.TOP,
    method: Annotated[
        Method, option("", "leiden takes longer and guarantees connected communities.")
    ] = "louvain",
    resolution: common.Resolution = 1.0,
    threshold: common.Threshold = 1e-7,
    max_level: common.MaxLevel = None,
    searching: common.Searching = common.Searching(),
    objective: common.Objective = "modularity",
    nodes: Annotated[
        Path | None,
        option(
            "TABLE",
            "CSV, TSV or Parquet file with attributes of vertices, a row for each; implies "
            "--describe.",
        ),
    ] = None,
    describe: Annotated[
        bool,
        option(
            "--describe",
            "Print density, cut and hubs of each community, and which attributes of vertices "
            "distinguish it.",
        ),
    ] = False,
    random_graphs: Annotated[
        int,
        option(
            "--significance N",
            "Compare the modularity with that of N random graphs of the same degrees.  "
            "[default: 0]",
            min=0,
        ),
    ] = 0,
    initial: Annotated[
        Path | None,
        option(
            "LABELS",
            "Label file of communities to start from.  [default: single vertices]",
            common.SEARCH,
        ),
    ] = None,
    fixed: Annotated[
        Path | None,
        option(
            "FILE",
            "Text file of vertices that stay in their initial communities, one per line.",
            common.SEARCH,
        ),
    ] = None,
    max_size: Annotated[
        int | None,
        option(
            "N", "Maximum number of vertices of a community.  [default: no limit]", common.SEARCH
        ),
    ] = None,
    seed: common.Seed = 0,
    device: common.Device = "auto",
    memory: common.Memory = "auto",
    device_budget: common.Budget = None,
    peer_memory: common.Peer = None,
    ballast: common.Ballast = None,
    allow_driver_eviction: common.AllowEviction = False,
    threads: common.Threads = None,
    cluster: Annotated[
        str | None,
        option(
            "WHERE",
            "Run on several processes or machines: local:N, the address of a Dask scheduler "
            "such as tcp://head:8786, or mpi (under mpiexec).  [default: this process]",
            common.CLUSTER,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        option(
            "FOLDER",
            "Folder shared by the workers of --cluster, from which an interrupted run is "
            "resumed.  [default: none]",
            common.CLUSTER,
        ),
    ] = None,
    on_loss: Annotated[
        Literal["raise", "resume"],
        option("", "What to do when a worker of --cluster is lost.", panel=common.CLUSTER),
    ] = "raise",
    exchange: Annotated[
        Literal["host", "nccl"],
        option(
            "",
            "How ranks of --cluster with --device cuda exchange what is on their GPUs: by way "
            "of the hosts, or through NCCL, which needs a GPU for each.",
            panel=common.CLUSTER,
        ),
    ] = "host",
    labels_folder: Annotated[
        str | None,
        option(
            "FOLDER",
            "Instead of -o: folder, local or remote, to which each rank of --cluster writes "
            "the communities of its own vertices as Parquet.  [default: none]",
            common.CLUSTER,
        ),
    ] = None,
    writing: common.Writing = common.Writing(),
    reading: Reading = DEFAULT_READING,
) -> None:
    """Find the communities of a graph and print the largest ones."""
    from louvain_um.distributed.cluster import ClusterRun, detect_on_cluster, write_on_cluster
    from louvain_um.gpu.runtime.device import start_early

    # Bad options raise here, before the graph is read.
    common.refuse_top(top, json=writing.json)
    options = Options(
        method=method,
        resolution=resolution,
        threshold=threshold,
        max_level=max_level,
        objective=objective,
        max_size=max_size,
        seed=seed,
        device=device,
        memory=memory,
        device_budget=device_budget,
        peer_memory=peer_memory,
        threads=threads,
        ballast=ballast,
        allow_driver_eviction=allow_driver_eviction,
        **asdict(searching),
    )
    find_policy(options.memory)
    clustered = ClusterRun(
        cluster=cluster,
        checkpoint=checkpoint,
        on_loss=on_loss,
        labels=labels_folder,
        force=writing.force,
        exchange=exchange,
    )
    if random_graphs and (options.objective != "modularity" or clustered.cluster is not None):
        raise OptionError(remedy="--significance is for modularity without --cluster")
    refuse_two_inputs(graph, nodes, initial, fixed)
    describe |= nodes is not None
    if describe and clustered.cluster is not None:
        raise OptionError(remedy="--nodes and --describe are for detection without --cluster")
    if describe:
        name = "--describe" if nodes is None else "--nodes"
        from louvain_um.formats.file_types import suffix_of

        parquet = nodes is not None and suffix_of(str(nodes)) == ".parquet"
        require_packages(name, "pandas", *(("pyarrow",) if parquet else ()))
        from louvain_um.formats.attributes import table_of

        attributes = table_of(nodes)
    if labels_folder is not None and output is not None:
        raise OptionError(remedy="pass -o or --labels-folder, not both")
    on_cluster = detect_on_cluster if labels_folder is None else write_on_cluster
    for given, name in ((safe_csv, "--safe-csv"), (hierarchy, "--hierarchy")):
        if given and output is None:
            raise OptionError(remedy=f"{name} needs a file to write: add -o labels.csv")
    how = {"hierarchy": hierarchy, "safe_csv": safe_csv, "force": writing.force}
    if output is not None:
        check_output(output, graph, **how)
    options = with_constraints(options, initial, fixed)
    if clustered.cluster is None:
        reading.suited_to(options.objective).check(graph)
        start_early(options)  # which any later error waits for
    from louvain_um.cli.progress import progress_reporter, timed
    from louvain_um.core import parallel
    from louvain_um.results.communities import Communities

    if clustered.follows:  # the first process of MPI reads, prints and writes
        parts = reading.partitioned(graph) if is_partitioned(graph) else None
        on_cluster(clustered, parts, options)
        return
    seconds = {"read": 0.0, "detect": 0.0, "write": 0.0}
    with progress_reporter(quiet=writing.quiet) as reporter:
        from louvain_um.api import rows_made_for, run
        from louvain_um.core.compiled import announced

        reporter.step(f"reading {graph}")
        with (
            timed(seconds, "read", reporter), announced(reporter), clustered.leading(),
            rows_made_for(graph, options),
        ):  # fmt: skip
            loaded = read(graph, reading.suited_to(options.objective), clustered)
        compiled = reporter.compiled
        with timed(seconds, "detect", reporter):
            result: Communities | PartitionedLabels = (
                run(loaded, options, reporter)
                if clustered.cluster is None
                else on_cluster(clustered, loaded, options, reporter)
            )
        compiling = reporter.compiled - compiled
        tested = None
        if random_graphs and isinstance(result, Communities):
            tested = result.significance(
                graphs=random_graphs, device=device, device_budget=device_budget,
                progress=lambda done, graphs, text: reporter.step(f"{text} of {graphs}"),
            )  # fmt: skip
        described = None
        if describe and isinstance(result, Communities):
            reporter.step("describing communities")
            described = result.describe(attributes)
        connected = None
        if output is not None and isinstance(result, Communities):
            connected = parallel.aside(connection_notes, result)
            reporter.step(f"writing {output}")
            with timed(seconds, "write", reporter):
                write_output(output, result, described, **how)

    ran_on = result.provenance.get("device")
    notes = (
        *loaded.notes,
        *common.ignored_memory_options(ran_on, memory, "auto", device_budget, peer_memory),
        *(connection_notes(result) if connected is None else connected.result()),
        *(() if described is None else described.notes),
    )
    if not writing.quiet:
        print_note(*(text for text in notes if not isinstance(text, Taken)))  # with the graph
        print_note(*common.compiling_notes(reporter.compiled))
    if writing.json:
        more: dict[str, object] = {}
        if tested is not None:
            more["significance"] = tested.summary()
        if described is not None:
            more["descriptions"] = described.to_frame().reset_index().to_dict("records")
        common.print_json(summary(result, seconds, options.seed, notes) | more)
    elif not writing.quiet:
        show(result, graph, output, compiling, described, top=top, verbose=writing.verbose)
    elif output is None or described is not None:
        show_result(result, compiling, top, described)
    if tested is not None and not writing.json:
        echo("")
        echo(str(tested))
