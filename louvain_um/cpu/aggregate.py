"""From communities to the next level's graph, exactly: communities become vertices.

Each community's members are visited once and their arcs summed in a hash table. Its list of
neighbours is written where its arcs would start if none merged, so that no counting pass is
needed: one chunk of communities at a time, whose lists then move behind those of earlier chunks.
Pages that no list reaches are never backed by memory.
"""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, assignment"

from __future__ import annotations

from itertools import pairwise

import numpy as np

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.core.parallel import take
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

STRETCH = 64
SHARES = 8
"""Claims per thread in a small chunk; in a large one a thread claims `STRETCH` communities."""


@kernel()
def renumber(labels, ranks):
    """Renumber the labels in use 0 … k − 1 in their order; return k."""
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


@kernel()
def group_members(begins, ends, labels, members, starts, arc_starts):
    """List the members of each community, ascending; return the largest number of arcs of one."""
    starts[:] = 0
    arc_starts[:] = 0
    for v in range(len(labels)):
        c = np.int64(labels[v])
        starts[c + 1] += 1
        arc_starts[c + 1] += ends[v] - begins[v]
    most = 0
    for c in range(len(starts) - 1):
        most = max(most, arc_starts[c + 1])
        starts[c + 1] += starts[c]
        arc_starts[c + 1] += arc_starts[c]
    for v in range(len(labels)):
        c = np.int64(labels[v])
        members[starts[c]] = v
        starts[c] += 1
    for c in range(len(starts) - 1, 0, -1):
        starts[c] = starts[c - 1]
    starts[0] = 0
    return most


CHUNKS = 16
LEAST_ARCS = 1 << 16
"""Number of chunks of a level, and the fewest arcs of a chunk."""


def write_rows(
    threads, graph, labels, members, starts, arc_starts, tallies, targets, weights, loops, offsets
) -> int:
    """Write the next level's rows, chunk by chunk of communities; return its arcs."""
    arcs, count = int(arc_starts[-1]), len(arc_starts) - 1
    chunk_arcs = max(arcs // CHUNKS, LEAST_ARCS)
    ends = [0]
    while ends[-1] < count:
        ends.append(end_of_chunk(arc_starts, ends[-1], chunk_arcs))
    size = max((int(arc_starts[b] - arc_starts[a]) for a, b in pairwise(ends)), default=0)
    chunk_targets, chunk_weights = np.empty(size, targets.dtype), np.empty(size, weights.dtype)
    out = (chunk_targets, chunk_weights, loops, offsets)
    offsets[0] = 0
    for chunk in pairwise(ends):
        claim = np.zeros(1, np.int64)
        parallel.run(
            sum_arcs, threads, graph, labels, members, starts, arc_starts, chunk, tallies, out,
            claim,
        )  # fmt: skip
        append(arc_starts, chunk, offsets, chunk_targets, chunk_weights, targets, weights)
    return int(offsets[-1])


@kernel()
def end_of_chunk(arc_starts, first, arcs):
    """Return the end of the chunk from `first`: one community, more up to `arcs` arcs."""
    last = first + 1
    while last < len(arc_starts) - 1 and arc_starts[last + 1] - arc_starts[first] <= arcs:
        last += 1
    return last


@kernel()
def sum_arcs(t, threads, graph, labels, members, starts, arc_starts, chunk, tallies, out, claim):
    """Write neighbours with weights, loop and count of each community of a chunk."""
    begins, ends, targets, weights, _, loops = graph
    new_targets, new_weights, new_loops, counts = out
    keys, sums, used, names, loads = of_thread(tallies, t)
    weighted = len(weights) > 0
    communities = len(starts) - 1
    first, last = chunk
    stretch = min(max((last - first) // (SHARES * threads), 1), STRETCH)
    while True:
        begin = first + take(claim, stretch)
        if begin >= last:
            break
        for c in range(begin, min(begin + stretch, last)):
            bits = bits_for(min(arc_starts[c + 1] - arc_starts[c], communities))
            base = arc_starts[c] - arc_starts[first]
            found = np.uint32(0)
            inside = 0
            loop = 0
            for m in range(starts[c], starts[c + 1]):
                fetch_row(begins, targets, members[min(m + AHEAD, len(members) - 1)])
                v = members[m]
                loop += loops[v]
                low, high = begins[v], ends[v]
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


@kernel()
def append(arc_starts, chunk, counts, chunk_targets, chunk_weights, targets, weights):
    """Append the lists of a chunk to those before it; turn its counts into offsets."""
    first, last = chunk
    counts[0] = 0
    out = counts[first]
    for c in range(first, last):
        base, found = arc_starts[c] - arc_starts[first], counts[c + 1]
        for k in range(found):
            targets[out + k] = chunk_targets[base + k]
            weights[out + k] = chunk_weights[base + k]
        out += found
        counts[c + 1] = out
