"""How much work declared arrays stand for: a graph, its kind, and the machine that it runs on.

Three kinds of graph were measured, with everything in plain device memory; a fourth is for graphs
of which nothing but the size is known (`machine/h200.toml`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, NamedTuple

from louvain_um.core.array_spec import ArraySpec, Stage
from louvain_um.core.rules import CYCLES, FAST_CYCLES, FULL_SWEEPS, SUB_ROUNDS
from louvain_um.errors import check_choice
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import FITTED, H200, rate, rates
from louvain_um.placement.model.cost import Scales

GATHERED: Final = 8
"""Bytes a vertex that moving reads at random: its label and its community's total."""


@dataclass(frozen=True, slots=True)
class MethodTimes:
    """What a method does on one kind of graph; times are nanoseconds on an H200."""

    refine: float
    aggregate: float
    aggregate_missed: float
    coarse: float
    coarse_fixed: float
    cycles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphKind:
    """A kind of graph; times are nanoseconds on an H200."""

    name: str
    about: str
    visited: float
    iterations: float
    move: float
    move_missed: float
    fetch: float
    reread: float
    hubs: float
    methods: Mapping[str, MethodTimes]


FIXED: Final = rates("fixed")
"""Nanoseconds of a run's moving on level 0, and of each aggregation of it, whatever the size."""

ABOUT: Final = {
    "mesh": "similar degrees and local edges, as in meshes and road networks",
    "community_structured": "varying degrees and clear communities, as in friendship networks",
    "power_law": "hubs hold many of the arcs, as in R-MAT and link networks",
    "unknown": "only the size is known; the median of three measured kinds",
}


def _kind(name: str) -> GraphKind:
    """Return a kind with what was measured of it."""
    values = dict(FITTED["kinds"][name])
    methods = {method: MethodTimes(**values.pop(method)) for method in ("louvain", "leiden")}
    return GraphKind(name=name, about=ABOUT[name], methods=methods, **values)


GRAPH_KINDS: Final = {name: _kind(name) for name in ABOUT}

MESH, COMMUNITY_STRUCTURED, POWER_LAW, UNKNOWN = GRAPH_KINDS.values()

MESH_BELOW: Final = 2.0
POWER_LAW_FROM: Final = 12.0
"""Skew at which kinds change: lattices 1.0, geometric graphs 1.1, co-authors 3, LFR 8, networks of
trust or mail 14 to 17, R-MAT 74 and more."""


def kind_of(skew: float | None) -> GraphKind:
    """Return the kind of a graph."""
    if skew is None:
        return UNKNOWN
    return (
        MESH if skew < MESH_BELOW else COMMUNITY_STRUCTURED if skew < POWER_LAW_FROM else POWER_LAW
    )


def named_kind(name: str) -> GraphKind:
    """Return a kind by name."""
    check_choice("kind", name, GRAPH_KINDS)
    return GRAPH_KINDS[name]


def sweeps(kind: GraphKind, method: str) -> dict[Stage, float]:
    """Return how often a stage passes over all blocks of level 0's arcs."""
    cycles = kind.methods[method].cycles
    refining = cycles * (SUB_ROUNDS + 1) if method == "leiden" else 0
    # After the first sweeps, one more pass activates vertices for the last sub-round's moves.
    moving = kind.iterations * (SUB_ROUNDS + 1) - FULL_SWEEPS
    return {"move": moving, "refine": refining, "aggregate": 2 * cycles}


def seconds_in_core(
    kind: GraphKind, vertices: int, arcs: int, machine: Machine, method: str, visited: float
) -> dict[Stage, float]:
    """Return seconds of each stage with every array in plain device memory, without loading."""
    scale = 1e-9 * H200.device_random_rate / machine.device_random_rate
    fixed = 1e-9 * machine.readback_seconds / H200.readback_seconds
    missed = max(0.0, 1 - machine.cache_bytes / max(GATHERED * vertices, 1))
    does = kind.methods[method]
    cycles = does.cycles
    moving = kind.move + kind.move_missed * missed
    aggregating = does.aggregate + does.aggregate_missed * missed
    return {
        "move": scale * moving * visited * arcs + fixed * FIXED["move"],
        "refine": scale * does.refine * cycles * arcs,
        "aggregate": cycles * (scale * aggregating * arcs + fixed * FIXED["aggregate"]),
        "coarse": scale * does.coarse * arcs + fixed * does.coarse_fixed,
        "fetch": scale * kind.fetch * vertices,
    }


Source = Literal["host", "device"]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The inputs of every prediction."""

    vertices: int
    arcs: int
    machine: Machine
    kind: GraphKind
    method: str
    visited: float
    source: Source = "host"
    max_degree: int = 0
    isolated: int = 0
    core_scale: float = 1.0
    bus_scale: float = 1.0
    corrected: bool = False
    """Whether measured sweeps of level 0 gave `visited` and the scales."""

    @cached_property
    def core(self) -> dict[Stage, float]:
        """Seconds of each stage with everything in device memory, without loading."""
        found = seconds_in_core(
            self.kind, self.vertices, self.arcs, self.machine, self.method, self.visited
        )
        return {stage: self.core_scale * seconds for stage, seconds in found.items()}

    @property
    def mean_degree(self) -> float:
        """Arcs per vertex."""
        return self.arcs / max(self.vertices, 1)

    @property
    def passes(self) -> float:
        """How often all arcs of level 0 are moved to the device, if they are out of core."""
        return sum(sweeps(self.kind, self.method).values())

    def scales(
        self,
        arrays: Sequence[ArraySpec],
        *,
        coming: float = 0.0,
        low_scratch: bool = False,
        in_pages: bool = False,
    ) -> Scales:
        """Return by how much accesses differ from what arrays declare; see `Scales`."""
        adding = self.kind.methods[self.method].cycles / CYCLES[self.method]
        return Scales(
            moving=self.moving(arrays),
            rows=self.kind.reread,
            hubs=self.kind.hubs,
            refines=self.method == "leiden",
            adding=adding,
            coming=coming,
            low_scratch=low_scratch,
            in_pages=in_pages,
        )

    def moving(self, arrays: Sequence[ArraySpec]) -> float:
        """Return by how much the accesses that arrays declare for moving differ from `visited`."""
        for array in arrays:
            # The community at the other end of an arc is looked at once for each visit.
            declared = array.accesses.get(("move", "gather"), 0.0)
            if array.role == "labels" and array.level == 0 and declared:
                return self.visited * self.arcs / declared
        return 1.0


*UNTIL_NOTHING, CONVERGED = (int(count) for count in rates("until_nothing").values())
"""Cycles with ``n_iterations=-1``: fewest, median and most; and those of graphs that converge."""

FAST_SPARES: Final = rate("fast_spares")
"""Visits of an arc of level 0 that ``effort="fast"`` spares."""


@dataclass(frozen=True, slots=True)
class SearchCourse:
    """A search by cycles of its runs, how many these are, and whether they begin in communities."""

    # `ends` has the least and the most time of a search of different runs, relative to the
    # expected.

    cycles: int | None = None
    fast: bool = False
    runs: float = 1.0
    begun: bool = False
    ends: tuple[float, float] = (1.0, 1.0)

    def expected(self, usual: int) -> int:
        """Return the cycles of a run whose kind of graph usually has so many."""
        if self.cycles is None:
            return min(usual, FAST_CYCLES) if self.fast else usual
        most = CONVERGED if usual == 1 else UNTIL_NOTHING[1] if self.cycles == -1 else self.cycles
        return most if self.cycles == -1 else min(self.cycles, most)

    def stages(self, work: Workload, cycles: int | None = None) -> dict[Stage, float]:
        """Return the seconds of each stage relative to those of one default run."""
        usual = work.kind.methods[work.method].cycles
        if cycles is None:
            cycles = self.expected(usual)
        # Each cycle visits level 0's arcs about once more.
        first = 1.0 if self.begun else work.visited - usual - FAST_SPARES * self.fast
        visited = first + cycles
        repeated: tuple[Stage, ...] = ("aggregate", "coarse", "refine")
        often = dict.fromkeys(repeated, cycles / usual)
        if self.fast:
            often["refine"] = 1 / usual
        found: dict[Stage, float] = {"load": 1.0, "fetch": 1.0, "move": visited / work.visited}
        return {stage: self.runs * each for stage, each in (found | often).items()}


ONE_RUN: Final = SearchCourse()
"""A run with the default cycles."""


class LocalStructure(NamedTuple):
    """Samples of the surroundings of a graph's vertices, each a probability."""

    # `squares`: other neighbours of both ends of an edge are joined. `collisions`: two random walks
    # of four steps from one vertex end at the same one.

    squares: float
    collisions: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a graph besides its declared arrays: what is None follows from these."""

    kind: str | None = None
    skew: float | None = None
    visited: float | None = None
    method: str | None = None
    source: Source = "host"
    max_degree: int | None = None
    isolated: int = 0
    structure: LocalStructure | None = None


def work_for(arrays: Sequence[ArraySpec], machine: Machine, facts: Facts = Facts()) -> Workload:
    """Return the work that declared arrays stand for; only Leiden declares parts."""
    level0 = {array.role: array.size for array in arrays if array.level == 0}
    vertices, arcs = max(level0.get("offsets", 1) - 1, 0), level0.get("targets", 0)
    skew = facts.skew
    relative = skew * vertices / arcs if skew is not None and arcs and vertices else None
    found = kind_of(relative) if facts.kind is None else named_kind(facts.kind)
    return Workload(
        vertices=vertices,
        arcs=arcs,
        machine=machine,
        kind=found,
        method=facts.method or ("leiden" if "refined" in level0 else "louvain"),
        visited=found.visited if facts.visited is None else facts.visited,
        source=facts.source,
        max_degree=facts.max_degree or 0,
        isolated=facts.isolated,
    )
