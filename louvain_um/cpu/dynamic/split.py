"""Splitting communities that a batch separated, from the ends of the edges that it removed.

Ends that still share a neighbour in their community are not separated. Otherwise a search starts at
each end; a community that a search cannot decide on is read whole. What is found depends on neither
the order of the edges nor the threads. The kernels of a device are in `gpu/dynamic/split.cuh`.
"""

from __future__ import annotations

import numpy as np

from louvain_um.core.compiled import kernel
from louvain_um.core.rules import MOST_PART, MOST_PART_ARCS
from louvain_um.cpu.refine import root_of

NONE = np.uint32(0xFFFFFFFF)
"""No vertex."""

FALLEN, LOOSE = np.uint8(1), np.uint8(2)
"""Flags of communities: their parts are to be found by reading all of them; or by a search."""

HELD, UNKNOWN = 0, -1
"""What a search found that did not come to the end of a part."""


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
        community = labels[u]
        if afters[i] > 0 or u == v or community != labels[v] or flags[community]:
            continue
        if ends[v] - begins[v] < ends[u] - begins[u]:
            u, v = v, u
        low, high = begins[v], ends[v]
        held = False
        for j in range(begins[u], ends[u]):
            visited += 1
            if labels[targets[j]] == community and find(targets, low, high, targets[j]):
                held = True
                break
        if not held:
            flags[community] = LOOSE
    return visited


@kernel()
def find_anchors(rows, labels, flags, anchors):
    """Write the member with the longest row of each flagged community."""
    begins, ends = rows
    for v in range(len(labels)):
        anchors[v] = v
    for v in range(len(labels)):
        community = labels[v]
        if flags[community]:
            best = anchors[community]
            if ends[v] - begins[v] > ends[best] - begins[best]:
                anchors[community] = v


@kernel()
def search(u, anchor, rows, targets, labels, part):
    """Search the part of a community that holds u, breadth first; return how far that came."""
    begins, ends = rows
    community, low_anchor, high_anchor = labels[u], begins[anchor], ends[anchor]
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
                if labels[v] != community:
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
        community = labels[us[i]]
        if afters[i] > 0 or us[i] == vs[i] or community != labels[vs[i]] or not flags[community]:
            continue
        for u in (us[i], vs[i]):
            if flags[community] == FALLEN:
                continue
            found, read = search(u, anchors[community], rows, targets, labels, part)
            visited += read
            if found == UNKNOWN:
                flags[community] = FALLEN
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
        community = labels[v]
        if fell[v]:
            labels[v] = parts[v]
        else:
            if first[community] == NONE:
                first[community] = v
            labels[v] = first[community]


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
