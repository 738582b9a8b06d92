"""Moving vertices between communities: one sweep in sub-rounds of frozen state.

A sub-round has three steps, each run by all threads over stretches they claim: `decide` reads
the frozen labels and totals and lists the moves, `apply` carries them out with integer adds,
`activate` wakes the neighbours left behind. No step depends on the order of its items.
"""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, assignment"

from __future__ import annotations

import numpy as np
from numba import njit

from louvain_um.cpu.rule import bucket, wins_tie
from louvain_um.cpu.tally import EMPTY, bits_for, slot_of
from louvain_um.parallel import atomic_add, take
from louvain_um.rules import GAIN_BITS

STRETCH = 256
"""Vertices a thread claims at a time: short enough to even out skewed degrees."""

GAIN_UNIT = 2.0**GAIN_BITS

SERIAL_ARCS = 1 << 15
"""Arcs of a sweep below which waking a second thread costs more than it brings."""


@njit(nogil=True, cache=True)
def start(degrees, labels, totals, sizes, active):
    """Fill totals and sizes from labels; wake every vertex."""
    totals[:] = 0
    sizes[:] = 0
    active[:] = 1
    for v in range(len(labels)):
        totals[labels[v]] += degrees[v]
        sizes[labels[v]] += 1


@njit(nogil=True, cache=True)
def queue_active(offsets, active, salt, sub_rounds, queue, starts):
    """List the active vertices by sub-round, ascending in each; return the arcs they have.

    Writes queue[0 … starts[sub_rounds]) and the start of each sub-round in it.
    """
    starts[:] = 0
    arcs = 0
    for v in range(len(active)):
        if active[v]:
            starts[bucket(v, salt, sub_rounds) + 1] += 1
            arcs += offsets[v + 1] - offsets[v]
    for r in range(sub_rounds):
        starts[r + 1] += starts[r]
    next_ = starts.copy()
    for v in range(len(active)):
        if active[v]:
            r = bucket(v, salt, sub_rounds)
            queue[next_[r]] = v
            next_[r] += 1
    return arcs


@njit(nogil=True, cache=True)
def decide(t, threads, graph, state, tallies, queue, first, last, rate, total, seed, claim):
    """List the moves of queue[first:last] in `moved` and `goals`; add up their gains.

    `rate` is γ / 2m and `total` 2m; `claim` holds the next unclaimed item, the number of moves
    and the sum of gains.
    """
    offsets, targets, weights, degrees = graph
    labels, totals, sizes, active, moved, goals = state
    weighted = len(weights) > 0
    keys, sums, used = tallies[0][t], tallies[1][t], tallies[2][t]
    gain = 0
    while True:
        begin = first + take(claim, STRETCH)
        if begin >= last:
            break
        for i in range(begin, min(begin + STRETCH, last)):
            v = np.int64(queue[i])
            active[v] = 0
            low, high = offsets[v], offsets[v + 1]
            if low == high:
                continue
            own = labels[v]
            degree = degrees[v]
            bits = bits_for(high - low)
            n_used = 0
            own_weight = np.int64(0)
            for j in range(low, high):
                community = labels[targets[j]]
                weight = np.int64(weights[j]) if weighted else np.int64(1)
                if community == own:
                    own_weight += weight
                    continue
                slot = slot_of(keys, community, bits)
                if keys[slot] == EMPTY:
                    keys[slot] = community
                    sums[slot] = weight
                    used[n_used] = slot
                    n_used += 1
                else:
                    sums[slot] += weight
            pull = rate * np.float64(degree)
            stay = np.float64(own_weight) - pull * np.float64(totals[own] - degree)
            best, best_score = own, stay
            for k in range(n_used):
                slot = used[k]
                community = keys[slot]
                keys[slot] = EMPTY
                score = np.float64(sums[slot]) - pull * np.float64(totals[community])
                if score > best_score or (
                    score == best_score and best != own and wins_tie(community, best, seed)
                ):
                    best, best_score = community, score
            if best != own and not (sizes[own] == 1 and sizes[best] == 1 and best > own):
                gain += np.int64(np.rint((best_score - stay) / total * GAIN_UNIT))
                at = atomic_add(claim, 1, 1)
                moved[at] = v
                goals[at] = best
    atomic_add(claim, 2, gain)


@njit(nogil=True, cache=True)
def apply(t, threads, graph, state, claim):
    """Carry out the listed moves."""
    degrees = graph[3]
    labels, totals, sizes, _, moved, goals = state
    count = claim[1]
    for i in range(count * t // threads, count * (t + 1) // threads):
        v, goal = np.int64(moved[i]), np.int64(goals[i])
        own = np.int64(labels[v])
        labels[v] = goal
        atomic_add(totals, own, -degrees[v])
        atomic_add(totals, goal, degrees[v])
        atomic_add(sizes, own, np.uint32(0xFFFFFFFF))
        atomic_add(sizes, goal, np.uint32(1))


@njit(nogil=True, cache=True)
def activate(t, threads, graph, state, claim):
    """Wake the neighbours of moved vertices that are not in their new community."""
    offsets, targets = graph[0], graph[1]
    labels, active, moved = state[0], state[3], state[4]
    count = claim[1]
    while True:
        begin = take(claim, STRETCH)
        if begin >= count:
            break
        for i in range(begin, min(begin + STRETCH, count)):
            v = np.int64(moved[i])
            goal = labels[v]
            for j in range(offsets[v], offsets[v + 1]):
                if labels[targets[j]] != goal:
                    active[targets[j]] = 1


@njit(nogil=True, cache=True)
def sweep(graph, state, tallies, queue, starts, rate, total, seed, claim):
    """Run all sub-rounds of a sweep on the calling thread; return moves and gain."""
    moves, gain = 0, 0
    for r in range(len(starts) - 1):
        if starts[r] == starts[r + 1]:
            continue
        claim[:] = 0
        decide(
            0, 1, graph, state, tallies, queue, starts[r], starts[r + 1], rate, total, seed, claim
        )
        apply(0, 1, graph, state, claim)
        claim[0] = 0
        activate(0, 1, graph, state, claim)
        moves += claim[1]
        gain += claim[2]
    return moves, gain


@njit(nogil=True, cache=True)
def add_degrees(degrees, numbers, sums):
    """Add each vertex's degree to its community's."""
    for v in range(len(numbers)):
        sums[numbers[v]] += degrees[v]


@njit(nogil=True, cache=True)
def weigh(graph, labels, totals):
    """Add up community degrees in `totals`; return the arcs' weight inside communities."""
    offsets, targets, weights, degrees, loops = graph
    weighted = len(weights) > 0
    inside = 0
    for v in range(len(labels)):
        totals[labels[v]] += degrees[v]
        inside += 2 * loops[v]
        for j in range(offsets[v], offsets[v + 1]):
            if labels[targets[j]] == labels[v]:
                inside += np.int64(weights[j]) if weighted else np.int64(1)
    return inside
