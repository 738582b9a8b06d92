"""The thesis's study: stand-ins for its graphs, and its machines.

The thesis's graphs are not available here, so each is replaced by a generated one of its kind, with
the same arcs per vertex, weighted or not, smaller by a stated scale. Device memory is a fraction of
the peak, so oversubscription does not depend on the scale; pages and blocks keep their size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final, Literal

from louvain_um.errors import OptionError
from louvain_um.graph.graph import Graph
from louvain_um.placement.machine.profiles import load_machine
from louvain_um.profiling.simulator.to_session import session_of
from louvain_um.profiling.sweep.points import Settings, Subject
from louvain_um.profiling.sweep.replay import Point, replay
from louvain_um.profiling.sweep.run import Progress, ProgressCallback, recording_of
from louvain_um.profiling.thesis.published import ACCESSES, DATASETS, GROUPS, NON_FITTING

MAPPED_RATE: Final = 30.0
"""Oversubscription of the thesis's page × time maps; graphs that do not fit have their own."""


def save_sessions(
    subjects: Sequence[Subject],
    settings: Settings,
    folder: Path,
    tell: ProgressCallback,
    *,
    fresh: bool = False,
) -> None:
    """Write a session of base for each graph of a study to the folder's `sessions`."""
    machine = load_machine(settings.gpus[0])
    sessions = folder / "sessions"
    sessions.mkdir(exist_ok=True)
    for number, subject in enumerate(subjects):
        rate = MAPPED_RATE if subject.rates is None else subject.rates[0]
        path = sessions / f"{subject.name}.npz"
        if path.exists() and not fresh:
            continue
        tell(Progress(number, len(subjects), None, f"session of {subject.name}"))
        trace = recording_of(subject, settings, folder, fresh=False)
        point = Point(
            graph=subject.name, policy="base", oversubscription=rate, gpu=settings.gpus[0]
        )
        row, run = replay(trace, point, machine, driver=settings.driver, record=True)
        if run is not None:
            about = {"policy": row["policy"], "graph": {"name": subject.name}}
            session_of(trace, run, **about).save(path, force=True)


Kind = Literal["mesh", "social", "web", "kronecker", "chain", "traffic"]

SCALE: Final = 1 / 8
"""Vertices of a stand-in relative to its original."""

LARGE_SCALE: Final = 1 / 4
"""Scale of graphs that do not fit, relative to that of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """A graph of the thesis (Table 4.2) and what stands in for it."""

    name: str
    kind: Kind
    vertices: int
    arcs: int
    weighted: bool

    @property
    def degree(self) -> float:
        """Arcs per vertex."""
        return self.arcs / self.vertices

    @property
    def passes(self) -> int:
        """Iterations of level 0: passes over targets and weights, less the aggregation's."""
        if self.name not in ACCESSES:
            return USUAL_PASSES
        accesses = ACCESSES[self.name][GROUPS.index("graph")] * 10**6
        arrays = 2 if self.weighted else 1
        return max(1, round(accesses / self.arcs / arrays) - 1)

    def subject(self, scale: float = SCALE, seed: int = 0) -> Subject:
        """Return the stand-in as the subject of a sweep, with the thesis's program."""
        from louvain_um.profiling.thesis.rundemanen import record_thesis

        graph = self.make(scale, seed)
        return Subject(
            name=self.name,
            graph=graph,
            record=lambda: record_thesis(graph, scale=scale, passes=self.passes, seed=seed),
            program=PROGRAM,
            scale=scale,
            rates=(NON_FITTING[self.name][1],) if self.name in NON_FITTING else None,
        )

    def make(self, scale: float = SCALE, seed: int = 0) -> Graph:
        """Return the stand-in with `scale` times the original's vertices."""
        from louvain_um import generators

        if not 0 < scale <= 1:
            raise OptionError("scale", scale, "of a stand-in must be above 0 and at most 1")
        n = max(1000, round(self.vertices * scale))
        weights: Literal["uniform", "none"] = "uniform" if self.weighted else "none"
        if self.kind in ("chain", "traffic"):
            return _sparse(self.kind, n, self.degree, seed)
        if self.kind == "mesh":
            made = generators.geometric(n, degree=self.degree, weights=weights, seed=seed)
        elif self.kind == "kronecker":
            # R-MAT repeats edges, which are merged: draw more to keep the original's degree.
            bits = max(10, (n - 1).bit_length())
            factor = max(1, round(RMAT_EXTRA * self.degree / 2))
            made = generators.rmat(bits, edge_factor=factor, weights=weights, seed=seed)
        else:
            # The mean degree of the generator's power law is a multiple of its least degree.
            least = max(1, round(self.degree / MEAN_OVER_LEAST))
            made = generators.lfr(
                n, min_degree=least, permute=self.kind == "social", weights=weights, seed=seed
            )
        return made.graph


def _sparse(kind: Kind, n: int, degree: float, seed: int) -> Graph:
    """Return paths with branches, or stars whose hubs are as large as Zipf's law makes them."""
    import numpy as np

    rng = np.random.default_rng(seed)
    edges = round(n * degree / 2)
    if kind == "chain":
        ids = rng.permutation(n)
        begin = np.flatnonzero(rng.random(n - 1) < CHAINED)
        extra = rng.integers(0, n, (2, max(0, edges - len(begin))))
        u, v = np.concatenate([begin, extra[0]]), np.concatenate([begin + 1, extra[1]])
        return Graph.from_edges(ids[u], ids[v], n_vertices=n)
    leaves = rng.integers(0, n, edges)
    hubs = np.minimum(rng.zipf(HUB_EXPONENT, edges) - 1, n - 1)
    return Graph.from_edges(leaves, hubs, n_vertices=n)


CHAINED: Final = 0.97
"""Part of the vertices of a chain that the next one follows."""

HUB_EXPONENT: Final = 1.5
"""Of the sizes of traffic's hubs."""

USUAL_PASSES: Final = 3
"""Median of `StandIn.passes` of the graphs that Table 4.4 has."""

PROGRAM: Final = "Rundemanen, as the thesis describes it"

ABOUT_PROGRAM: Final[tuple[str, ...]] = (
    "the thesis's program is replayed as described there, with the communities of this engine",
    "with oversubscription, 128 MiB (scaled) of the card belong to the CUDA context and the "
    "display: assumed, not measured",
)
"""Notes in the report of a sweep of the thesis's program."""

ABOUT: Final[tuple[str, ...]] = (
    "stand-ins are generated graphs of the same kind, arcs per vertex and weights as the "
    "thesis's, smaller by the stated scale; pages and blocks keep their size",
    f"{ABOUT_PROGRAM[0]} and the number of passes that follows from Table 4.4",
    *ABOUT_PROGRAM[1:],
)
"""Notes in a study's report."""

RMAT_EXTRA: Final = 1.25
"""Edges drawn for each edge that is left of an R-MAT graph after merging."""

MEAN_OVER_LEAST: Final = 3.4
"""Mean degree of the power law over its least degree."""

_KINDS: Final[dict[str, Kind]] = {
    "audikw_1": "mesh", "soc-LiveJournal1": "social", "Long_Coup_dt6": "mesh",
    "dielFilterV3real": "mesh", "cage15": "mesh", "rgg_n_2_24_s0": "mesh",
    "kron_g500-logn21": "kronecker", "uk-2002": "web", "uk-2005": "web", "kmer_V1r": "chain",
    "kron_24_24": "kronecker", "mawi_20151202033": "traffic", "sk-2005": "web",
}  # fmt: skip


def _stand_in(name: str) -> StandIn:
    vertices, arcs, weighted = DATASETS[name]
    return StandIn(name=name, kind=_KINDS[name], vertices=vertices, arcs=arcs, weighted=weighted)


GRAPHS: Final = tuple(_stand_in(name) for name in _KINDS if name not in NON_FITTING)
"""The graphs that both machines ran, and uk-2002."""

NON_FITTING_GRAPHS: Final = tuple(_stand_in(name) for name in _KINDS if name in NON_FITTING)
"""The graphs that do not fit 8 GB (Table 4.7, Figure 4.23)."""


def subjects(scale: float = SCALE, seed: int = 0) -> Iterator[Subject]:
    """Yield the study's subjects; those that do not fit at their published oversubscription."""
    # Of the latter, stand-ins are smaller still.
    for graph in GRAPHS:
        yield graph.subject(scale, seed)
    for graph in NON_FITTING_GRAPHS:
        yield graph.subject(scale * LARGE_SCALE, seed)


def as_program(name: str, graph: Graph, seed: int = 0) -> Subject:
    """Return any graph as the subject of a sweep, with the thesis's program."""
    # Its tables and the reserve are as large, relative to the graph, as in the study.
    from louvain_um.profiling.thesis.rundemanen import record_thesis

    scale = min(1.0, graph.n_arcs / median(each.arcs for each in GRAPHS))
    return Subject(
        name=name,
        graph=graph,
        record=lambda: record_thesis(graph, scale=scale, seed=seed),
        program=PROGRAM,
    )


def stand_in(name: str) -> StandIn:
    """Return a stand-in by the original's name."""
    every = (*GRAPHS, *NON_FITTING_GRAPHS)
    for graph in every:
        if graph.name == name:
            return graph
    raise OptionError(
        "graph", name, f"must be one of the study's {', '.join(g.name for g in every)}"
    )
