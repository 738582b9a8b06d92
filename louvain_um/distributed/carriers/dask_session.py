"""A run on a Dask cluster, as its client sees it."""

from __future__ import annotations

import queue
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final

from distributed import Client, Future

from louvain_um.core.parallel import default_threads
from louvain_um.distributed.carriers.dask_local import local_client
from louvain_um.distributed.carriers.dask_rank import (
    Doors,
    Session,
    event_of,
    run_rank,
    tell_lost,
)
from louvain_um.distributed.communicator import version_digest
from louvain_um.distributed.files.reading import PartitionedGraph, blocks_to_read
from louvain_um.distributed.files.writing import PartitionedLabels
from louvain_um.distributed.partition import blocks_of
from louvain_um.errors import LouvainUmError, OptionError, WorkerLostError
from louvain_um.events import Event, Observer
from louvain_um.formats.file_types import first_line_of
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.results.communities import Communities

POLL_SECONDS: Final = 0.1
CONNECT_SECONDS: Final = 20


@contextmanager
def client_of(cluster: Any) -> Iterator[Client]:
    """Yield a client of a cluster; close what was opened for it."""
    if isinstance(cluster, str) and cluster.startswith("local"):
        with local_client(int(cluster.partition(":")[2] or default_threads())) as client:
            yield client
    elif isinstance(cluster, str):
        try:
            client = Client(cluster, timeout=CONNECT_SECONDS)
        except OSError as error:
            raise LouvainUmError(
                f"no Dask scheduler answers at {cluster}; start one with 'dask scheduler', or use "
                "cluster='local:2'"
            ) from error
        except (RuntimeError, TypeError, ValueError) as error:  # an address or certificates
            raise LouvainUmError(
                f"{cluster}: Dask cannot connect ({first_line_of(error)}); check the address and "
                "Dask's configuration of distributed.comm.tls"
            ) from error
        with client:
            yield client
    elif isinstance(cluster, Client):
        if cluster.status in ("closing", "closed"):
            raise LouvainUmError("the client of the cluster is closed; connect another one")
        yield cluster
    elif hasattr(cluster, "get_client"):
        with cluster.get_client() as client:
            yield client
    else:
        raise OptionError("cluster", type(cluster).__name__, "must be a client of Dask or a name")


def workers_of(client: Client) -> list[str]:
    """Return the addresses of a cluster's workers."""
    return sorted(client.nthreads())


def detect_with_client(
    client: Client,
    graph: Graph | PartitionedGraph,
    options: Options,
    observer: Observer,
    *,
    patience: float,
    resume: bool = False,
    **values: Any,
) -> Communities | PartitionedLabels:
    """Detect communities with all workers of a cluster."""
    client.register_plugin(Doors())
    while True:
        addresses = workers_of(client)
        if not addresses:
            raise WorkerLostError("the cluster has no workers left; start some and run again")
        session = Session(
            name=uuid.uuid4().hex[:12],
            addresses=tuple(addresses),
            patience=patience,
            version=version_digest(),
        )
        try:
            return run_session(client, session, graph, options, observer, values)
        except WorkerLostError:
            if not resume:
                raise


def run_session(
    client: Client,
    session: Session,
    graph: Graph | PartitionedGraph,
    options: Options,
    observer: Observer,
    values: dict[str, Any],
) -> Communities | PartitionedLabels:
    """Run one rank on every worker of a session; on a failure, stop them all."""
    events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
    client.subscribe_topic(session.topic, lambda told: events.put(event_of(told[1])))
    futures: list[Future] = []
    level = -1
    try:
        for rank, (rows, frames) in enumerate(parts_of(client, session, graph)):
            where = [session.addresses[rank]]
            futures.append(
                client.submit(
                    run_rank, session, rank, rows, frames, options, values, workers=where,
                    allow_other_workers=False, pure=False, retries=0,
                    key=f"{session.topic}-{rank}",
                )
            )  # fmt: skip
            futures[-1].add_done_callback(lambda future: events.put(None))
        while not all(future.status == "finished" for future in futures):
            level = next_level(events, observer, level)
            check(client, session, futures)
        found: Communities | PartitionedLabels = futures[0].result()
        if isinstance(graph, Graph) and isinstance(found, Communities):
            return replace(found, graph=graph)
        return found
    except WorkerLostError as error:
        stop(client, session, futures, str(error))
        raise WorkerLostError(f"{error} in level {max(level, 0)}") from error
    except BaseException as error:
        stop(client, session, futures, f"a rank failed: {error}")
        raise
    finally:
        client.unsubscribe_topic(session.topic)


def parts_of(
    client: Client, session: Session, graph: Graph | PartitionedGraph
) -> Iterator[tuple[Any, Any]]:
    """Yield each rank's rows, sent to its worker, or what it reads and its partitions."""
    ranks = len(session.addresses)
    if isinstance(graph, Graph):
        for rank, block in enumerate(blocks_of(graph, ranks)):
            where = [session.addresses[rank]]
            try:
                rows = client.scatter(block, workers=where, direct=True, hash=False)
            except OSError as error:
                raise WorkerLostError(f"{session.worker(rank)} went away") from error
            yield rows, None
    elif graph.frame is None:
        for _ in range(ranks):
            yield graph, None
    else:
        partitions = client.compute(graph.frame.to_delayed())
        for own in blocks_to_read(graph, ranks):
            yield replace(graph, frame=None), [partitions[k] for k in own]


def next_level(events: queue.SimpleQueue[Event | None], observer: Observer, level: int) -> int:
    """Wait a moment for progress; hand it on and return the last level."""
    with suppress(queue.Empty):
        event = events.get(timeout=POLL_SECONDS)
        while True:
            if event is not None:
                observer(event)
                level = max(level, event.level)
            event = events.get_nowait()
    return level


def check(client: Client, session: Session, futures: Sequence[Future]) -> None:
    """Raise that a worker is gone, or what a rank raised first of all."""
    left = workers_of(client)
    for rank, address in enumerate(session.addresses):
        if address not in left or futures[rank].status in ("cancelled", "lost"):
            raise WorkerLostError(f"{session.worker(rank)} went away")
    failed = [future.exception() for future in futures if future.status == "error"]
    for error in sorted(failed, key=lambda error: isinstance(error, WorkerLostError)):
        if isinstance(error, LouvainUmError):
            raise error
        raise LouvainUmError(f"a rank failed: {type(error).__name__}: {error}") from error


def stop(client: Client, session: Session, futures: Sequence[Future], reason: str) -> None:
    """Make all ranks stop, and give up their tasks."""
    workers = workers_of(client)
    left = [address for address in session.addresses if address in workers]
    client.run(tell_lost, session.name, reason, workers=left, on_error="ignore")
    client.cancel(list(futures), force=True)
