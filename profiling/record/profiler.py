"""Profile a detection or a user's own code in one call, and in a notebook by a magic."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from louvain_um.errors import OptionError, among, checks_kinds
from louvain_um.events import Observer, both, observing
from louvain_um.formats.reading import graph_of
from louvain_um.gpu.graph import DeviceGraph
from louvain_um.gpu.runtime.device import Choice, device_of, first_of, pick
from louvain_um.graph.graph import Graph
from louvain_um.options import Method, Options, OptionValues, takes_options
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import Policy
from louvain_um.profiling.facade import Session
from louvain_um.profiling.record.capture import Recording
from louvain_um.profiling.record.jobs import job_of, refuse_ballast
from louvain_um.profiling.session.events import MOST_EVENTS
from louvain_um.profiling.session.storage import check_target
from louvain_um.profiling.sources.source import (
    LIGHT,
    NO_TRACER,
    SOURCES,
    EventSource,
    InPlaceReads,
    SourceUnavailableError,
)


@takes_options(memory="base")
def profile(
    graph: Any,
    *,
    method: Method = "louvain",
    program: str | None = None,
    source: Any = None,
    sources: Sequence[str] = SOURCES,
    tracer: bool = False,
    observer: Observer | None = None,
    save_to: str | Path | None = None,
    force: bool = False,
    most_events: int = MOST_EVENTS,
    name: str | None = None,
    ballast: int | str | None = None,
    allow_driver_eviction: bool = False,
    **options: Unpack[OptionValues],
) -> Session:
    """Detect communities, or run another algorithm, and record what that did to memory.

    Parameters
    ----------
    graph : Graph, DeviceGraph or anything `as_graph` takes
    method : {"louvain", "leiden"}
    **options
        The options of a run; see `louvain_um.options.Options`. The default policy "base" leaves
        everything to the driver, as the run to compare with.
    program : {"bfs", "sssp", "components", "mst", "pagerank", "triangles", "spmv"}, optional
        Another algorithm to run; of the options it takes device, memory, device_budget and
        threads. "spmv" multiplies with ones.
    source : int or name, optional
        Where "bfs" and "sssp" begin; by default at the vertex of most arcs.
    sources : sequence of {"uvm", "uvm-light", "cupti", "nvml"}
        What records a GPU run: the driver's own events of managed memory (without single
        migrations, the most expensive, if light), CUPTI for kernels and copies (and for managed
        memory if it is the only one), NVML for energy. One that is not available is noted in
        the session; the others continue. The CPU engine records its accesses itself, page by page.
    tracer : bool
        Count every access of every kernel to global memory, page by page; several times slower.
    observer : callable, optional
        As in `louvain`.
    save_to : path, optional
        Save the session here, `.npz` or `.parquet`, during the run and at its end, so that a
        killed run leaves a session.
    force : bool
        Whether that file may replace another.
    most_events : int
        Most rows of events to keep, at least 100; beyond, similar rows are merged, which the
        session notes.
    name : str, optional
        Name of the graph in reports.
    ballast : int or str, optional
        Device memory to occupy during the run, such as "100GiB".
    allow_driver_eviction : bool
        Continue where the ballast makes the driver evict, which can hang the GPU for all its users.

    Returns
    -------
    Session

    Raises
    ------
    OptionError, GraphError, DeviceUnavailableError, MemoryBudgetError
        As `louvain` does.

    Examples
    --------
    >>> import louvain_um as lu
    >>> from louvain_um.profiling import profile
    >>> g = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    >>> session = profile(g, device="cpu")
    >>> session.metadata["communities"]
    2
    """
    asked = Options(
        method=method, ballast=ballast, allow_driver_eviction=allow_driver_eviction, **options
    )  # fmt: skip
    policy = find_policy(asked.memory)
    asked = replace(asked, device=device_of(graph, asked.device))
    job = job_of(program, source, asked)
    chosen = pick(first_of(asked.device))
    refuse_ballast(asked, chosen)
    chosen_sources, missing = choose_sources(chosen, sources, tracer=tracer)
    graph = _loaded(graph, chosen)
    if chosen.kind == "cpu":
        chosen_sources.append(job.recorder(graph))
    recording = Recording(
        chosen_sources,
        missing=missing,
        metadata={
            "device": str(chosen),
            "policy": policy.name if chosen.kind == "cuda" else None,
            **job.facts(),
            "graph": _graph(graph) | ({} if name is None else {"name": name}),
        },
        save_to=save_to,
        force=force,
        most_events=most_events,
    )
    with recording:
        recording.metadata.update(job.run(graph, chosen, both(recording, observer)))
        spans = recording.timeline.spans
        compiling = sum(span.seconds for span in spans if span.phase == "compile")
        recording.metadata["seconds"] = max(0.0, recording.metadata["seconds"] - compiling)
    return recording.session


@contextmanager
@checks_kinds
def recording(
    *,
    device: str = "auto",
    sources: Sequence[str] = SOURCES,
    tracer: bool = False,
    arrays: Mapping[str, Any] | None = None,
    save_to: str | Path | None = None,
    force: bool = False,
    most_events: int = MOST_EVENTS,
) -> Iterator[Recording]:
    """Record the block: any code that uses a GPU.

    Arrays and phases of a `louvain_um.Placer` that is made or used inside are recorded under their
    names.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda", "cuda:N"}
        The device to record.
    sources, save_to, force, most_events
        As in `profile`.
    tracer : bool
        Count every access of CuPy's kernels to global memory, by page and time: of RawKernel,
        RawModule, ElementwiseKernel, reductions and functions of CuPy. They compile again, and
        run several times slower. The session's maps are a recording that `simulate` takes: the
        program under any policy, on any machine.
    arrays : mapping of str to array, optional
        Arrays by name; inside the block, `array` adds more and `phase` names phases.

    Yields
    ------
    Recording
        Its `session` is complete once the block has ended.

    Raises
    ------
    OptionError, DeviceUnavailableError
        There is no such device, source or group, or an array is not one.
    LouvainUmError
        The session cannot be saved there.

    Examples
    --------
    >>> from louvain_um.profiling import recording
    >>> with recording(device="cpu") as run:
    ...     with run.phase("think"):
    ...         answer = 6 * 7
    >>> run.session.phases[0].phase
    'think'
    """
    chosen = pick(Options(device=device).device)
    chosen_sources, missing = choose_sources(chosen, sources, tracer=tracer, programs=True)
    kept = Recording(
        chosen_sources,
        missing=missing,
        metadata={"device": str(chosen)},
        save_to=save_to,
        force=force,
        most_events=most_events,
    )
    with kept, observing(kept):
        for name, array in (arrays or {}).items():
            kept.array(name, array)
        yield kept


def check(
    save_to: str | Path,
    *,
    device: str,
    memory: str | Path | Policy,
    force: bool = False,
    tracer: bool = False,
    program: str | None = None,
    source: Any = None,
    **smaller: Any,
) -> None:
    """Refuse at once what `profile` would refuse after the graph has been read."""
    find_policy(memory)
    options = Options(device=device, memory=memory, **smaller)
    job_of(program, source, options)
    chosen = pick(options.device)
    if tracer and chosen.kind == "cpu":
        raise OptionError(remedy=NO_TRACER)
    refuse_ballast(options, chosen)
    check_target(save_to, force=force)


def _loaded(graph: Any, chosen: Choice) -> Any:
    """Return the graph as the engine takes it; conversion is not part of the run."""
    if isinstance(graph, DeviceGraph) and chosen.kind == "cpu":
        return graph.to_host()
    if isinstance(graph, Graph | DeviceGraph):
        return graph
    return graph_of(graph)


def _graph(graph: Any) -> dict[str, Any]:
    numbers = {
        "vertices": graph.n_vertices,
        "arcs": graph.n_arcs,
        "weighted": graph.weights is not None,
    }
    if isinstance(graph, Graph):
        numbers["edges"] = graph.n_edges
    return numbers


def choose_sources(
    chosen: Choice, sources: Sequence[str], *, tracer: bool = False, programs: bool = False
) -> tuple[list[EventSource], dict[str, str]]:
    """Return the sources for a device, and why others are missing."""
    known = tuple(dict.fromkeys(SOURCES + LIGHT))
    if isinstance(sources, str):
        sources = (sources,)
    unknown = [name for name in sources if not among(name, *known)]
    if unknown:
        raise OptionError("sources", unknown[0], f"must be of {', '.join(known)}")
    if chosen.kind == "cpu":
        if tracer:
            raise OptionError(remedy=NO_TRACER)
        return [], {}
    from cupy.cuda import runtime

    from louvain_um.profiling.sources.cupti import Cupti
    from louvain_um.profiling.sources.nvml import Nvml
    from louvain_um.profiling.sources.uvm import Uvm

    found: list[EventSource] = [] if programs else [InPlaceReads()]
    missing = {}
    if "uvm" in sources or "uvm-light" in sources:
        runtime.setDevice(chosen.index)
        runtime.memGetInfo()  # the driver records a process only once it has a context
        try:
            Uvm.check()
            found.append(Uvm(migrations="uvm" in sources))
        except SourceUnavailableError as error:
            missing["uvm"] = str(error)
    if "cupti" in sources:
        found.append(Cupti(chosen.index, counters=not any(s.name == "uvm" for s in found)))
    if "nvml" in sources:
        found.append(Nvml(runtime.deviceGetPCIBusId(chosen.index)))
    if tracer:
        from louvain_um.profiling.sources.tracer import Tracer

        found.append(Tracer(programs=programs))
    return found, missing


USAGE = "%%louvain_profile [-o SESSION] [--force] [--device D] [ARRAY ...]"


class _CellError(Exception):
    """A cell raised an error."""


def load_ipython_extension(shell: Any) -> None:
    """Give a shell of IPython the cell magic."""

    def louvain_profile(line: str, cell: str) -> Any:
        """Record what the cell does to managed memory; the session is left in `session`."""
        save_to, force, device, names = parse(line)
        space = shell.user_ns
        absent = [name for name in names if name not in space]
        if absent:
            raise OptionError(remedy=f"there is no variable {absent[0]!r}; {USAGE}")
        arrays = {name: space[name] for name in names}
        outcome = None
        # The shell has shown the cell's error; the session must record it, too.
        with (
            suppress(_CellError),
            recording(device=device, arrays=arrays, save_to=save_to, force=force) as run,
        ):
            outcome = shell.run_cell(cell)
            if outcome is not None and not outcome.success:
                raise _CellError
        space["session"] = run.session
        return run.session if outcome is None or outcome.success else None

    shell.register_magic_function(louvain_profile, "cell", "louvain_profile")


def parse(line: str) -> tuple[str | None, bool, str, list[str]]:
    """Return file, force, device and names of arrays from the magic's line."""
    save_to, force, device = None, False, "auto"
    names = []
    try:
        words = iter(shlex.split(line))
    except ValueError as error:
        raise OptionError(remedy=f"{line!r} is not understood ({error}); {USAGE}") from None
    for word in words:
        if word in ("-o", "--output", "--device"):
            value = next(words, None)
            if value is None:
                raise OptionError(remedy=f"{word} needs a value; {USAGE}")
            save_to, device = (save_to, value) if word == "--device" else (value, device)
        elif word == "--force":
            force = True
        elif word.isidentifier():
            names.append(word)
        else:
            raise OptionError(remedy=f"{word!r} is not understood; {USAGE}")
    return save_to, force, device, names
