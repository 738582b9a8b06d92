"""Where the ranks of a run are: what `cluster=` of `louvain` and `leiden` may be."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from louvain_um.distributed.communicator import Exchange, report
from louvain_um.errors import (
    LouvainUmError,
    OptionError,
    WorkerLostError,
    check_choice,
    needed,
    warn,
)
from louvain_um.events import Observer, ignore

if TYPE_CHECKING:
    from louvain_um.distributed.files.reading import PartitionedGraph
    from louvain_um.distributed.files.writing import PartitionedLabels
    from louvain_um.graph.graph import Graph
    from louvain_um.options import Options
    from louvain_um.results.communities import Communities

Found = TypeVar("Found", "Communities", "PartitionedLabels")

LOCAL: Final = re.compile(r"local(?::([1-9][0-9]{0,3}))?")
ADDRESS: Final = re.compile(r"[a-z]+://\S+")
PATIENCE: Final = "LOUVAIN_UM_PATIENCE"
PATIENCE_SECONDS: Final = 600.0
"""How long a rank waits for another one: longer than any sub-round of a graph that fits."""

MPICH_BYTES: Final = 1 << 21
"""Of ``/dev/shm``, which MPICH maps when it starts; where fewer are free, the system ends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRun:
    """How a run is distributed.

    Parameters
    ----------
    cluster : distributed.Client, cluster object or str
        A client of a Dask cluster; an object with `get_client`, as dask-jobqueue and
        dask-kubernetes have them; "local:N", N processes of this machine; the address of a Dask
        scheduler such as "tcp://head:8786"; or "mpi", the processes that `mpiexec` started.
    checkpoint : path, optional
        Folder that every worker can read and write. A run that was interrupted continues from
        what it holds, on any number of workers.
    on_loss : {"raise", "resume"}
        What to do when a worker is lost: raise `WorkerLostError`, or resume from the checkpoint
        with the workers left.
    labels : path, optional
        Folder to which each rank writes the communities of its own vertices.
    force : bool
        Whether these files may replace others.
    exchange : {"host", "nccl"}
        How ranks with ``device="cuda"`` exchange what is on their GPUs: by way of the hosts'
        memory, or through NCCL, which needs a GPU for each rank.

    Raises
    ------
    OptionError
        A value outside its range.
    """

    cluster: Any
    checkpoint: str | Path | None = None
    on_loss: Literal["raise", "resume"] = "raise"
    labels: str | os.PathLike[str] | None = None
    force: bool = False
    exchange: Exchange = "host"

    def __post_init__(self) -> None:
        check_choice("on_loss", self.on_loss, ("raise", "resume"))
        if self.on_loss == "resume" and self.checkpoint is None:
            problem = "on_loss='resume' has nothing to resume from"
            raise OptionError("checkpoint", None, "name a folder", problem=problem)
        for what, where in (("checkpoints", self.checkpoint), ("labels", self.labels)):
            if self.cluster is None and where is not None:
                problem = f"{what} are written by the ranks of a cluster"
                raise OptionError("cluster", None, "pass cluster='local:2', say", problem=problem)
        check_choice("exchange", self.exchange, ("host", "nccl"))
        if self.cluster is None and self.exchange != "host":
            problem = "the ranks of a cluster exchange arrays"
            raise OptionError("cluster", None, "pass cluster='mpi', say", problem=problem)
        named = isinstance(self.cluster, str) and self.cluster != "mpi"
        known = not named or LOCAL.fullmatch(self.cluster) or ADDRESS.fullmatch(self.cluster)
        if not known or hasattr(self.cluster, "__array__"):
            raise OptionError(
                "cluster", self.cluster, "must be 'local:N', a scheduler's address or 'mpi'"
            )
        if named:
            require("distributed", "Dask", "cluster")

    @property
    def folder(self) -> Path | None:
        """The checkpoint's folder, wherever a worker runs."""
        return None if self.checkpoint is None else Path(self.checkpoint).absolute()

    @property
    def values(self) -> dict[str, Any]:
        """What every rank gets, of paths that hold wherever it runs."""
        values: dict[str, Any] = {"checkpoint": self.folder, "exchange": self.exchange}
        if self.labels is not None:
            path = os.fspath(self.labels)
            values["labels"] = path if "://" in path else os.path.abspath(path)
            values["force"] = self.force
        return values

    @property
    def follows(self) -> bool:
        """Whether this is a process of MPI other than the first, which reads and prints."""
        if self.cluster != "mpi":
            return False
        require("mpi4py.MPI", "mpi4py", "mpi")
        from louvain_um.distributed.carriers.mpi import is_follower

        return is_follower()

    @contextmanager
    def leading(self) -> Iterator[None]:
        """Inform the other processes of MPI if what is done inside fails."""
        try:
            yield
        except BaseException:
            if self.cluster == "mpi" and not self.follows:
                from louvain_um.distributed.carriers.mpi import give_up

                with suppress(WorkerLostError):
                    give_up()
            raise


def detect_on_cluster(
    run: ClusterRun,
    graph: Graph | PartitionedGraph | None,
    options: Options,
    observer: Observer = ignore,
) -> Communities:
    """Detect communities with the ranks of a cluster."""
    from louvain_um.results.communities import Communities

    found = started(run, graph, options, observer)
    assert isinstance(found, Communities)
    return reported(run, found, observer)


def write_on_cluster(
    run: ClusterRun,
    graph: Graph | PartitionedGraph | None,
    options: Options,
    observer: Observer = ignore,
) -> PartitionedLabels:
    """Detect communities with ranks that write them to the files of ``run.labels``."""
    from louvain_um.distributed.files.writing import PartitionedLabels
    from louvain_um.results.communities import Communities

    found = started(run, graph, options, observer)
    labels = PartitionedLabels.of(found) if isinstance(found, Communities) else found
    return reported(run, labels, observer)


def reported(run: ClusterRun, found: Found, observer: Observer) -> Found:
    """Warn of what ranks noted, and report their times to an observer; return the result."""
    report(observer, found.provenance)
    if not run.follows:
        for note in found.provenance.get("notes", ()):
            warn(note)
    return found


def started(
    run: ClusterRun, graph: Graph | PartitionedGraph | None, options: Options, observer: Observer
) -> Communities | PartitionedLabels:
    """Run the ranks where they are to run; return what the first one found."""
    if options.device not in ("auto", "cpu", "cuda"):
        problem = "the ranks of a cluster share the GPUs that they see among themselves"
        raise OptionError("device", options.device, "use device='cuda'", problem=problem)
    from louvain_um.distributed.run import refuse_extended_rule, refuse_policies

    refuse_extended_rule(options)
    if options.device == "cuda":
        refuse_policies(options)
    elif run.exchange == "nccl":
        problem = "NCCL connects GPUs"
        raise OptionError("device", options.device, "use device='cuda'", problem=problem)
    if run.cluster == "mpi":
        require("mpi4py.MPI", "mpi4py", "mpi")
        from louvain_um.distributed.carriers.mpi import detect_with_mpi

        return detect_with_mpi(graph, options, observer, patience=patience(), **run.values)
    if graph is None:
        raise OptionError("graph", None, "must be a graph")
    from louvain_um.distributed.carriers import dask_session

    with dask_session.client_of(run.cluster) as client:
        try:
            return dask_session.detect_with_client(
                client, graph, options, observer, patience=patience(),
                resume=run.on_loss == "resume", **run.values,
            )  # fmt: skip
        except WorkerLostError as error:
            raise WorkerLostError(f"{error}; {remedy(run)}") from error


def remedy(run: ClusterRun) -> str:
    """Return what to do after a worker was lost."""
    if run.checkpoint is None:
        return "run again, with checkpoint=FOLDER to be able to resume"
    return f"resume with checkpoint={str(run.checkpoint)!r}"


def patience() -> float:
    """Return the seconds that a rank waits for another one."""
    given = os.environ.get(PATIENCE, "")
    if not given:
        return PATIENCE_SECONDS
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise OptionError(PATIENCE, given, "must be a number of seconds above 0")
    return seconds


def require(module: str, library: str, extra: str) -> None:
    """Raise an error that says how to install a library that is missing."""
    if library == "mpi4py" and "PMI_RANK" in os.environ:
        refuse_little_shared_memory()
    needed(module, f"this needs {library}", extra)


def refuse_little_shared_memory() -> None:
    """Raise an error where MPICH would end this process, which a launcher started."""
    try:
        about = os.statvfs("/dev/shm")
    except OSError:
        return  # MPICH says so itself
    free = about.f_bavail * about.f_frsize
    if free < MPICH_BYTES and is_mpich():
        raise LouvainUmError(
            f"/dev/shm has {free:,} bytes left, and MPICH needs {MPICH_BYTES:,} there; make it "
            "larger, in Docker with its option shm-size"
        )


def is_mpich() -> bool:
    """Return whether mpi4py loads MPICH; begin any other library, as an import would."""
    import importlib

    try:
        rc = importlib.import_module("mpi4py").rc  # read when MPI is loaded
        rc.initialize, rc.finalize = False, True
        mpi = importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError):
        return False  # the caller says what is missing
    if mpi.Is_initialized():
        return False
    if mpi.Get_library_version().startswith("MPICH"):
        return True
    mpi.Init_thread()
    return False
