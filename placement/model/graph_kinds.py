"""How much work a graph is, by the kind of graph it is: what a prediction starts from.

Three kinds were measured, on one H200, with everything in plain device memory
(`benchmarks/results/gpu_detect_h200*.json`); a fourth stands between them, for graphs of which
nothing but the size is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from louvain_um.core.array_spec import Stage
from louvain_um.core.rules import FULL_SWEEPS, SUB_ROUNDS
from louvain_um.errors import OptionError
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.machine.profiles import H200

GATHERED: Final = 8
"""Bytes a vertex that moving reads at random: its label and its community's total."""


@dataclass(frozen=True, slots=True)
class Method:
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
    methods: Mapping[str, Method]


MOVE_FIXED: Final = 3e6
AGGREGATE_FIXED: Final = 0.5e6
"""Nanoseconds of a run's moving on level 0, and of each aggregation of it, whatever the size."""

MESH: Final = GraphKind(
    name="mesh",
    about="similar degrees and local edges, as in meshes and road networks",
    visited=10.8,
    iterations=38,
    move=0.0295,
    move_missed=0.0,
    fetch=3.4,
    reread=0.85,
    hubs=1,
    methods={
        "louvain": Method(0, 0.017, 0.0, 0.004, 6e6, 2),
        "leiden": Method(0.053, 0.025, 0.0, 0.05, 40e6, 3),
    },
)

COMMUNITY_STRUCTURED: Final = GraphKind(
    name="community_structured",
    about="varying degrees and clear communities, as in friendship networks",
    visited=4.24,
    iterations=5,
    move=0.0305,
    move_missed=0.017,
    fetch=2.8,
    reread=0.79,
    hubs=1,
    methods={
        "louvain": Method(0, 0.029, 0.047, 0.055, 1.5e6, 1),
        "leiden": Method(0.096, 0.062, 0.04, 0.13, 15e6, 1),
    },
)

POWER_LAW: Final = GraphKind(
    name="power_law",
    about="hubs hold many of the arcs, as in R-MAT and link networks",
    visited=6.7,
    iterations=7,
    move=0.053,
    move_missed=0.018,
    fetch=6.0,
    reread=0.82,
    hubs=3,
    methods={
        "louvain": Method(0, 0.04, 0.022, 0.075, 5.5e6, 2),
        "leiden": Method(0.047, 0.096, 0.02, 1.25, 10e6, 3),
    },
)

UNKNOWN: Final = GraphKind(
    name="unknown",
    about="only the size is known; the median of three measured kinds",
    visited=6.0,
    iterations=10,
    move=0.042,
    move_missed=0.017,
    fetch=4.5,
    reread=0.82,
    hubs=1.5,
    methods={
        "louvain": Method(0, 0.027, 0.02, 0.035, 4e6, 2),
        "leiden": Method(0.065, 0.055, 0.02, 0.25, 15e6, 3),
    },
)

GRAPH_KINDS: Final = {kind.name: kind for kind in (MESH, COMMUNITY_STRUCTURED, POWER_LAW, UNKNOWN)}

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
    if not isinstance(name, str) or name not in GRAPH_KINDS:
        raise OptionError("kind", name, f"must be one of {', '.join(GRAPH_KINDS)}")
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
    """Return seconds of each stage with every array in plain device memory, loading apart."""
    scale = 1e-9 * H200.device_random_rate / machine.device_random_rate
    fixed = 1e-9 * machine.readback_seconds / H200.readback_seconds
    missed = max(0.0, 1 - machine.cache_bytes / max(GATHERED * vertices, 1))
    does = kind.methods[method]
    cycles = does.cycles
    moving = kind.move + kind.move_missed * missed
    aggregating = does.aggregate + does.aggregate_missed * missed
    return {
        "move": scale * moving * visited * arcs + fixed * MOVE_FIXED,
        "refine": scale * does.refine * cycles * arcs,
        "aggregate": cycles * (scale * aggregating * arcs + fixed * AGGREGATE_FIXED),
        "coarse": scale * does.coarse * arcs + fixed * does.coarse_fixed,
        "fetch": scale * kind.fetch * vertices,
    }
