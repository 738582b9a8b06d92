"""Compiled kernels of the kinds that draw edges independently.

Each kernel is called once per thread as ``kernel(t, threads, …)`` and writes edges that depend
on their index only. A pair of equal ends means "no edge".
"""

from __future__ import annotations

import numpy as np

from louvain_um.core.compiled import kernel
from louvain_um.core.parallel import take
from louvain_um.generators.hashing import (
    HALF,
    LOW_HALF,
    ONE,
    PERMUTATION_WORDS,
    below,
    draw,
    permute,
    set_permutation,
)

RMAT_WORDS = 16
"""Draws reserved per edge: 32 bits per level, at most 31 levels."""

CHUNK = 1 << 14
"""Candidate pairs counted together; affects only the size of the array of counts."""


@kernel()
def draw_rmat(t, threads, key, scale, limits, ids, u, v):
    """Write R-MAT edges; `limits` are a, a + b, a + b + c in units of 2⁻³²."""
    first, second, third = limits[0], limits[1], limits[2]
    low, high = len(u) * t // threads, len(u) * (t + 1) // threads
    for i in range(low, high):
        row = np.uint64(0)
        column = np.uint64(0)
        word = np.uint64(0)
        for level in range(scale):
            if level & 1 == 0:
                word = draw(key, i * RMAT_WORDS + (level >> 1))
            r = word & LOW_HALF
            word >>= HALF
            down = np.uint64(r >= second)
            right = np.uint64(r >= first) ^ down ^ np.uint64(r >= third)
            row = (row << ONE) | down
            column = (column << ONE) | right
        u[i] = permute(ids, row)
        v[i] = permute(ids, column)


@kernel()
def fill_slots(key, counts, low, q, starts, order, degrees):
    """Assign each vertex to a community large enough for its internal degree."""
    pool = np.empty(len(degrees), np.uint32)
    free = 0
    opened = 0
    filled = 0
    for k in range(len(counts) - 1, -1, -1):
        degree = low + k
        need = ((np.uint64(degree) * q) >> HALF) + ONE
        for _ in range(counts[k]):
            # Without a free slot, the next community is used although it is too small.
            while opened < len(order) and (
                free == 0 or np.uint64(starts[order[opened] + 1] - starts[order[opened]]) > need
            ):
                for slot in range(starts[order[opened]], starts[order[opened] + 1]):
                    pool[free] = slot
                    free += 1
                opened += 1
            j = np.int64(below(draw(key, filled), free))
            degrees[pool[j]] = degree
            free -= 1
            pool[j] = pool[free]
            filled += 1


@kernel()
def split_degrees(key, q, starts, degrees, inner, outer):
    """Write running sums of the slots' stubs inside and outside their communities."""
    inner[0] = outer[0] = 0
    for c in range(len(starts) - 1):
        room = starts[c + 1] - starts[c] - 1
        for slot in range(starts[c], starts[c + 1]):
            degree = np.uint64(degrees[slot])
            inside = (degree * q + (draw(key, slot) & LOW_HALF)) >> HALF
            stubs = min(np.int64(inside), room)
            inner[slot + 1] = inner[slot] + stubs
            outer[slot + 1] = outer[slot] + np.int64(degree) - stubs


@kernel()
def label_slots(starts, ids, slots, labels):
    """Write the community of each slot, and of each vertex."""
    for c in range(len(starts) - 1):
        for slot in range(starts[c], starts[c + 1]):
            slots[slot] = c
            labels[permute(ids, np.uint64(slot))] = c


@kernel()
def expand_stubs(sums, out):
    """Write each slot once per stub."""
    for slot in range(len(sums) - 1):
        for j in range(sums[slot], sums[slot + 1]):
            out[j] = slot


@kernel()
def pair_inside(
    t, threads, counter, key, attempts, starts, inner, first_edge, max_members, max_stubs, ids, u, v
):
    """Pair the stubs within each community: image 2i with image 2i + 1."""
    names = np.empty(max_members, np.uint32)
    stubs = np.empty(max_stubs, np.uint32)
    rest = np.empty(max_stubs, np.uint32)
    seen = np.empty((max_members * max_members >> 6) + 1, np.uint64)
    p = np.empty(PERMUTATION_WORDS, np.uint64)
    while True:
        low = take(counter, 8)
        if low >= len(starts) - 1:
            return
        for c in range(low, min(low + 8, len(starts) - 1)):
            members = starts[c + 1] - starts[c]
            seen[: (members * members >> 6) + 1] = 0
            left = 0
            for k in range(members):
                slot = starts[c] + k
                names[k] = permute(ids, np.uint64(slot))
                for _ in range(inner[slot + 1] - inner[slot]):
                    stubs[left] = k
                    left += 1
            e = first_edge[c]
            for attempt in range(attempts):
                if left < 2:
                    break
                set_permutation(p, draw(key, c + (attempt << 32)), left)
                failed = 0
                for i in range(left // 2):
                    a = np.int64(stubs[permute(p, np.uint64(2 * i))])
                    b = np.int64(stubs[permute(p, np.uint64(2 * i + 1))])
                    bit = min(a, b) * members + max(a, b)
                    mask = ONE << np.uint64(bit & 63)
                    if a == b or seen[bit >> 6] & mask:
                        rest[failed] = a
                        rest[failed + 1] = b
                        failed += 2
                    else:
                        seen[bit >> 6] |= mask
                        u[e] = names[a]
                        v[e] = names[b]
                        e += 1
                left = failed
                stubs[:left] = rest[:left]
            u[e : first_edge[c + 1]] = 0
            v[e : first_edge[c + 1]] = 0


@kernel()
def pair_outside(t, threads, p, stubs, where, slots, ids, u, v):
    """Pair stubs of different communities; a pair inside one becomes "no edge"."""
    pairs = len(stubs) // 2
    direct = len(where) == 0
    for i in range(pairs * t // threads, pairs * (t + 1) // threads):
        a = stubs[permute(p, np.uint64(2 * i))]
        b = stubs[permute(p, np.uint64(2 * i + 1))]
        e = i if direct else where[i]
        if slots[a] == slots[b]:
            u[e] = v[e] = 0
        else:
            u[e] = permute(ids, np.uint64(a))
            v[e] = permute(ids, np.uint64(b))


@kernel()
def leftover(p, stubs, failed, out):
    """Write the stubs of the failed pairs, pair by pair."""
    for k in range(len(failed)):
        out[2 * k] = stubs[permute(p, np.uint64(2 * failed[k]))]
        out[2 * k + 1] = stubs[permute(p, np.uint64(2 * failed[k] + 1))]


@kernel()
def circulant(pair, n):
    """Return the two ends of a pair, by its number among the n (n − 1) / 2 pairs of n vertices."""
    first = pair % n
    second = first + pair // n + ONE
    return first, second - n if second >= n else second


@kernel()
def draw_inside(t, threads, p, size, larger, ids, u, v):
    """Write distinct edges inside blocks: `larger` blocks of size + 1, then blocks of size."""
    big = (size + ONE) * size // np.uint64(2)
    small = size * (size - ONE) // np.uint64(2)
    for i in range(len(u) * t // threads, len(u) * (t + 1) // threads):
        pair = permute(p, np.uint64(i))
        if pair < larger * big:
            base = pair // big * (size + ONE)
            a, b = circulant(pair % big, size + ONE)
        else:
            pair -= larger * big
            base = larger * (size + ONE) + pair // small * size
            a, b = circulant(pair % small, size)
        u[i] = permute(ids, base + a)
        v[i] = permute(ids, base + b)


@kernel()
def block_of(x, size, larger):
    """Return the block of a vertex, before ids are permuted."""
    edge = larger * (size + ONE)
    return x // (size + ONE) if x < edge else larger + (x - edge) // size


@kernel()
def draw_outside(t, threads, p, size, larger, tried, sums, ids, u, v):
    """Count (u empty) or write the candidate pairs between blocks, by chunks of their number."""
    counting = len(u) == 0
    for chunk in range(t, len(sums) - 1, threads):
        at = np.int64(0) if counting else sums[chunk]
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, tried)):
            a, b = circulant(permute(p, np.uint64(i)), ids[0])
            if block_of(a, size, larger) != block_of(b, size, larger):
                if not counting:
                    if at >= len(u):
                        break
                    u[at] = permute(ids, a)
                    v[at] = permute(ids, b)
                at += 1
        if counting:
            sums[chunk + 1] = at
