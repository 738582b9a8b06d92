"""Moving vertices between communities: one sweep in sub-rounds of frozen state.

A sub-round has three steps: `decide` reads the frozen labels and totals and records each queued
vertex's proposed community, `apply` carries the moves out with integer adds, `activate` marks the
neighbours left behind as active. No step depends on the order of its items. `activate` writes
nothing that `decide` reads, so it shares a stage with the next sub-round's.
"""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, assignment"

from __future__ import annotations

import numpy as np

from louvain_um.core.compiled import kernel
from louvain_um.core.intrinsics import atomic_add, prefetch
from louvain_um.core.parallel import claim, finish, wait
from louvain_um.core.rules import GAIN_BITS, SUB_ROUNDS
from louvain_um.cpu.extended import ACTIVE, admit, has_room, is_pinned, second_of
from louvain_um.cpu.hash_table import (
    AHEAD,
    EMPTY,
    add,
    bits_for,
    collect,
    collect_weighted,
    fetch_row,
    of_thread,
)
from louvain_um.cpu.rule import bucket, wins_tie

STRETCH = 256
"""Vertices a thread claims at a time: short enough to even out skewed degrees."""

STAYS = EMPTY
"""Proposal of a vertex that does not move."""

STAGES = 4 * SUB_ROUNDS
"""Stages of a sweep: decide, apply, activate and, under a maximum size, admit of every sub-round.

A vertex's state is ACTIVE, 0 (inactive), or 1 + its sub-round in the current sweep. Until that
sub-round is over the vertex still decides, so only a later move activates it for the next sweep."""

GAIN_UNIT = 2.0**GAIN_BITS

SERIAL_ARCS = 1 << 15
"""Arcs of a sweep below which a second thread costs more than it saves."""


@kernel()
def start(degrees, labels, totals, sizes):
    """Fill totals and sizes from labels."""
    totals[:] = 0
    sizes[:] = 0
    for v in range(len(labels)):
        totals[labels[v]] += degrees[v]
        sizes[labels[v]] += 1


@kernel()
def list_active(
    t, threads, low, high, begins, ends, active, salt, sub_rounds, listed, counts, arcs
):
    """List a thread's share of the active vertices low … high − 1; count them by sub-round."""
    share, end = (high - low) * t // threads, (high - low) * (t + 1) // threads
    counts[t] = 0
    found, visited = share, 0
    for v in range(low + share, low + end):
        listed[found] = v
        found += active[v] == ACTIVE
    counts[t, SUB_ROUNDS] = found - share
    active[low + share : low + end] = 0
    for i in range(share, found):
        v = listed[i]
        r = bucket(v, salt, sub_rounds)
        active[v] = r + 1
        counts[t, r] += 1
        visited += ends[v] - begins[v]
    arcs[t] = visited


@kernel()
def fill_queue(t, threads, low, high, active, listed, counts, queue, starts):
    """Sort a thread's list by sub-round, ascending in each, behind those of threads before it."""
    next_ = np.zeros(SUB_ROUNDS, np.int64)
    at = 0
    for r in range(SUB_ROUNDS):
        if t == 0:
            starts[r] = at
        for other in range(threads):
            if other == t:
                next_[r] = at
            at += counts[other, r]
    if t == 0:
        starts[SUB_ROUNDS] = at
    share = (high - low) * t // threads
    for i in range(share, share + counts[t, SUB_ROUNDS]):
        v = listed[i]
        r = active[v] - 1
        queue[next_[r]] = v
        next_[r] += 1


@kernel()
def decide(graph, state, tally, queue, begin, end, rate, total, seed, extended):
    """Propose a community for each of queue[begin:end]; return moves and the sum of their gains."""
    begins, ends, targets, weights, degrees = graph
    labels, totals, sizes, _, proposed = state
    keys, sums, used, names, loads = tally
    weighted = len(weights) > 0
    moves, gain = 0, 0
    for i in range(begin, end):
        prefetch(begins, queue[min(i + 2 * AHEAD, end - 1)])
        after = queue[min(i + AHEAD, end - 1)]
        fetch_row(begins, targets, after)
        prefetch(labels, after)
        prefetch(degrees, after)

        v = queue[i]
        proposed[i] = STAYS
        own = labels[v]
        low, high = begins[v], ends[v]
        if weighted:
            count, inside, outside = collect_weighted(
                labels, targets, weights, low, high, own, names, loads
            )
        else:
            count = collect(labels, targets, low, high, own, names)
            inside, outside = high - low - np.int64(count), np.int64(count)
        degree = degrees[v]
        pull = rate * np.float64(degree)
        expected = pull * np.float64(totals[own] - degree)
        if extended is not None:
            if low == high or (len(extended.fixed) > 0 and extended.fixed[v]):
                continue
            second = second_of(extended.second, v)
            second_pull = extended.second_rate * second
            expected -= second_pull * (second_of(extended.second_totals, own) - second)
        stay = np.float64(inside) - expected
        # No score is above the weight of all arcs that leave: rounding keeps the order.
        if extended is None:
            if count == 0 or stay >= np.float64(outside):
                continue
        elif extended.bounded and stay >= max(np.float64(outside), 0.0):
            continue
        n_used = add(keys, sums, used, names, loads, count, bits_for(count), 0)
        best, best_score = own, stay
        for k in range(n_used):
            slot = used[k]
            community = keys[slot]
            expected = pull * np.float64(totals[community])
            if extended is not None:
                expected -= second_pull * second_of(extended.second_totals, community)
            score = np.float64(sums[slot]) - expected
            keys[slot] = EMPTY
            if extended is not None and not has_room(extended, community, v):
                continue
            if score > best_score or (
                score == best_score and best != own and wins_tie(community, best, seed)
            ):
                best, best_score = community, score
        if extended is not None and best_score < 0.0 and sizes[v] == 0:
            best, best_score = v, 0.0  # alone, in the empty community of its own number
        if best != own and not (
            sizes[own] == 1 and sizes[best] == 1 and best > own and not is_pinned(extended, best)
        ):
            gained = (best_score - stay) / total
            if extended is not None:
                gained = min(gained, extended.most_gain)
            units = np.int64(np.rint(gained * GAIN_UNIT))
            if extended is not None and len(extended.gains) > 0:
                extended.gains[i] = units
            gain += units
            moves += 1
            proposed[i] = best
    return moves, gain


@kernel()
def apply(degrees, state, queue, begin, end, extended):
    """Carry out the moves of queue[begin:end]."""
    labels, totals, sizes, _, proposed = state
    for i in range(begin, end):
        target = proposed[i]
        if target == STAYS:
            continue
        v = queue[i]
        own = labels[v]
        labels[v] = target
        atomic_add(totals, own, -degrees[v])
        atomic_add(totals, target, degrees[v])
        atomic_add(sizes, own, np.uint32(0xFFFFFFFF))
        atomic_add(sizes, target, np.uint32(1))
        if extended is not None:
            if len(extended.second) > 0:
                atomic_add(extended.second_totals, own, -extended.second[v])
                atomic_add(extended.second_totals, target, extended.second[v])
            if len(extended.members) > 0:
                atomic_add(extended.member_totals, own, -extended.members[v])
                atomic_add(extended.member_totals, target, extended.members[v])


@kernel()
def activate(graph, state, names, queue, begin, end, sub_round):
    """Activate the neighbours of moved vertices that are not in their new community."""
    begins, ends, targets = graph[0], graph[1], graph[2]
    labels, _, _, active, proposed = state
    latest = np.uint8(sub_round + 1)
    for i in range(begin, end):
        fetch_row(begins, targets, queue[min(i + AHEAD, end - 1)])
        target = proposed[i]
        if target == STAYS:
            continue
        v = queue[i]
        count = np.uint32(0)
        for j in range(begins[v], ends[v]):
            u = targets[np.uint64(j)]
            names[count] = u
            count = np.uint32(count + np.uint32((labels[u] != target) & (active[u] <= latest)))
        for k in range(count):
            active[names[k]] = ACTIVE


@kernel()
def sweep(
    t, threads, graph, state, tallies, queue, starts, rate, total, seed, prunes, extended,
    progress, result,
):  # fmt: skip
    """Run all sub-rounds of a sweep; add moves and gain to `result`.

    Without `prunes` no vertex is activated: the caller keeps all active for the next sweep.

    Threads claim stretches of a stage, two counters each in `progress`, and wait for its work
    to be finished, never for each other: any one of them could do a sweep alone.
    """
    tally = of_thread(tallies, t)
    degrees = graph[4]
    moves, gain = 0, 0
    for r in range(SUB_ROUNDS + 1):
        deciding, applying, activating = 3 * r, 3 * r + 1, 3 * r - 1
        if r > 0 and prunes:
            first, last = starts[r - 1], starts[r]
            step = stretch(last - first, threads)
            begin = first + claim(progress, activating, step)
            while begin < last:
                end = min(begin + step, last)
                activate(graph, state, tally[3], queue, begin, end, r - 1)
                finish(progress, activating, end - begin)
                begin = first + claim(progress, activating, step)
        if r == SUB_ROUNDS:
            break
        first, last = starts[r], starts[r + 1]
        step = stretch(last - first, threads)
        begin = first + claim(progress, deciding, step)
        while begin < last:
            end = min(begin + step, last)
            found = decide(graph, state, tally, queue, begin, end, rate, total, seed, extended)
            moves += found[0]
            gain += found[1]
            finish(progress, deciding, end - begin)
            begin = first + claim(progress, deciding, step)
        if r > 0 and prunes:
            wait(progress, activating, starts[r] - starts[r - 1])
        wait(progress, deciding, last - first)
        if extended is not None and len(extended.gains) > 0:
            admitting = 3 * SUB_ROUNDS + r
            if first < last and claim(progress, admitting, last - first) == 0:
                found = admit(extended, state, queue, first, last, seed)
                moves += found[0]
                gain += found[1]
                finish(progress, admitting, last - first)
            wait(progress, admitting, last - first)
        begin = first + claim(progress, applying, step)
        while begin < last:
            end = min(begin + step, last)
            apply(degrees, state, queue, begin, end, extended)
            finish(progress, applying, end - begin)
            begin = first + claim(progress, applying, step)
        wait(progress, applying, last - first)
    atomic_add(result, 0, moves)
    atomic_add(result, 1, gain)


@kernel(inline="always")
def stretch(items, threads):
    """Return how many items a thread claims at a time: several stretches a thread."""
    return max(1, min(STRETCH, items // (8 * threads)))


@kernel()
def weigh(graph, labels, totals):
    """Add up community degrees in `totals`; return the arcs' weight inside communities."""
    begins, ends, targets, weights, degrees, loops = graph
    weighted = len(weights) > 0
    inside = 0
    for v in range(len(labels)):
        totals[labels[v]] += degrees[v]
        inside += 2 * loops[v]
        for j in range(begins[v], ends[v]):
            if labels[targets[j]] == labels[v]:
                inside += np.int64(weights[j]) if weighted else np.int64(1)
    return inside
