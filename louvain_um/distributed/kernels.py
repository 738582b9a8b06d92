"""Compiled steps of a rank, made of those of the CPU engine."""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, assignment"

from __future__ import annotations

import numpy as np

from louvain_um.core.compiled import kernel
from louvain_um.core.intrinsics import atomic_add
from louvain_um.core.parallel import take
from louvain_um.core.rules import SUB_ROUNDS
from louvain_um.cpu import move
from louvain_um.cpu.extended import ACTIVE
from louvain_um.cpu.hash_table import EMPTY, add, bits_for, of_thread
from louvain_um.cpu.move import STRETCH
from louvain_um.cpu.refine import root_of
from louvain_um.cpu.rule import bucket

decide_stretch = move.decide
apply_stretch = move.apply
activate_stretch = move.activate


@kernel()
def mark_others(t, threads, low, high, active, salt):
    """Store the sub-round of every active vertex outside low … high − 1, or 0, as queueing does."""
    n = len(active)
    for v in range(n * t // threads, n * (t + 1) // threads):
        if v < low or v >= high:
            if active[v] == ACTIVE:
                active[v] = bucket(np.uint32(v), salt, SUB_ROUNDS) + 1
            else:
                active[v] = 0


@kernel()
def decide(
    t, threads, graph, state, tallies, queue, first, last, rate, total, seed, counter, result
):  # fmt: skip
    """Propose a community for each of queue[first:last]; add moves and gains to `result`."""
    tally = of_thread(tallies, t)
    while True:
        begin = first + take(counter, STRETCH)
        if begin >= last:
            break
        end = min(begin + STRETCH, last)
        moves, gain = decide_stretch(
            graph, state, tally, queue, begin, end, rate, total, seed, None
        )
        atomic_add(result, 0, moves)
        atomic_add(result, 1, gain)


@kernel()
def apply(t, threads, degrees, state, vertices):
    """Carry out the moves of vertices, whose targets are the proposals of `state`."""
    n = len(vertices)
    apply_stretch(degrees, state, vertices, n * t // threads, n * (t + 1) // threads, None)


@kernel()
def activate(t, threads, graph, state, tallies, queue, first, last, sub_round, counter):
    """Activate the neighbours that moved vertices of queue[first:last] left behind."""
    names = of_thread(tallies, t)[3]
    while True:
        begin = first + take(counter, STRETCH)
        if begin >= last:
            break
        activate_stretch(graph, state, names, queue, begin, min(begin + STRETCH, last), sub_round)


@kernel()
def merge_rows(t, threads, starts, pieces, tallies, rooms, degrees, out, counter):
    """Add up the pieces that ranks sent of each row; write it at its place in `rooms`."""
    targets, weights = pieces
    keys, sums, used, _, _ = of_thread(tallies, t)
    new_targets, new_weights, counts, loops = out
    rows = len(degrees)
    while True:
        begin = take(counter, STRETCH)
        if begin >= rows:
            break
        for i in range(begin, min(begin + STRETCH, rows)):
            bits = bits_for(min(rooms[i + 1] - rooms[i], len(keys) >> 1))
            found = np.uint32(0)
            for r in range(len(starts)):
                low, high = starts[r, i], starts[r, i + 1]
                names, loads = targets[low:high], weights[low:high]
                if high > low:
                    found = add(keys, sums, used, names, loads, np.uint32(high - low), bits, found)
            leaving = 0
            for k in range(found):
                slot = used[k]
                new_targets[rooms[i] + k] = keys[slot]
                new_weights[rooms[i] + k] = sums[slot]
                leaving += sums[slot]
                keys[slot] = EMPTY
            counts[i] = found
            loops[i] = (degrees[i] - leaving) // 2


@kernel()
def close_gaps(rooms, counts, targets, weights, offsets):
    """Move rows behind each other; fill their offsets."""
    offsets[0] = 0
    for i in range(len(counts)):
        out, base = offsets[i], rooms[i]
        for k in range(counts[i]):
            targets[out + k] = targets[base + k]
            weights[out + k] = weights[base + k]
        offsets[i + 1] = out + counts[i]


@kernel()
def join_trees(vertices, roots, parents):
    """Unite each vertex with its root; every root becomes the smallest vertex of its tree."""
    for i in range(len(vertices)):
        a, b = root_of(parents, np.int64(vertices[i])), root_of(parents, np.int64(roots[i]))
        parents[max(a, b)] = min(a, b)
    for v in range(len(parents)):
        parents[v] = root_of(parents, v)


@kernel(inline="always")
def mix64(x):
    """Return a well-mixed 64-bit image of x (the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel()
def add_digests(first, offsets, targets, weights, loops, total):
    """Add a digest of each arc and loop of rows from vertex `first` on to `total`."""
    weighted = len(weights) > 0
    for i in range(len(loops)):
        v = (first + np.uint64(i)) << np.uint64(32)
        total[0] += mix64(mix64(v) ^ np.uint64(loops[i]))
        for j in range(offsets[i], offsets[i + 1]):
            weight = np.uint64(weights[j]) if weighted else np.uint64(1)
            total[0] += mix64(mix64(v | np.uint64(targets[j])) + weight)
