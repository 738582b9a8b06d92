"""Steps that carry a partition from one state of a graph to the next.

Their work is linear in the vertices at most; arcs are read only of vertices that a change, a move
or a split concerns.
"""

from __future__ import annotations

import numpy as np

from louvain_um.core.compiled import kernel

NONE = np.uint32(0xFFFFFFFF)
"""No vertex."""


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
def mark_changes(us, vs, befores, afters, labels, marks, touched):
    """Mark the ends of edges that lost weight inside a community or gained it between two."""
    for i in range(len(us)):
        u, v = us[i], vs[i]
        if u != v and (labels[u] == labels[v]) == (afters[i] < befores[i]):
            weight = np.uint64(abs(afters[i] - befores[i]))
            for end in (u, v):
                marks[end] = True
                touched[end] += weight


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
def release(labels, freed, first):
    """Make every freed vertex a community; name the others after their smallest member left."""
    for v in range(len(labels)):
        first[v] = NONE
    for v in range(len(labels)):
        if freed[v]:
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
