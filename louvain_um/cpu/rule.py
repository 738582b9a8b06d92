"""The rule in compiled form: its arithmetic, and the extended rule.

The extended rule has second masses, an empty community to leave to, fixed vertices and a maximum
size. Kernels take `Extended`, or None for modularity without constraints: Numba compiles each
separately, so that the plain rule pays for none of this.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from louvain_um.core.compiled import kernel
from louvain_um.core.numbering import add_masses
from louvain_um.core.objective import Problem
from louvain_um.core.rules import most_gain
from louvain_um.cpu.level import EMPTY, I64, U8, U32, CpuLevel
from louvain_um.options import Options

ACTIVE = np.uint8(255)
"""State of a vertex that decides in the next sweep; see `louvain_um.cpu.move`."""

REFUSED = np.int64(-1)
"""In place of the gain of a move that is refused; no gain is negative."""


@kernel(inline="always")
def mix32(x):
    """Return a well-mixed 32-bit image of a uint32."""
    x = np.uint32(x)
    x ^= x >> np.uint32(16)
    x = np.uint32(x * np.uint32(0x7FEB352D))
    x ^= x >> np.uint32(15)
    x = np.uint32(x * np.uint32(0x846CA68B))
    x ^= x >> np.uint32(16)
    return np.uint32(x)


@kernel(inline="always")
def bucket(vertex, salt, sub_rounds):
    """Return the sub-round of a vertex; `sub_rounds` is a power of two."""
    return np.int64(mix32(np.uint32(vertex) ^ np.uint32(salt)) & np.uint32(sub_rounds - 1))


@kernel(inline="always")
def wins_tie(candidate, champion, seed):
    """Whether `candidate` comes before `champion` among communities of equal score."""
    a = mix32(np.uint32(candidate) ^ np.uint32(seed))
    b = mix32(np.uint32(champion) ^ np.uint32(seed))
    return a < b or (a == b and candidate < champion)


class ScoreRule(NamedTuple):
    """Constants of a run that decide scores, gains and ties."""

    rate: float
    total: float
    seed: np.uint32


def rule_of(problem: Problem, options: Options) -> ScoreRule:
    """Return the constants of a run."""
    objective = problem.objective
    return ScoreRule(objective.rate, float(objective.total), np.uint32(options.seed))


class Extended(NamedTuple):
    """What the extended rule of moving adds to a level; arrays not in use are empty."""

    second: I64
    second_totals: I64
    second_rate: float
    bounded: bool
    most_gain: float
    members: I64
    member_totals: I64
    max_size: int
    fixed: U8
    pinned: U8
    gains: I64
    incoming: I64
    champions: U32


def extended_of(level: CpuLevel, labels: U32, problem: Problem) -> Extended:
    """Return what the extended rule of moving adds to a level with these communities."""
    limited = level.vertices if len(level.members) else 0

    def sums_of(masses: I64) -> I64:
        sums = np.zeros(len(masses), np.int64)
        if len(masses):
            add_masses(masses, labels, sums)
        return sums

    pinned = np.zeros(len(level.fixed), np.uint8)
    if len(pinned):
        pinned[labels[level.fixed > 0]] = 1
    return Extended(
        second=level.second,
        second_totals=sums_of(level.second),
        second_rate=problem.objective.second_rate,
        bounded=not problem.objective.signed,
        most_gain=most_gain(level.vertices),
        members=level.members,
        member_totals=sums_of(level.members),
        max_size=problem.max_size or 0,
        fixed=level.fixed,
        pinned=pinned,
        gains=np.empty(limited, np.int64),
        incoming=np.zeros(limited, np.int64),
        champions=np.full(limited, EMPTY, np.uint32),
    )


def new_bytes(extended: Extended) -> int:
    """Return the bytes of the arrays that are not the level's."""
    fields = ("second_totals", "member_totals", "pinned", "gains", "incoming", "champions")
    return sum(getattr(extended, name).nbytes for name in fields)


@kernel(forceinline=True)
def second_of(masses, index):
    """Return a second mass or total; 0 where there are none."""
    return np.float64(masses[index]) if len(masses) > 0 else 0.0


@kernel(forceinline=True)
def has_room(extended, community, v):
    """Whether a community may take a vertex."""
    if len(extended.members) == 0:
        return True
    return extended.member_totals[community] + extended.members[v] <= extended.max_size


@kernel(forceinline=True)
def is_pinned(extended, community):
    """Whether a community has a vertex that may not move."""
    if extended is None:
        return False
    return len(extended.pinned) > 0 and extended.pinned[community] > 0


@kernel()
def admit(extended, state, queue, begin, end, seed):
    """Refuse moves beyond the maximum size; return minus the refused moves and their gains."""
    proposed, active = state.proposed, state.active
    incoming, champions = extended.incoming, extended.champions
    for i in range(begin, end):
        target = proposed[i]
        if target == EMPTY:
            continue
        v = queue[i]
        incoming[target] += extended.members[v]
        if champions[target] == EMPTY or wins_tie(v, champions[target], seed):
            champions[target] = v
    moves, gain = 0, 0
    for i in range(begin, end):
        target = proposed[i]
        if target == EMPTY:
            continue
        v = queue[i]
        full = extended.member_totals[target] + incoming[target] > extended.max_size
        if full and champions[target] != v:
            moves -= 1
            gain -= extended.gains[i]
            extended.gains[i] = REFUSED
            active[v] = ACTIVE
    for i in range(begin, end):
        target = proposed[i]
        if target == EMPTY:
            continue
        incoming[target] = 0
        champions[target] = EMPTY
        if extended.gains[i] == REFUSED:
            proposed[i] = EMPTY
    return moves, gain
