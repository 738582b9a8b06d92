"""The functions that users call: `louvain` and `leiden`."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from numpy.typing import NDArray

from louvain_um.core.threads import given_threads
from louvain_um.distributed.cluster import ClusterRun, detect_on_cluster, write_on_cluster
from louvain_um.errors import DeviceUnavailableError
from louvain_um.events import Observer, ignore
from louvain_um.formats.reading import graph_of, warn_of
from louvain_um.gpu.runtime.device import (
    Choice,
    device_errors,
    device_of,
    drop_early,
    is_several,
    library,
    load_early,
    refuse_high_degrees,
)
from louvain_um.graph.graph import Graph
from louvain_um.graph.row_view import unchanged
from louvain_um.options import Budget, Options, OptionValues, takes_options
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO
from louvain_um.progress import observed
from louvain_um.results.communities import Communities
from louvain_um.results.frame import library_of

if TYPE_CHECKING:
    from louvain_um.distributed.files.reading import PartitionedGraph
    from louvain_um.distributed.files.writing import PartitionedLabels


@takes_options()
def louvain(
    graph: Any,
    *,
    observer: Observer | None = None,
    progress: bool = False,
    key_added: str | None = None,
    cluster: Any = None,
    checkpoint: str | Path | None = None,
    on_loss: Literal["raise", "resume"] = "raise",
    exchange: Literal["host", "nccl"] = "host",
    **options: Unpack[OptionValues],
) -> Communities:
    """Detect communities by the Louvain method.

    Parameters
    ----------
    graph : Graph, DynamicGraph, DeviceGraph, PartitionedGraph or anything `as_graph` takes
    **options
        The options of a run; see `louvain_um.options.Options`.
    observer : callable, optional
        Called with every phase and iteration (`louvain_um.events.Event`).
    progress : bool
        Whether level, iteration and modularity are shown on one line of the terminal or notebook.
    key_added : str, optional
        Where to write the communities of the cells of an AnnData, as scanpy does:
        ``obs[key_added]``, a categorical, and ``uns[key_added]``.
    cluster : distributed.Client or str, optional
        Where to run instead of in this process: a Dask client or cluster, "local:N" for N
        processes, a scheduler's address, or "mpi". Labels do not depend on it.
    checkpoint : path, optional
        Folder, shared by all workers of the cluster, from which an interrupted run continues.
    on_loss : {"raise", "resume"}
        Whether the loss of a worker is an error, or the others continue from the checkpoint.
    exchange : {"host", "nccl"}
        How ranks with ``device="cuda"`` exchange what is on their GPUs: by way of the hosts, or
        through NCCL, which needs a GPU for each rank.

    Returns
    -------
    Communities

    Raises
    ------
    OptionError
        A value outside its range.
    GraphError
        The object is not an undirected graph.
    DeviceUnavailableError
        The device is not available.
    MemoryBudgetError
        The run does not fit into device memory or the budget.
    WorkerLostError
        A worker of the cluster was lost.

    References
    ----------
    Blondel, Guillaume, Lambiotte, Lefebvre: Fast unfolding of communities in large networks,
    2008.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    >>> lu.louvain(g, device="cpu").labels.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    clustered = ClusterRun(
        cluster=cluster, checkpoint=checkpoint, on_loss=on_loss, exchange=exchange
    )
    given = Options(method="louvain", **options)
    with observed(observer, progress) as both:
        return _added_to_cells(graph, key_added, given, both, clustered)


@takes_options()
def leiden(
    graph: Any,
    *,
    observer: Observer | None = None,
    progress: bool = False,
    key_added: str | None = None,
    cluster: Any = None,
    checkpoint: str | Path | None = None,
    on_loss: Literal["raise", "resume"] = "raise",
    exchange: Literal["host", "nccl"] = "host",
    **options: Unpack[OptionValues],
) -> Communities:
    """Detect communities by the Leiden method, which guarantees that each is connected.

    Takes and returns what `louvain` does.

    Parameters
    ----------
    graph : Graph, DynamicGraph, DeviceGraph, PartitionedGraph or anything `as_graph` takes
    **options
        The options of a run; see `louvain_um.options.Options`.
    observer : callable, optional
        Called with every phase and iteration (`louvain_um.events.Event`).
    progress : bool
        Whether level, iteration and modularity are shown on one line of the terminal or notebook.
    key_added : str, optional
        Where to write the communities of the cells of an AnnData, as scanpy does:
        ``obs[key_added]``, a categorical, and ``uns[key_added]``.
    cluster : distributed.Client or str, optional
        Where to run instead of in this process: a Dask client or cluster, "local:N" for N
        processes, a scheduler's address, or "mpi". Labels do not depend on it.
    checkpoint : path, optional
        Folder, shared by all workers of the cluster, from which an interrupted run continues.
    on_loss : {"raise", "resume"}
        Whether the loss of a worker is an error, or the others continue from the checkpoint.
    exchange : {"host", "nccl"}
        How ranks with ``device="cuda"`` exchange what is on their GPUs: by way of the hosts, or
        through NCCL, which needs a GPU for each rank.

    Returns
    -------
    Communities

    References
    ----------
    Traag, Waltman, van Eck: From Louvain to Leiden: guaranteeing well-connected communities,
    2019.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    >>> lu.leiden(g, device="cpu").sizes.tolist()
    [3, 3]
    """
    clustered = ClusterRun(
        cluster=cluster, checkpoint=checkpoint, on_loss=on_loss, exchange=exchange
    )
    given = Options(method="leiden", **options)
    with observed(observer, progress) as both:
        return _added_to_cells(graph, key_added, given, both, clustered)


@takes_options()
def detect_partitioned(
    graph: Any,
    folder: str | os.PathLike[str],
    *,
    cluster: Any,
    method: Literal["louvain", "leiden"] = "louvain",
    observer: Observer | None = None,
    checkpoint: str | Path | None = None,
    on_loss: Literal["raise", "resume"] = "raise",
    exchange: Literal["host", "nccl"] = "host",
    force: bool = False,
    **options: Unpack[OptionValues],
) -> PartitionedLabels:
    """Detect communities on a cluster whose ranks write them, each those of its own vertices.

    No labels are sent to the process that calls this, which may have less memory than they take.

    Parameters
    ----------
    graph : PartitionedGraph, Graph or anything `as_graph` takes
    folder : path
        For Parquet files with the columns vertex and community, which readers of folders take as
        one table; made if needed. Every rank must be able to write to it; remote ones ("s3://…")
        through fsspec.
    cluster, checkpoint, on_loss, exchange
        As in `louvain`.
    method : {"louvain", "leiden"}
    **options
        The options of a run; see `louvain_um.options.Options`.
    observer : callable, optional
        Called with every phase and iteration (`louvain_um.events.Event`).
    force : bool
        Whether the files may replace others.

    Returns
    -------
    PartitionedLabels

    Raises
    ------
    LouvainUmError
        The folder has files, and `force` is off, or it cannot be written to; else as `louvain`.

    Examples
    --------
    >>> import louvain_um as lu
    >>> source = lu.read_partitioned("edges/*.parquet")  # doctest: +SKIP
    >>> found = lu.detect_partitioned(source, "labels", cluster="local:4")  # doctest: +SKIP
    >>> found.files[0], found.n_communities, found.modularity  # doctest: +SKIP
    """
    clustered = ClusterRun(
        cluster=cluster, checkpoint=checkpoint, on_loss=on_loss, labels=folder, force=force,
        exchange=exchange,
    )  # fmt: skip
    given = Options(method=method, **options)
    return write_on_cluster(clustered, graph_for(clustered, graph), given, observer or ignore)


def _added_to_cells(
    graph: Any, key: str | None, options: Options, observer: Observer | None, clustered: ClusterRun
) -> Communities:
    """Detect communities, and write them to the AnnData that has the graph if there is a key."""
    if key is None:
        found = run(graph, options, observer, clustered)
        table = library_of(graph)
        return found if table == found.library else replace(found, library=table)
    from louvain_um.formats.neighbours import add_communities, check_cells

    check_cells(graph, key)
    found = run(graph, options, observer, clustered)
    add_communities(graph, key, found, options)
    return found


def run(
    graph: Any,
    options: Options,
    observer: Observer | None = None,
    clustered: ClusterRun | None = None,
) -> Communities:
    """Detect communities with the options and the device of `options`, or on a cluster."""
    if "louvain_um.gpu.engine" not in sys.modules and (clustered is None or not clustered.cluster):
        load_early(options)
    try:
        if options.initial is not None and not isinstance(graph, Graph):
            from louvain_um.results.given_labels import refuse_other_order

            refuse_other_order(graph, options.initial)
        with given_threads(options.threads):
            return _run(graph, options, observer or ignore, clustered)
    finally:
        drop_early()  # also where the run came to no kernel


def _run(
    graph: Any, options: Options, observer: Observer, clustered: ClusterRun | None
) -> Communities:
    """Detect communities; see `run`."""
    from louvain_um.core.hierarchy import detect, search
    from louvain_um.gpu.runtime.device import pick

    if clustered is not None and clustered.cluster is not None:
        there = graph_for(clustered, graph)
        return detect_on_cluster(clustered, there, options, observer)
    options = replace(options, memory=find_policy(options.memory))
    if is_several(options.device):
        from louvain_um.distributed.devices import detect_on_devices
        from louvain_um.gpu.graph import DeviceGraph

        if isinstance(graph, DeviceGraph):
            return replace(detect_on_devices(graph, options, observer), graph=graph.as_graph())
        return detect_on_devices(host_graph(graph), options, observer)
    graph = graph_there(graph, options)
    options = replace(options, device=device_of(graph, options.device))
    chosen = pick(options.device)
    on_device = graph.as_graph() if hasattr(type(graph), "device_index") else None
    with ExitStack() as kept:
        kept.enter_context(unchanged(graph))
        with rows_made_for(graph, options):
            graph, names = graph_on(chosen.kind, graph, options)
        if chosen.kind == "cpu" and options.ballast_bytes:
            raise DeviceUnavailableError(f"ballast takes device memory: {chosen.reason}")
        if chosen.kind == "cpu":
            from louvain_um.core.compiled import announced
            from louvain_um.cpu.engine import CpuEngine

            def on_cpu(options: Options) -> Communities:
                return detect(CpuEngine(options, observer), graph, options, observer)

            with announced(observer):
                found = search(on_cpu, options)
                return found if names is None else replace(found, vertex_names=names)
        if not hasattr(graph, "linked"):
            kept.close()  # it is a copy
        found = _run_there(graph, options, observer, chosen)
        found = found if on_device is None else replace(found, graph=on_device)
        return found if names is None else replace(found, vertex_names=names)


def _run_there(graph: Any, options: Options, observer: Observer, chosen: Choice) -> Communities:
    """Detect communities on a device."""
    from louvain_um.core.hierarchy import detect, search
    from louvain_um.gpu.engine import GpuEngine

    engine: GpuEngine | None = None

    def on_gpu(options: Options) -> Communities:
        nonlocal engine
        if engine is None or not engine.takes(options):
            engines.close()
            engine = engines.enter_context(GpuEngine(options, observer))
        return detect(engine, graph, options, observer)

    with (
        device_errors(chosen, lambda: getattr(engine, "plan", None)), chosen.current(),
        ExitStack() as engines,
    ):  # fmt: skip
        refuse_high_degrees(graph)
        return search(on_gpu, options)


def rows_made_for(graph: Any, options: Options) -> AbstractContextManager[None]:
    """Let the device of a run make the rows of a graph that is still to be made."""
    if isinstance(graph, Graph) or options.device == "cpu" or library() is None:
        return nullcontext()
    from louvain_um.gpu.building.edges import rows_made_on

    return rows_made_on(options)


def graph_there(graph: Any, options: Options) -> Any:
    """Return the graph of an object in a device's memory, built there; anything else as it is."""
    if isinstance(graph, Graph) or options.device == "cpu":
        return graph
    from louvain_um.gpu.building.objects import built_there, is_there

    if options.objective not in ("modularity", "cpm") or not is_there(graph):
        return graph
    built = built_there(graph, options.budget.nbytes)
    if built is None:
        return graph
    warn_of(built.notes)
    return built


def graph_on(
    kind: Literal["cpu", "cuda"], graph: Any, options: Options
) -> tuple[Any, NDArray[Any] | None]:
    """Return a graph as the engine of a kind of device takes it, and names that it lacks."""
    if isinstance(graph, Graph):  # the most common case imports nothing
        return graph, None
    from louvain_um.distributed.files.reading import PartitionedGraph, refuse_without_cluster
    from louvain_um.dynamic.graph import DynamicGraph
    from louvain_um.gpu.graph import DeviceGraph

    if isinstance(graph, PartitionedGraph):
        refuse_without_cluster()
    if isinstance(graph, DeviceGraph):
        return graph.to_host() if kind == "cpu" else graph, None
    if isinstance(graph, DynamicGraph):
        from louvain_um.core.objective import takes_extended_rule

        graph.refuse_directed()
        walks = options.method == "louvain" and not takes_extended_rule(options)
        if kind == "cuda":
            placed = options.memory.name != AUTO.name or options.budget != Budget()
            more = placed or options.ballast_bytes or options.effort == "best"
            rows = graph.linked_device_view() if walks and graph.linked and not more else None
            return (graph.snapshot() if rows is None else rows), graph.names
        if options.objective == "bipartite":  # its modes are found in compressed rows
            return graph.host_snapshot(), graph.names
        return graph.linked_view() if walks else graph.view(), graph.names
    return graph_of(graph, options.objective), None


def graph_for(clustered: ClusterRun, graph: Any) -> Graph | PartitionedGraph | None:
    """Return a graph as a cluster takes it: from the host; None in processes that follow."""
    from louvain_um.distributed.files.reading import PartitionedGraph

    if isinstance(graph, PartitionedGraph):
        return graph
    if clustered.follows:
        return None
    with clustered.leading():
        return host_graph(graph)


def host_graph(graph: Any) -> Graph:
    """Return any kind of graph as one in host memory."""
    if isinstance(graph, Graph):
        return graph
    from louvain_um.dynamic.graph import DynamicGraph
    from louvain_um.gpu.graph import DeviceGraph

    if isinstance(graph, DeviceGraph):
        return graph.to_host()
    if isinstance(graph, DynamicGraph):
        return graph.host_snapshot()
    return graph_of(graph)
