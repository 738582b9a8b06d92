"""Whether communities are more than chance gives: the same detection on random graphs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.api import run
from louvain_um.core.hierarchy import seeds_of
from louvain_um.core.numbering import community_weights
from louvain_um.errors import OptionError
from louvain_um.generators.same_degrees import RandomGraphs
from louvain_um.gpu.runtime.device import device_errors, is_several, pick
from louvain_um.graph.graph import Graph
from louvain_um.options import Method, Options
from louvain_um.placement.memory import cuda_calls
from louvain_um.planning import plan
from louvain_um.progress import Progress, counts_progress
from louvain_um.results.communities import Communities
from louvain_um.results.comparison import Significance

SIMILAR: Final = 2.0
"""Communities of random graphs are compared with one of at most so many times their volume."""


@counts_progress
def significance(
    found: Communities,
    *,
    graphs: int = 100,
    seed: int = 0,
    progress: Progress | bool | None = None,
    device: str = "auto",
    device_budget: int | str | None = None,
) -> Significance:
    """Compare communities with those of random graphs; see `Communities.significance`."""
    graph = found.require_graph()
    if found.objective != "modularity":
        raise OptionError("objective", found.objective, "has no random graphs here; use modularity")
    method: Any = found.method if found.method in ("louvain", "leiden") else "louvain"
    options = Options(
        method=method, resolution=found.resolution, device=device, device_budget=device_budget
    )
    null, inside, volumes = list[float](), list[Any](), list[Any]()
    seeds = seeds_of(graphs, seed, "graphs")
    with _random_graphs(graph, options) as (random, options):
        for done, each in enumerate(seeds):
            if callable(progress):
                progress(done, graphs, f"random graph {done + 1}")
            made = random.graph(each)
            result = run(made, replace(options, seed=each))
            null.append(result.modularity)
            for kept, sums in zip((inside, volumes), random.sums(made, result.labels), strict=True):
                kept.append(sums)
    volume = np.concatenate(volumes)
    order = np.argsort(volume, kind="stable")
    volume, share = volume[order], _share(np.concatenate(inside), volume)[order]
    found_sums = community_weights(graph, found.labels)
    mine = zip(found_sums[1], _share(*found_sums), strict=True)
    return Significance(
        modularity=found.modularity,
        null=np.array(null),
        communities=np.array([_p_value(*each, volume, share) for each in mine]),
    )


@contextmanager
def _random_graphs(graph: Graph, options: Options) -> Iterator[tuple[Any, Options]]:
    """Return what makes random graphs where they are detected, and the options of these runs."""
    # A GPU makes them if it holds them in addition to a run in core, within the budget.
    chosen = None if is_several(options.device) else pick(options.device)
    if chosen is None or chosen.kind == "cpu" or not graph.n_edges:
        yield RandomGraphs.like(graph), options
        return
    from louvain_um.gpu.building.device_rows import SHARE
    from louvain_um.gpu.generate.generate import ends_of, held_bytes, random_graphs_there

    with device_errors(chosen), chosen.current():
        budget, held = options.budget, held_bytes(graph)
        free = int(SHARE * cuda_calls.reclaimed_memory()[0])
        room = min(free, budget.nbytes or free) - held
        needed = _detection_bytes(graph.n_vertices, ends_of(graph), options.method)
        if budget.fraction is not None or needed > room:
            yield RandomGraphs.like(graph), options
            return
        if budget.nbytes is not None:
            options = replace(options, device_budget=room)
        with random_graphs_there(graph, None if budget.nbytes is None else held) as there:
            yield there, options


def _detection_bytes(n: int, ends: int, method: Method) -> int:
    """Return the device memory that detection in a random graph takes with all on the device."""
    arcs = min(ends, n * max(n - 1, 0))
    return plan(n_vertices=n, n_arcs=arcs, weighted="real", method=method).device_bytes


def _share(inside: NDArray[Any], volume: NDArray[Any]) -> NDArray[np.float64]:
    """Return the share of the volume of each community that stays inside."""
    shares: NDArray[np.float64] = inside / np.maximum(volume, 1)
    return shares


def _p_value(
    volume: float, share: float, volumes: NDArray[np.float64], shares: NDArray[np.float64]
) -> float:
    first, last = np.searchsorted(
        volumes, (volume / SIMILAR, np.nextafter(SIMILAR * volume, np.inf))
    )
    if first == last:
        return float("nan")
    return float((1 + np.count_nonzero(shares[first:last] >= share)) / (1 + last - first))
