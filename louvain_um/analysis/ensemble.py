"""Many runs with different seeds: how far they agree, how sure vertices are, and a consensus.

References
----------
Lancichinetti, Fortunato: Consensus clustering in complex networks, 2012. Tandon, Albeshri,
Thayananthan, Alhalabi, Radicchi, Fortunato: Fast consensus clustering in complex networks, 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from louvain_um.algorithms.structure import connected_components
from louvain_um.api import run
from louvain_um.core.compiled import kernel
from louvain_um.core.hierarchy import seeds_of
from louvain_um.core.numbering import members, number_by_size
from louvain_um.errors import warn
from louvain_um.events import Observer
from louvain_um.graph.graph import Graph
from louvain_um.graph.row_view import EMPTY
from louvain_um.options import Method, Options, OptionValues, takes_options
from louvain_um.progress import Progress, counts_progress
from louvain_um.results.agreement import adjusted_rand
from louvain_um.results.communities import Communities
from louvain_um.results.display import count, require_pandas
from louvain_um.results.frame import to_frame
from louvain_um.results.quality import modularity

if TYPE_CHECKING:
    import pandas as pd

U32 = NDArray[np.uint32]

MIN_SHARE: Final = 0.2
"""Share of runs below which an arc is dropped: the value of Tandon et al. for Louvain."""

UNDECIDED: Final = 0.02
"""Share of arcs on which runs may still differ at the end; also from Tandon et al."""

MOST_ROUNDS: Final = 20
"""Rounds after which runs that still differ are given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consensus:
    """A partition on which runs agree."""

    labels: U32
    rounds: int
    converged: bool


def find_consensus(
    graph: Graph, partitions: Sequence[U32], detect: Callable[[Graph, int], Sequence[U32]]
) -> Consensus:
    """Return the partition on which runs agree."""
    found = list(partitions)
    for number in range(MOST_ROUNDS):
        graph, undecided = _agreed(graph, found)
        if undecided <= UNDECIDED * graph.n_arcs:
            where = "cpu" if graph.there is None else "auto"
            parts = found[0] if undecided else connected_components(graph, device=where)
            return Consensus(labels=number_by_size(parts), rounds=number, converged=True)
        found = list(detect(graph, number))
    return Consensus(labels=number_by_size(found[0]), rounds=MOST_ROUNDS, converged=False)


def arc_counts(graph: Graph, partitions: Sequence[U32]) -> NDArray[np.uint32]:
    """Return the number of partitions in which both ends of each arc are together, uint32[arcs]."""
    counts = np.zeros(graph.n_arcs, np.uint32)
    for labels in partitions:
        _count(graph.offsets, graph.targets, labels, counts)
    return counts


def certainty(labels: U32, partitions: Sequence[U32]) -> NDArray[np.float64]:
    """Return how sure each vertex is of its community, float64[n]."""
    starts, vertices = members(labels)
    met = np.zeros(len(labels), np.int64)
    for other in partitions:
        _meet(starts, vertices, other, met)
    others = (np.diff(starts) - 1)[labels] if len(labels) else np.zeros(0, np.int64)
    shares = met / np.maximum(others * len(partitions), 1)
    found: NDArray[np.float64] = np.where(others > 0, shares, 1.0)
    return found


def _agreed(graph: Graph, partitions: Sequence[U32]) -> tuple[Graph, int]:
    """Return the arcs to keep, weighted by the runs that agree, and how many not all agree on."""
    runs = len(partitions)
    least = ceil(MIN_SHARE * runs)
    if graph.there is not None:
        made: tuple[Graph, int] | None = graph.there.agreed(partitions, least, _chosen)
        if made is not None:
            return made
    counts = arc_counts(graph, partitions)
    strongest = np.zeros(graph.n_vertices, np.uint64)
    _strongest(graph.offsets, graph.targets, counts, strongest)
    kept = counts >= least
    _keep(graph.offsets, graph.targets, _chosen(strongest, least), kept)
    before = np.concatenate(([0], np.cumsum(kept)))
    agreed = Graph(
        before[graph.offsets].astype(np.int64),
        graph.targets[kept],
        counts[kept],
        np.zeros(graph.n_vertices, np.int64),
        check=False,
    )
    return agreed, int(np.count_nonzero(counts[kept] < runs))


def _chosen(strongest: NDArray[np.uint64], least: int) -> U32:
    """Return the neighbour whose arc each vertex keeps that would lose all its arcs, else EMPTY."""
    # `strongest` has the largest count of each vertex' arcs << 32 | ~the first neighbour of those.
    counts, neighbours = strongest >> np.uint64(32), ~strongest.astype(np.uint32)
    chosen = np.full(len(strongest), EMPTY, np.uint32)
    _choose(np.flatnonzero((counts > 0) & (counts < least)), neighbours, chosen)
    return chosen


@kernel()
def _count(offsets, targets, labels, counts):
    for v in range(len(labels)):
        for j in range(offsets[v], offsets[v + 1]):
            if labels[targets[j]] == labels[v]:
                counts[j] += np.uint32(1)


@kernel()
def _meet(starts, vertices, labels, met):
    """Add to each vertex the members of its community that share its label."""
    count = np.zeros(len(labels) + 1, np.int64)
    for c in range(len(starts) - 1):
        for i in range(starts[c], starts[c + 1]):
            count[labels[vertices[i]]] += 1
        for i in range(starts[c], starts[c + 1]):
            met[vertices[i]] += count[labels[vertices[i]]] - 1
        for i in range(starts[c], starts[c + 1]):
            count[labels[vertices[i]]] = 0


@kernel()
def _strongest(offsets, targets, counts, strongest):
    for v in range(len(strongest)):
        for j in range(offsets[v], offsets[v + 1]):
            key = np.uint64(counts[j]) << np.uint64(32) | np.uint64(np.uint32(~targets[j]))
            strongest[v] = max(strongest[v], key)


@kernel()
def _choose(losing, neighbours, chosen):
    """Let each of some vertices choose its neighbour, unless an earlier one has chosen it."""
    keeps = np.zeros(len(chosen), np.bool_)
    for v in losing:
        if not keeps[v]:
            chosen[v] = neighbours[v]
            keeps[neighbours[v]] = True


@kernel()
def _keep(offsets, targets, chosen, kept):
    """Keep the arcs, both ways, of which one end has chosen the other."""
    for v in range(len(chosen)):
        for j in range(offsets[v], offsets[v + 1]):
            kept[j] |= chosen[v] == targets[j] or chosen[targets[j]] == v


HALF: Final = 0.5
"""A vertex below it is, in an average run, with fewer than half of its community."""

UNCERTAIN: Final = 0.1
"""Share of such vertices above which a warning is due."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Ensemble:
    """Runs of one detection with different seeds.

    Parameters
    ----------
    graph : Graph
    partitions : tuple of uint32[n]
        Communities of each run, numbered by size.
    seeds : tuple of int
    values : float64[runs]
        Modularity (or another objective's value) of each run.
    consensus : Communities
        The partition on which runs on the graph of their agreement agree.
    rounds : int
        Rounds that the consensus took.
    converged : bool
        Whether the runs of the last round agreed.

    Examples
    --------
    >>> import louvain_um as lu
    >>> g = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
    >>> e = lu.ensemble(g, runs=5, device="cpu")
    >>> e.stability, e.consensus.labels.tolist(), e.certainty.tolist()
    (1.0, [0, 0, 0, 1, 1, 1], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    """

    graph: Graph = field(repr=False)
    partitions: tuple[NDArray[np.uint32], ...]
    seeds: tuple[int, ...]
    values: NDArray[np.float64]
    consensus: Communities
    rounds: int
    converged: bool

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.partitions)

    @cached_property
    def agreement(self) -> NDArray[np.float64]:
        """Adjusted Rand index of each pair of runs, float64[runs, runs]; 1 on the diagonal."""
        matrix = np.eye(self.runs)
        for i in range(self.runs):
            for j in range(i):
                index = adjusted_rand(self.partitions[i], self.partitions[j])
                matrix[i, j] = matrix[j, i] = index
        return matrix

    @property
    def stability(self) -> float:
        """Mean agreement of two runs: 1 if all found the same, about 0 if nothing is shared."""
        pairs = self.runs * (self.runs - 1)
        return float((self.agreement.sum() - self.runs) / pairs) if pairs else 1.0

    @cached_property
    def certainty(self) -> NDArray[np.float64]:
        """How sure each vertex is of its consensus community, float64[n].

        The share of the community's other members that it is with, in an average run.
        """
        return certainty(self.consensus.labels, self.partitions)

    @property
    def best(self) -> int:
        """Index of the run with the highest value; the first of several."""
        return int(np.argmax(self.values))

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on what the runs do not agree about."""
        found = list[str]()
        unsure = int(np.count_nonzero(self.certainty < HALF))
        if unsure:
            share = 100 * unsure / self.graph.n_vertices
            found.append(
                f"the runs disagree (stability {self.stability:.2f}): "
                f"{count(unsure, 'vertex', 'vertices')} ({share:.3g} %) are with fewer than half "
                "of their community in an average run; try another resolution, or trust certain "
                "vertices only"
            )
        if not self.converged:
            found.append(
                f"no consensus after {self.rounds} rounds; the communities are those of one run"
            )
        return tuple(found)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas frame with one row per vertex.

        Returns
        -------
        pandas.DataFrame
            Columns ``vertex``, ``community`` (of the consensus) and ``certainty``.
        """
        frame: pd.DataFrame = to_frame(
            self.consensus, levels=False, hierarchy=False, library="pandas"
        )
        frame["certainty"] = self.certainty
        return frame

    def table(self, *, hubs: int = 3) -> pd.DataFrame:
        """Return `Communities.table` of the consensus, with the members' mean ``certainty``."""
        frame = self.consensus.table(hubs=hubs)
        sums = np.bincount(self.consensus.labels, self.certainty, minlength=len(frame))
        frame.insert(1, "certainty", sums / np.maximum(self.consensus.sizes, 1))
        return frame

    def runs_frame(self) -> pd.DataFrame:
        """Return a pandas frame with one row per run.

        Returns
        -------
        pandas.DataFrame
            Columns ``seed``, ``communities``, ``value`` and ``agreement``: the mean adjusted Rand
            index with the other runs.
        """
        others = (self.agreement.sum(axis=1) - 1) / max(1, self.runs - 1)
        frame: pd.DataFrame = require_pandas().DataFrame(
            {
                "seed": self.seeds,
                "communities": [int(labels.max(initial=0)) + 1 for labels in self.partitions],
                "value": self.values,
                "agreement": others if self.runs > 1 else np.ones(1),
            }
        )
        return frame

    def plot(self, *, ax: Any = None) -> Any:
        """Draw a histogram of the vertices' certainty with Matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from louvain_um.drawing.plots import plot_certainty

        return plot_certainty(self.certainty, self.stability, ax)

    def __repr__(self) -> str:
        many = count(self.consensus.n_communities, "community", "communities")
        return (
            f"Ensemble({count(self.runs, 'run', 'runs')}, stability {self.stability:.4f}, "
            f"consensus of {many})"
        )


@counts_progress
@takes_options("initial", "fixed", "max_size")
def ensemble(
    graph: Any,
    *,
    runs: int = 20,
    method: Method = "louvain",
    progress: Progress | bool | None = None,
    observer: Observer | None = None,
    **options: Unpack[OptionValues],
) -> Ensemble:
    """Detect communities with several seeds; measure their agreement and find a consensus.

    Memory: 4 bytes per vertex and run, and for the consensus 12 per arc where the graph is: of one
    on a device, no arcs come to the host.

    Parameters
    ----------
    graph : Graph or anything `as_graph` takes
    runs : int
        Runs, with seeds `seed`, `seed` + 1 …
    method : {"louvain", "leiden"}
    **options
        The options of a run; see `louvain_um.options.Options`.
    progress : callable or bool, optional
        True: a line on the terminal or in the notebook. A function is called
        before each run with those done, all runs, and a text.
    observer : callable, optional
        Called with the events of all runs.

    Returns
    -------
    Ensemble

    Warns
    -----
    GraphWarning
        More than a tenth of the vertices are with fewer than half of their consensus community in
        an average run.

    References
    ----------
    Lancichinetti, Fortunato: Consensus clustering in complex networks, 2012. Monti, Tamayo,
    Mesirov, Golub: Consensus clustering, 2003 (certainty: their item consensus).

    Examples
    --------
    >>> import louvain_um as lu
    >>> e = lu.ensemble(lu.read_graph("example:les-miserables"), runs=10, device="cpu")
    >>> e.runs, e.converged, e.to_frame().columns.tolist()
    (10, True, ['vertex', 'community', 'certainty'])
    """
    chosen = Options(method=method, **options)
    if not isinstance(graph, Graph):
        from louvain_um.formats.reading import graph_of

        graph = graph_of(graph, chosen.objective)
    seeds = seeds_of(runs, chosen.seed)
    partitions, values = list[NDArray[np.uint32]](), list[float]()
    for done, seed in enumerate(seeds):
        if callable(progress):
            progress(done, runs, f"seed {seed}")
        result = run(graph, replace(chosen, seed=seed), observer)
        partitions.append(result.labels)
        values.append(float(result.modularity if result.value is None else result.value))

    again = chosen
    if chosen.objective != "modularity":
        again = replace(chosen, objective="modularity", resolution=1.0)

    def detect(agreed: Graph, number: int) -> Sequence[NDArray[np.uint32]]:
        if callable(progress):
            progress(runs, runs, f"consensus, round {number + 1}")
        return [run(agreed, replace(again, seed=seed), observer).labels for seed in seeds]

    agreed = find_consensus(graph, partitions, detect)
    asked = {**result.provenance["options"], **chosen.settings()}
    value = modularity(graph, agreed.labels, chosen.resolution, objective=chosen.objective)
    consensus = Communities(
        graph=graph,
        labels=agreed.labels,
        modularity=modularity(graph, agreed.labels) if chosen.objective == "cpm" else value,
        value=value,
        objective=chosen.objective,
        resolution=chosen.resolution,
        method=f"consensus of {count(runs, f'{method} run', f'{method} runs')}",
        provenance={"seed": chosen.seed, "runs": runs, "options": asked},
    )
    found = Ensemble(
        graph=graph,
        partitions=tuple(partitions),
        seeds=tuple(seeds),
        values=np.array(values),
        consensus=consensus,
        rounds=agreed.rounds,
        converged=agreed.converged,
    )
    if np.count_nonzero(found.certainty < HALF) > UNCERTAIN * graph.n_vertices:
        warn(found.notes[0])
    return found
