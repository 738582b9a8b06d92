"""Steps that carry a partition from one state of a graph to the next.

Their work is linear in the vertices at most; arcs are read only of vertices that a change, a move
or a split concerns.
"""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, assignment"

from __future__ import annotations

import numpy as np

from louvain_um.core.compiled import kernel
from louvain_um.cpu.refine import root_of

NONE = np.uint32(0xFFFFFFFF)


@kernel()
def add_changes(us, vs, befores, afters, labels):
    """Return how the weight inside communities changes with these edges, and the weight moved."""
    inside, moved = 0, 0
    for i in range(len(us)):
        delta = afters[i] - befores[i]
        same = labels[us[i]] == labels[vs[i]]
        if same:
            inside += 2 * delta
        if same == (delta < 0):
            moved += 2 * abs(delta)
    return inside, moved


@kernel()
def mark_changes(us, vs, befores, afters, labels, marks):
    """Mark the ends of edges that lost weight inside a community or gained it between two."""
    for i in range(len(us)):
        u, v = us[i], vs[i]
        if u != v and (labels[u] == labels[v]) == (afters[i] < befores[i]):
            marks[u] = True
            marks[v] = True


@kernel(inline="always")
def find(targets, low, high, key):
    """Return whether a row contains a target."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if targets[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low < end and targets[low] == key


@kernel()
def flag_loosened(us, vs, afters, rows, targets, labels, flags):
    """Flag the communities that may have fallen apart; return the arcs read.

    Where the ends of a removed edge still share a neighbour in their community, removing the edge
    has separated nothing.
    """
    begins, ends = rows
    visited = 0
    for i in range(len(us)):
        u, v = us[i], vs[i]
        own = labels[u]
        if afters[i] > 0 or u == v or own != labels[v] or flags[own]:
            continue
        if ends[v] - begins[v] < ends[u] - begins[u]:
            u, v = v, u
        low, high = begins[v], ends[v]
        held = False
        for j in range(begins[u], ends[u]):
            visited += 1
            if labels[targets[j]] == own and find(targets, low, high, targets[j]):
                held = True
                break
        if not held:
            flags[own] = True
    return visited


@kernel()
def split_flagged(rows, targets, labels, flags, parents):
    """Name each connected part of a flagged community after its smallest member.

    `parents` is scratch with one entry per vertex. Returns the arcs read.
    """
    begins, ends = rows
    visited = 0
    n = len(labels)
    for v in range(n):
        parents[v] = v
    for v in range(n):
        if not flags[labels[v]]:
            continue
        visited += ends[v] - begins[v]
        for j in range(begins[v], ends[v]):
            u = np.int64(targets[j])
            if u < v and labels[u] == labels[v]:
                a, b = root_of(parents, v), root_of(parents, u)
                parents[max(a, b)] = min(a, b)
    # Flags are asked by the old name, which an earlier part may already bear: roots come first.
    for v in range(n):
        if flags[labels[v]]:
            parents[v] = root_of(parents, v)
        else:
            parents[v] = labels[v]
    for v in range(n):
        labels[v] = parents[v]
    return visited


@kernel()
def add_moved(rows, targets, weights, before, after):
    """Return how the weight inside communities changed with the labels that differ."""
    begins, ends = rows
    weighted = len(weights) > 0
    inside = 0
    for v in range(len(after)):
        if before[v] == after[v]:
            continue
        for j in range(begins[v], ends[v]):
            u = targets[j]
            change = np.int64(after[u] == after[v]) - np.int64(before[u] == before[v])
            # An arc whose other end stayed is read in this direction alone.
            twice = np.int64(2) if before[u] == after[u] else np.int64(1)
            inside += change * twice * (np.int64(weights[j]) if weighted else np.int64(1))
    return inside


@kernel()
def name_by_smallest(labels, first):
    """Name every community after its smallest member; `first` is scratch, one per vertex."""
    for v in range(len(labels)):
        first[v] = NONE
    for v in range(len(labels)):
        if first[labels[v]] == NONE:
            first[labels[v]] = v
        labels[v] = first[labels[v]]


@kernel()
def release(labels, touched, first):
    """Make every touched vertex a community; name the others after their smallest member left.

    `first` is scratch with one entry per vertex.
    """
    for v in range(len(labels)):
        first[v] = NONE
    for v in range(len(labels)):
        if touched[v]:
            labels[v] = v
        else:
            if first[labels[v]] == NONE:
                first[labels[v]] = v
            labels[v] = first[labels[v]]


@kernel()
def add_members(names, alive, degrees, sizes, weights):
    """Add up living members and their degrees by community."""
    for v in range(len(names)):
        sizes[names[v]] += alive[v]
        weights[names[v]] += degrees[v]


@kernel()
def add_up_pairs(names, ids, weights, sizes, slots):
    """Add up the weights and sizes of equal pairs of name and id; return how many there are.

    The sums replace the first items, in the order in which each pair comes first. `slots` is
    scratch: a power of two of −1, more than there are pairs.
    """
    mask, count = np.uint64(len(slots) - 1), 0
    for i in range(len(names)):
        mixed = np.uint64(names[i]) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ np.uint64(ids[i])) * np.uint64(0xD6E8FEB86659FD93)
        at = (mixed >> np.uint64(32)) & mask
        while slots[at] >= 0 and (names[slots[at]] != names[i] or ids[slots[at]] != ids[i]):
            at = (at + np.uint64(1)) & mask
        k = slots[at]
        if k < 0:
            slots[at] = count
            names[count], ids[count] = names[i], ids[i]
            weights[count], sizes[count] = weights[i], sizes[i]
            count += 1
        else:
            weights[k] += weights[i]
            sizes[k] += sizes[i]
    return count
