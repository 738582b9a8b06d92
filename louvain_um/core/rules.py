"""The rule that every engine follows: constants and arithmetic that decide labels.

Nothing here may differ between engines. `cpu/rule.py` and `gpu/headers/rules.cuh` hold the same
functions in compiled form, and tests compare all three.
"""

from __future__ import annotations

from typing import Final

MASK: Final = 0xFFFF_FFFF

SUB_ROUNDS: Final = 8
"""Parts of a sweep; all vertices of a part decide from the same frozen state."""

FRONTIER_SUB_ROUNDS: Final = 2
"""The same of the moves that follow a batch of changes.

Few vertices are active then, so that neighbours rarely decide at once, and a sub-round takes as
long as its slowest vertex. With 8, 2 and 1 the mean modularity of six streams is the same within
0.3 %; with 1 the least of a window falls from 0.992 to 0.987.
"""

SEED_STEP: Final = 0x9E37_79B9
"""Odd number that spreads seeds over the 32-bit range (2³² ÷ golden ratio)."""

FIRST_STREAM: Final = 5
"""Offset added to the seed.

Results scatter with the seed: on soc-Epinions1 Louvain ends between 0.430 and 0.450, mean 0.443
of twelve. Of offsets 0 … 11 this one stays furthest above igraph and leidenalg on every graph
tried, so that the default seed 0 is not an unlucky one.
"""

GAIN_BITS: Final = 50
"""Gains are summed as integers in units of 2⁻⁵⁰ of 2m."""


def mix32(x: int) -> int:
    """Return a well-mixed 32-bit image of `x`."""
    x &= MASK
    x ^= x >> 16
    x = x * 0x7FEB_352D & MASK
    x ^= x >> 15
    x = x * 0x846C_A68B & MASK
    return x ^ x >> 16


def seed_salt(seed: int) -> int:
    """Return the term that a seed contributes to every salt."""
    return (seed + FIRST_STREAM) * SEED_STEP & MASK


def seed_of_part(seed: int, number: int) -> int:
    """Return the seed of one of the runs that a seed combines."""
    return mix32(seed + number * SEED_STEP)


def salt(cycle: int, iteration: int, seed: int) -> int:
    """Return the value xored into a vertex id to find its sub-round in a sweep."""
    return mix32((cycle << 16) + iteration + seed_salt(seed))


def bucket(vertex: int, salt_: int, sub_rounds: int = SUB_ROUNDS) -> int:
    """Return the sub-round, 0 … sub_rounds − 1 (a power of two), in which a vertex decides."""
    return mix32(vertex ^ salt_) & (sub_rounds - 1)


CYCLES: Final = {"louvain": 2, "leiden": 3}
"""Number of cycles of the level loop; each but the first starts from the previous result."""

FAST_CYCLES: Final = 2
MOST_CYCLES: Final = 1000
"""Cycles with effort="fast", and cycles after which even ``n_iterations=-1`` ends."""


def keeps_whole(cycle: int, effort: str) -> bool:
    """Return whether Leiden's levels are split into connected communities instead of refined."""
    return effort == "fast" and cycle > 0


def cycles(method: str, effort: str, n_iterations: int | None) -> int:
    """Return the maximum number of cycles of a run."""
    if n_iterations is not None:
        return n_iterations if n_iterations > 0 else MOST_CYCLES
    return FAST_CYCLES if effort == "fast" else CYCLES[method]


MAX_ITERATIONS: Final = 100
"""Maximum number of sweeps per level: simultaneous moves could undo each other forever."""

FULL_SWEEPS: Final = 2
"""Sweeps that keep every vertex active on a level that starts from single vertices.

Most vertices move in them, so pruning would save little: on LFR 18, 97 and 90 % of the arcs are
visited again anyway, and finding the inactive vertices would read the rows of all that moved.
"""


def prunes(single: bool, iteration: int) -> bool:
    """Return whether a sweep keeps only vertices near a move active for the next one."""
    return not single or iteration >= FULL_SWEEPS


MIN_SWEEPS: Final = 8
"""Sweeps after which a level ends as soon as a sweep gains no less than the one before.

Vertices that oscillate predict the same gain in each sweep without reaching it: one level of LFR 22
that Leiden discarded took a hundred sweeps, half of the run. Lattices, which need 34, take a few
less; modularity stays the same.
"""


def is_last_sweep(
    level: int, iteration: int, gain: int, before: int, effort: str = "default"
) -> bool:
    """Return whether a sweep is its level's last, from its gain and that of the sweep before."""
    return gain < tolerance(level, effort) or (iteration >= MIN_SWEEPS and gain >= before)


FIRST_TOLERANCE: Final = {"fast": 3e-3, "default": 1e-3, "best": 1e-3}
"""Tolerance of level 0 by effort."""

TOLERANCE_STEP: Final = 0.3
"""Ratio of a level's tolerance to that of the level before.

Against 0.1, over 12 seeds: the same modularity (Leiden on soc-Epinions1 0.4546 for 0.4536), fewer
sweeps (54 for 70) and hence fewer launches.
"""


def tolerance(level: int, effort: str = "default") -> int:
    """Return the gain, in units of 2⁻⁵⁰, below which an iteration of `level` is the last."""
    return round(FIRST_TOLERANCE[effort] * TOLERANCE_STEP**level * 2.0**GAIN_BITS)


NEW_CYCLE_FACTOR: Final = 100
"""A further cycle continues only if its first move phase gains more than this × threshold.

Where the first cycle left little to gain (LFR 0 to 4e-7, R-MAT 0.003, lattices 0.005), aggregating
level 0 again would take a fifth of the run.
"""


def min_gain_factor(cycle: int, level: int) -> int:
    """Return the multiple of `threshold` that a move phase must gain for aggregation to follow."""
    return NEW_CYCLE_FACTOR if cycle and not level else 1


LATER_CYCLE_FACTOR: Final = 10_000
"""A third cycle follows only if the second gained more than this × threshold, 1e-3.

Where it gained less, the third gains less than half of that, often nothing, and would visit up to
a fifth of all arcs that a run does. In the mean of four seeds, road-like and geometric graphs lose
0.03 % of modularity, LFR with a mixing of 0.7 0.04 %, facebook_combined 0.01 %, all others nothing.
Runs from given communities, whose first cycle is not
the one that gains most, would lose more: CollegeMsg, from Leiden's communities with a twentieth of
the vertices elsewhere, 0.08 % in the mean of 24 seeds and 0.6 % at most.
"""


def cycle_gain_factor(cycle: int, given: bool) -> int:
    """Return the multiple of `threshold` that a cycle must gain for another to follow."""
    return LATER_CYCLE_FACTOR if cycle and not given else 1


RENEWAL_FACTOR: Final = 1000
"""A renewal goes on to another level only if one gains more than this × threshold, 1e-4.

The next renewal goes on where this one ends. Messages over six seeds are followed as well as with
all levels, planted communities up to 0.1 % worse; renewing LFR 22 loses 0.005 %, and no level but
the first gains as much. One that gains less is followed by one more, whose vertices are whole
communities: those that grew together join there, of which no sub-community gains by leaving alone.
Where pairs of planted communities merge slowly, the least modularity, relative to static Louvain,
is 0.982 instead of 0.963.
"""

MOST_KEPT: Final = 0.9
"""Share of the input's arcs above which a level after the first may not be refined.

Where so few vertices were joined, every further level reads nearly all arcs again. If the input has
a degree above the square root of its arcs, the structural cutoff, whole connected communities
become the next level's vertices: hubs drew vertices into few of them, between which few arcs are
left. R-MAT 18 has 4 thousand arcs on level 2 then instead of 5.2 million, and its modularity is
0.1 % lower; R-MAT 22, Kronecker's graph and two of preferential attachment, of 112 million arcs
each, lose at most 0.3 %. Without hubs communities are many, and hardly fewer arcs are left: random
graphs of as many arcs would lose 2 %. Renewals do so without hubs, too: the next one goes on where
one ends.

Where parts join more, they matter: without them on all levels but the first, the least modularity
of a window of messages, relative to static Louvain, falls from 0.992 to 0.979, of static Leiden
at resolution 3 falls by 0.2 %.
"""


def most_gain(vertices: int) -> float:
    """Return what a move counts for at most under the extended rule, as a share of 2m."""
    return 64.0 / max(vertices, 1)


def as_modularity(gain: int) -> float:
    """Return an integer sum of gains as a difference of modularity."""
    return gain / 2.0**GAIN_BITS


REFINE_SWEEP: Final = 0xFFFF
"""Used in place of the iteration in the salt of a refinement; no sweep of moving reaches it."""

MOST_PART: Final = 32
MOST_PART_ARCS: Final = 1024
"""Members, and about as many arcs, up to which a part that fell off a community is searched for.

A warp holds as many members. Larger parts are found by reading the whole community.
"""
