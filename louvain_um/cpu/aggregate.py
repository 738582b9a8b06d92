"""From communities to the next level's graph, exactly: communities become vertices.

Each community's members are visited once and their arcs added up in a hash table; a list of
new neighbours is written where the community's arcs would begin if none merged, so that no
counting pass is needed. Untouched pages of that room are never backed by memory. The lists are
then moved together.
"""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, assignment"

from __future__ import annotations

import numpy as np
from numba import njit

from louvain_um.cpu.tally import (
    AHEAD,
    EMPTY,
    add,
    bits_for,
    collect,
    collect_weighted,
    fetch_row,
    of_thread,
)
from louvain_um.parallel import take

STRETCH = 64
"""Communities a thread claims at a time."""


@njit(nogil=True, cache=True)
def renumber(labels, ranks):
    """Renumber the labels in use 0 … k − 1 in their order; return k.

    `ranks[label]` is the number; `labels` is overwritten with them.
    """
    ranks[:] = 0
    for v in range(len(labels)):
        ranks[labels[v]] = 1
    count = np.uint32(0)
    for c in range(len(ranks)):
        if ranks[c]:
            ranks[c] = count
            count += np.uint32(1)
    for v in range(len(labels)):
        labels[v] = ranks[labels[v]]
    return np.int64(count)


@njit(nogil=True, cache=True)
def group_members(offsets, labels, members, starts, rooms):
    """List the members of each community, ascending; return the most arcs one of them has.

    `members[starts[c]:starts[c + 1]]` are those of c; `rooms[c]` the arcs of all before c.
    """
    starts[:] = 0
    rooms[:] = 0
    for v in range(len(labels)):
        c = np.int64(labels[v])
        starts[c + 1] += 1
        rooms[c + 1] += offsets[v + 1] - offsets[v]
    widest = 0
    for c in range(len(starts) - 1):
        widest = max(widest, rooms[c + 1])
        starts[c + 1] += starts[c]
        rooms[c + 1] += rooms[c]
    for v in range(len(labels)):
        c = np.int64(labels[v])
        members[starts[c]] = v
        starts[c] += 1
    for c in range(len(starts) - 1, 0, -1):
        starts[c] = starts[c - 1]
    starts[0] = 0
    return widest


@njit(nogil=True, cache=True)
def add_up(t, threads, graph, labels, members, starts, rooms, tallies, out, claim):
    """Write each community's neighbours with weights, and its loop and count.

    Neighbours come in the order in which its members meet them: sums do not care, and sorting
    would take as long as the rest.
    """
    offsets, targets, weights, _, loops = graph
    new_targets, new_weights, new_loops, counts = out
    keys, sums, used, names, loads = of_thread(tallies, t)
    weighted = len(weights) > 0
    communities = len(starts) - 1
    while True:
        begin = take(claim, STRETCH)
        if begin >= communities:
            break
        for c in range(begin, min(begin + STRETCH, communities)):
            bits = bits_for(min(rooms[c + 1] - rooms[c], communities))
            base = rooms[c]
            found = np.uint32(0)
            inside = 0
            loop = 0
            for m in range(starts[c], starts[c + 1]):
                fetch_row(offsets, targets, members[min(m + AHEAD, len(members) - 1)])
                v = members[m]
                loop += loops[v]
                low, high = offsets[v], offsets[np.uint64(v) + np.uint64(1)]
                if weighted:
                    count, own, _ = collect_weighted(
                        labels, targets, weights, low, high, c, names, loads
                    )
                    inside += own
                else:
                    count = collect(labels, targets, low, high, c, names)
                    inside += high - low - np.int64(count)
                found = add(keys, sums, used, names, loads, count, bits, found)
            for k in range(found):
                slot = used[k]
                new_targets[base + k] = keys[slot]
                new_weights[base + k] = sums[slot]
                keys[slot] = EMPTY
            new_loops[c] = loop + inside // 2
            counts[c + 1] = found


@njit(nogil=True, cache=True)
def close_gaps(rooms, counts, targets, weights):
    """Move the lists together; turn counts into offsets; return the number of arcs."""
    counts[0] = 0
    out = 0
    for c in range(len(counts) - 1):
        base, found = rooms[c], counts[c + 1]
        if out != base:
            for k in range(found):
                targets[out + k] = targets[base + k]
                weights[out + k] = weights[base + k]
        out += found
        counts[c + 1] = out
    return out
