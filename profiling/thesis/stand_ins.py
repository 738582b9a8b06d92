"""Dinçer's study again: graphs that stand in for those of the thesis, and its machines.

The thesis's graphs are not at hand, so each is replaced by a generated one of its kind, with its
arcs a vertex and weights or none, smaller by a stated scale. Memory is a share of the peak, so
oversubscription does not depend on the scale; pages and blocks do not shrink with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from louvain_um.errors import OptionError

if TYPE_CHECKING:
    from louvain_um.graph.graph import Graph
    from louvain_um.profiling.sweep.points import Subject

Kind = Literal["mesh", "social", "web", "kronecker"]

SCALE: Final = 1 / 32
"""Vertices of a stand-in by those of the original."""

RATES: Final = (0.0, 10.0, 30.0, 50.0, 70.0)
"""Oversubscriptions of the thesis, percent."""

MACHINES: Final = ("p4000", "rtx3060ti")
"""Its machines, by profile; no figure was measured on either."""

RESERVED: Final = 128 << 20
"""Bytes of the cards' memory that CUDA's context, its heaps and the display take; assumed.

The thesis takes (1 - r) × peak from the size of the whole memory, so what the program has is less
by as much as these, wherever a ballast is taken at all.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """A graph of the thesis (Table 4.2) and what stands in for it.

    Parameters
    ----------
    name : str
    kind : {"mesh", "social", "web", "kronecker"}
        Mesh: a random geometric graph, near vertices have near ids. Social: power-law degrees and
        communities, ids permuted. Web: the same with neighbouring ids. Kronecker: R-MAT.
    vertices, arcs : int
        Of the original.
    weighted : bool
    accesses : int
        To the group of the graph, Table 4.4: they tell how often its program goes over the arcs.
    """

    name: str
    kind: Kind
    vertices: int
    arcs: int
    weighted: bool
    accesses: int

    @property
    def degree(self) -> float:
        """Arcs a vertex."""
        return self.arcs / self.vertices

    @property
    def passes(self) -> int:
        """Iterations of level 0: passes over targets and weights, less that of aggregating."""
        arrays = 2 if self.weighted else 1
        return max(1, round(self.accesses / self.arcs / arrays) - 1)

    def subject(self, scale: float = SCALE, seed: int = 0) -> Subject:
        """Return the stand-in as a sweep takes it, with the thesis's program."""
        from louvain_um.profiling.sweep.points import Subject
        from louvain_um.profiling.thesis.rundemanen import record_thesis

        graph = self.make(scale, seed)
        return Subject(
            name=self.name,
            graph=graph,
            record=lambda: record_thesis(graph, scale=scale, passes=self.passes, seed=seed),
            program="Rundemanen, as the thesis describes it",
            scale=scale,
            reserved=round(RESERVED * scale),
        )

    def make(self, scale: float = SCALE, seed: int = 0) -> Graph:
        """Return the stand-in with `scale` times the original's vertices.

        Raises
        ------
        OptionError
            The scale is not above 0 and at most 1.
        """
        from louvain_um import generators

        if not 0 < scale <= 1:
            raise OptionError(f"the scale of a stand-in is above 0 and at most 1, not {scale:g}")
        n = max(1000, round(self.vertices * scale))
        weights: Literal["uniform", "none"] = "uniform" if self.weighted else "none"
        if self.kind == "mesh":
            made = generators.geometric(n, degree=self.degree, weights=weights, seed=seed)
        elif self.kind == "kronecker":
            # Repeated edges are dropped: as many more are drawn as a stand-in of this size loses.
            bits = max(10, (n - 1).bit_length())
            factor = max(1, round(KEPT * self.degree / 2))
            made = generators.rmat(bits, edge_factor=factor, weights=weights, seed=seed)
        else:
            # The mean of a power law over its least degree, for the generator's exponent.
            least = max(1, round(self.degree / MEAN_OVER_LEAST))
            made = generators.lfr(
                n, min_degree=least, permute=self.kind == "social", weights=weights, seed=seed
            )
        return made.graph


ABOUT: Final[tuple[str, ...]] = (
    "stand-ins are generated graphs of the same kind, arcs a vertex and weights as the thesis's, "
    "smaller by the scale stated; pages and blocks keep their size",
    "replayed is the thesis's program as it describes it, with the communities of this engine and "
    "as many passes as Table 4.4 tells",
    "where memory is taken away, 128 MiB (scaled) of the card are the context's and the "
    "display's: assumed, not measured",
)
"""What a reader of a study's report should know."""

KEPT: Final = 1.25
MEAN_OVER_LEAST: Final = 3.4

GRAPHS: Final = (
    StandIn(
        name="audikw_1",
        kind="mesh",
        vertices=943_695,
        arcs=76_708_152,
        weighted=True,
        accesses=677_000_000,
    ),
    StandIn(
        name="soc-LiveJournal1",
        kind="social",
        vertices=4_847_571,
        arcs=68_475_391,
        weighted=False,
        accesses=627_000_000,
    ),
    StandIn(
        name="Long_Coup_dt6",
        kind="mesh",
        vertices=1_470_152,
        arcs=85_618_840,
        weighted=True,
        accesses=917_000_000,
    ),
    StandIn(
        name="dielFilterV3real",
        kind="mesh",
        vertices=1_102_824,
        arcs=88_203_196,
        weighted=True,
        accesses=1_564_000_000,
    ),
    StandIn(
        name="cage15",
        kind="mesh",
        vertices=5_154_859,
        arcs=94_044_692,
        weighted=True,
        accesses=595_000_000,
    ),
    StandIn(
        name="rgg_n_2_24_s0",
        kind="mesh",
        vertices=16_777_216,
        arcs=265_114_400,
        weighted=False,
        accesses=754_000_000,
    ),
    StandIn(
        name="kron_g500-logn21",
        kind="kronecker",
        vertices=2_097_152,
        arcs=182_081_864,
        weighted=True,
        accesses=99_000_000,
    ),
    StandIn(
        name="uk-2002",
        kind="web",
        vertices=18_520_486,
        arcs=292_243_663,
        weighted=False,
        accesses=1_015_000_000,
    ),
)
"""The graphs that both machines ran, and uk-2002."""


def stand_in(name: str) -> StandIn:
    """Return a stand-in by the original's name.

    Raises
    ------
    OptionError
        The study has no such graph.
    """
    for graph in GRAPHS:
        if graph.name == name:
            return graph
    raise OptionError(f"the study has {', '.join(g.name for g in GRAPHS)}, not {name!r}")
