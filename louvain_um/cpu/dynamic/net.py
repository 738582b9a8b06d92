"""What a batch changes: one net change per edge, then per arc, cut by row.

Keys are 64 bits: the smaller end of an edge, or the row of an arc, in the upper 32. Nothing here
depends on the order in which a batch lists its edges.
"""

from __future__ import annotations

import numpy as np

from louvain_um.core.compiled import kernel, prefetch

HALF = np.uint64(32)

PREFETCH_DISTANCE = 16
"""Items between one that is read and the one that is prefetched."""

BELOW_ZERO = 1
TOO_HEAVY = 2


@kernel()
def edge_keys(u, v, keys, directed):
    """Write each edge's key, smaller end first unless it is directed."""
    for i in range(len(u)):
        a, b = np.uint64(u[i]), np.uint64(v[i])
        keys[i] = (a << HALF | b) if directed else (min(a, b) << HALF) | max(a, b)


@kernel()
def reduce(keys, order, cuts, weights, summing, edges, deleted, less, more):
    """Reduce sorted operations to one entry per edge; return how many edges there are."""
    weighted = len(weights) > 0
    count = -1
    last = np.uint64(0)
    for i in range(len(order)):
        at = order[i]
        key = keys[at]
        if count < 0 or key != last:
            count += 1
            edges[count], last = key, key
            deleted[count], less[count], more[count] = 0, -1, -1
        weight = weights[at] if weighted else np.int64(1)
        if at < cuts[0]:
            deleted[count] = 1
        elif at < cuts[1]:
            less[count] = max(less[count], 0) + weight
        elif summing:
            more[count] = max(more[count], 0) + weight
        else:
            more[count] = max(more[count], weight)
    return count + 1


@kernel()
def unique(keys):
    """Drop repetitions from sorted keys, in place; return how many remain."""
    if len(keys) == 0:
        return 0
    count = 1
    for i in range(1, len(keys)):
        if keys[i] != keys[count - 1]:
            keys[count] = keys[i]
            count += 1
    return count


@kernel()
def net_weights(before, deleted, less, more, summing, limit, after):
    """Write each edge's weight after the batch."""
    missing, first = 0, -1
    for i in range(len(before)):
        weight = before[i]
        if weight == 0 and (deleted[i] or less[i] >= 0):
            missing += 1
            if first < 0:
                first = i
        if deleted[i]:
            weight = np.int64(0)
        elif less[i] > 0 and before[i] > 0:
            if less[i] > weight:
                return missing, first, BELOW_ZERO, i
            weight -= less[i]
        if more[i] >= 0:
            weight = weight + more[i] if summing else max(weight, more[i])
        if weight >= limit:
            return missing, first, TOO_HEAVY, i
        after[i] = weight
    return missing, first, 0, 0


@kernel()
def keep_changes(edges, before, after):
    """Drop the edges that do not change, in place; return how many do, and how many are loops."""
    count, loops = 0, 0
    for i in range(len(edges)):
        edges[count], before[count], after[count] = edges[i], before[i], after[i]
        changed = before[i] != after[i]
        count += changed
        loops += changed and edges[i] >> HALF == edges[i] & np.uint64(0xFFFFFFFF)
    return count, loops


@kernel()
def mirror(edges, keys):
    """Write the key of both arcs of each edge: all forward arcs, then all backward ones."""
    count = len(edges)
    for i in range(count):
        key = edges[i]
        keys[i] = key
        keys[count + i] = (key << HALF) | (key >> HALF)


@kernel()
def sort_arcs(keys, order, before, after, sorted_keys, sorted_before, sorted_after):
    """Write arcs in the order of their keys, with the weights of their edges."""
    edges = len(before)
    for i in range(len(order)):
        at = order[i]
        edge = at - edges if at >= edges else at
        sorted_keys[i] = keys[at]
        sorted_before[i], sorted_after[i] = before[edge], after[edge]


@kernel()
def cut(keys, before, after, rows, starts, growth, gains):
    """Cut arcs by row; return the number of rows, the largest weight, and the arcs gained."""
    count, heaviest, arcs = 0, np.int64(0), 0
    for i in range(len(keys)):
        row = np.uint32(keys[i] >> HALF)
        if count == 0 or rows[count - 1] != row:
            rows[count], starts[count] = row, i
            growth[count] = gains[count] = 0
            count += 1
        change = np.int64(before[i] == 0) - np.int64(after[i] == 0)
        growth[count - 1] += change
        arcs += change
        gains[count - 1] += after[i] - before[i]
        heaviest = max(heaviest, after[i])
    starts[count] = len(keys)
    return count, heaviest, arcs


@kernel()
def add_at(array, places, amounts):
    """Add an amount at each place."""
    for i in range(len(places)):
        prefetch(array, places[min(i + PREFETCH_DISTANCE, len(places) - 1)])
        array[places[i]] += amounts[i]


@kernel()
def mix(x):
    """Return a 64-bit word whose bits all depend on all of `x` (MurmurHash3's finaliser)."""
    x = np.uint64(x)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xFF51AFD7ED558CCD)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))


@kernel()
def digest(t, threads, rows, loops, alive, sums):
    """Add up the hash of every arc, loop and removed vertex in ``sums[t]``, in any order."""
    begins, ends, targets, weights = rows
    n = len(loops)
    first, second = np.uint64(0), np.uint64(0)
    weighted = len(weights) > 0
    for v in range(n * t // threads, n * (t + 1) // threads):
        row = np.uint64(v) << HALF
        for j in range(begins[v], ends[v]):
            weight = np.uint64(weights[j]) if weighted else np.uint64(1)
            word = mix((row | np.uint64(targets[j])) ^ mix(weight))
            first += word
            second += mix(word + np.uint64(1))
        if loops[v]:
            word = mix((row | np.uint64(v)) ^ mix(np.uint64(loops[v])))
            first += word
            second += mix(word + np.uint64(1))
        if not alive[v]:
            word = mix(row + np.uint64(0xFFFFFFFF))
            first += word
            second += mix(word + np.uint64(1))
    sums[t, 0], sums[t, 1] = first, second
