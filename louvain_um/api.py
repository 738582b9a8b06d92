"""The functions that users call: `louvain` and `leiden`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from louvain_um.errors import DeviceUnavailableError, KernelCompileError
from louvain_um.events import Observer, ignore
from louvain_um.gpu.runtime.preflight import device_of, out_of_memory, refuse_high_degrees
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import Policy
from louvain_um.results.communities import Communities


def louvain(
    graph: Any,
    *,
    resolution: float = 1.0,
    threshold: float = 1e-7,
    max_level: int | None = None,
    seed: int = 0,
    device: str = "auto",
    memory: str | Policy = "auto",
    device_budget: int | str | None = None,
    threads: int | None = None,
    observer: Observer | None = None,
) -> Communities:
    """Detect communities by the Louvain method.

    Parameters
    ----------
    graph : Graph, DeviceGraph or anything `as_graph` takes
    resolution : float
        γ; larger values give smaller communities.
    threshold : float
        A level that raises modularity by no more ends the run. To go over the graph once more has
        to promise a hundred times as much.
    max_level : int, optional
        Levels at most.
    seed : int
        0 … 2³² − 1. The same seed gives the same labels on every device.
    device : {"auto", "cpu", "cuda", "cuda:N"}
        "auto" takes a GPU where there is one.
    memory : str or Policy
        Memory policy of a GPU run: "auto", "device", "zero_copy", "base", "adv1" … "adv9", the
        name or path of a TOML file, or a `louvain_um.placement.policy.Policy`. No label depends on
        it.
    device_budget : int or str, optional
        Device memory a GPU run may occupy: bytes, a size as in "8GiB", or a share of what the
        run would take in core as in "70%". A policy that cannot keep to it ends with an error
        that says what is missing.
    threads : int, optional
        Threads of a CPU run; all cores by default. Labels do not depend on it.
    observer : callable, optional
        Is told of every phase and iteration (`louvain_um.events.Event`).

    Returns
    -------
    Communities

    Raises
    ------
    OptionError
        A value outside its range.
    GraphError
        The object is no undirected graph.
    DeviceUnavailableError
        The device asked for is not there.
    MemoryBudgetError
        The run does not fit into device memory or the budget.

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
    options = Options(
        method="louvain",
        resolution=resolution,
        threshold=threshold,
        max_level=max_level,
        seed=seed,
        device=device,
        memory=memory,
        device_budget=device_budget,
        threads=threads,
    )
    return run(graph, options, observer)


def leiden(
    graph: Any,
    *,
    resolution: float = 1.0,
    threshold: float = 1e-7,
    max_level: int | None = None,
    seed: int = 0,
    device: str = "auto",
    memory: str | Policy = "auto",
    device_budget: int | str | None = None,
    threads: int | None = None,
    observer: Observer | None = None,
) -> Communities:
    """Detect communities by the Leiden method: every one is connected.

    Takes and returns what `louvain` does.

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
    options = Options(
        method="leiden",
        resolution=resolution,
        threshold=threshold,
        max_level=max_level,
        seed=seed,
        device=device,
        memory=memory,
        device_budget=device_budget,
        threads=threads,
    )
    return run(graph, options, observer)


def run(graph: Any, options: Options, observer: Observer | None = None) -> Communities:
    """Detect communities as the options say, on the device they name."""
    from louvain_um.core.hierarchy import detect
    from louvain_um.gpu.graph import DeviceGraph
    from louvain_um.gpu.runtime.device import pick

    observer = observer or ignore
    options = replace(options, memory=find_policy(options.memory))
    options = replace(options, device=device_of(graph, options.device))
    chosen = pick(options.device)
    if isinstance(graph, DeviceGraph):
        if chosen.kind == "cpu":
            graph = graph.to_host()
    elif not isinstance(graph, Graph):
        from louvain_um.formats import as_graph

        graph = as_graph(graph)
    if chosen.kind == "cpu" and options.ballast_bytes:
        raise DeviceUnavailableError(f"ballast takes device memory: {chosen.reason}")
    if chosen.kind == "cpu":
        from louvain_um.cpu.compiling import announced
        from louvain_um.cpu.engine import CpuEngine

        with announced(observer):
            return detect(CpuEngine(options, observer), graph, options, observer)
    from cupy.cuda import compiler, driver, memory, runtime

    from louvain_um.gpu.engine import GpuEngine

    engine: GpuEngine | None = None
    try:
        with chosen.current(), GpuEngine(options, observer) as engine:
            refuse_high_degrees(graph)
            return detect(engine, graph, options, observer)
    except compiler.CompileException as error:  # of kernels that CuPy makes
        raise KernelCompileError(str(error)) from error
    except memory.OutOfMemoryError as error:  # of memory that CuPy's own functions take
        raise out_of_memory(getattr(engine, "plan", None), error) from error
    except (driver.CUDADriverError, runtime.CUDARuntimeError) as error:
        raise DeviceUnavailableError(
            f"{chosen} stopped working ({error}); start again, or use device='cpu'"
        ) from error
