"""Steps that carry a partition from one state of a graph to the next.

Their work is linear in the vertices at most; arcs are read only of vertices that a change, a move
or a split concerns.
"""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, assignment"

from __future__ import annotations

import numpy as np

from louvain_um.core.compiled import kernel
from louvain_um.core.rules import MOST_PART, MOST_PART_ARCS
from louvain_um.cpu.refine import root_of

NONE = np.uint32(0xFFFFFFFF)

FALLEN, LOOSE = np.uint8(1), np.uint8(2)
"""Flags of communities: their parts are to be found by reading all of them; or by a search."""

HELD, UNKNOWN = 0, -1
"""What a search found that did not come to the end of a part."""


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
def loosen(us, vs, afters, rows, targets, labels, flags):
    """Flag the communities that may be disconnected now; return the arcs read."""
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
            flags[own] = LOOSE
    return visited


@kernel()
def find_anchors(rows, labels, flags, anchors):
    """Write the member with the longest row of each flagged community."""
    begins, ends = rows
    for v in range(len(labels)):
        anchors[v] = v
    for v in range(len(labels)):
        own = labels[v]
        if flags[own]:
            best = anchors[own]
            if ends[v] - begins[v] > ends[best] - begins[best]:
                anchors[own] = v


@kernel()
def search(u, anchor, rows, targets, labels, part):
    """Search the part of a community that holds u, breadth first; return how far that came."""
    begins, ends = rows
    own, low_anchor, high_anchor = labels[u], begins[anchor], ends[anchor]
    part[0] = u
    found, read, done, fits = 1, 0, 0, True
    if u == anchor:
        return HELD, read
    while done < found:
        low, end = np.int64(begins[part[done]]), np.int64(ends[part[done]])
        while low < end:
            if read >= MOST_PART_ARCS:
                return UNKNOWN, read
            high = min(low + MOST_PART, end)
            read += high - low
            known = found
            for j in range(low, high):
                v = targets[j]
                if labels[v] != own:
                    continue
                if ends[v] - begins[v] < high_anchor - low_anchor:
                    near = find(targets, begins[v], ends[v], anchor)
                else:
                    near = find(targets, low_anchor, high_anchor, v)
                if v == anchor or near:
                    return HELD, read
                fresh = True
                for k in range(known):
                    fresh = fresh and part[k] != v
                if fresh and found < MOST_PART:
                    part[found] = v
                    found += 1
                elif fresh:
                    fits = False
            low = high
        done += 1
    return (found if fits else UNKNOWN), read


@kernel()
def search_ends(us, vs, afters, rows, targets, labels, flags, anchors, parts):
    """Search from the ends of the edges removed in flagged communities; return the arcs read."""
    part = np.empty(MOST_PART, np.uint32)
    visited = 0
    for i in range(len(us)):
        own = labels[us[i]]
        if afters[i] > 0 or us[i] == vs[i] or own != labels[vs[i]] or not flags[own]:
            continue
        for u in (us[i], vs[i]):
            if flags[own] == FALLEN:
                continue
            found, read = search(u, anchors[own], rows, targets, labels, part)
            visited += read
            if found == UNKNOWN:
                flags[own] = FALLEN
            for k in range(found):
                parts[part[k]] = part[:found].min()
    for v in range(len(labels)):
        if flags[v] == LOOSE:
            flags[v] = 0
    return visited


@kernel()
def take_off(labels, whole, parts, first, fell):
    """Name parts that fell off, and what they left, after their smallest members."""
    for v in range(len(labels)):
        first[v] = v
    for v in range(len(labels)):
        fell[v] = parts[v] != NONE and not whole[v]
        if fell[v] and labels[v] == v:
            first[v] = NONE
    for v in range(len(labels)):
        own = labels[v]
        if fell[v]:
            labels[v] = parts[v]
        else:
            if first[own] == NONE:
                first[own] = v
            labels[v] = first[own]


@kernel()
def split_flagged(rows, targets, labels, flags, parents):
    """Name each connected part of a flagged community after its smallest member."""
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


@kernel()
def add_up_pairs(names, ids, weights, sizes, slots):
    """Add up the weights and sizes of equal pairs of name and id; return how many there are."""
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
