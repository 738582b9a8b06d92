"""Which communities a batch concerns, which of them inherits an id, and what became of each.

Ids are linear in the pairs of communities: one after a batch and one before it that share members,
by their indices. `listed` are the vertices whose community has another name than before the batch,
and those added, removed or revived; states are names before and after, and who is alive.

Work is linear in the vertices at most; arcs are read only of vertices that a change, a move or a
split concerns.
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


GREW, SHRANK, CONTINUED, BORN, SPLIT, DIED, MERGED = range(7)

NOBODY = np.int64(0xFFFFFFFF)
"""Name before the batch of a vertex that is new."""


@kernel()
def list_differing(old, names, lived, lives, listed):
    """List the vertices that differ; return how many do."""
    count = 0
    for v in range(len(names)):
        listed[count] = v
        count += v >= len(old) or old[v] != names[v] or lived[v] != lives[v]
    return count


@kernel()
def list_names(current, old, index, names):
    """Give each name that is mentioned its number, ascending; return how many there are."""
    for i in range(len(current)):
        index[current[i]] = 0
        if old[i] != NOBODY:
            index[old[i]] = 0
    count = 0
    for c in range(len(index)):
        if index[c] == 0:
            index[c] = count
            names[count] = c
            count += 1
    return count


@kernel()
def list_stayed(current, old, living, members, degrees, left, places, pairs):
    """List what communities after and before a batch share; return how many pairs there are."""
    sizes, weights = left
    now, then = places
    news, olds, shared_weights, shared_sizes = pairs
    count = 0
    for i in range(len(current)):
        if living[i] & 1:
            sizes[current[i]] -= members[i]
        weights[current[i]] -= degrees[i]
        if living[i] == 3:
            news[count], olds[count] = now[current[i]], then[old[i]]
            shared_weights[count], shared_sizes[count] = degrees[i], members[i]
            count += 1
    for c in range(len(sizes)):
        if sizes[c] > 0 and then[c] >= 0:
            news[count], olds[count] = now[c], then[c]
            shared_weights[count], shared_sizes[count] = weights[c], sizes[c]
            count += 1
    return count


@kernel()
def list_renamed(vertices, current, old, ids, fresh, changed):
    """List the vertices whose id is another than before; return how many there are."""
    count = 0
    for i in range(len(vertices)):
        if fresh[current[i]] != (ids[old[i]] if old[i] >= 0 else -1):
            changed[count] = vertices[i]
            count += 1
    return count


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


@kernel(inline="always")
def precedes(weights, sizes, p, q):
    """Return 1 if pair p shares more than pair q, weight first, −1 if less, 0 if as much."""
    if weights[p] != weights[q]:
        return 1 if weights[p] > weights[q] else -1
    if sizes[p] != sizes[q]:
        return 1 if sizes[p] > sizes[q] else -1
    return 0


@kernel()
def heaviest(keys, ties, weights, sizes, best):
    """Write the pair of each key that shares the most, ties to the smaller value of `ties`."""
    for p in range(len(keys)):
        q = best[keys[p]]
        if q < 0:
            best[keys[p]] = p
            continue
        order = precedes(weights, sizes, p, q)
        if order > 0 or (order == 0 and ties[p] < ties[q]):
            best[keys[p]] = p


@kernel()
def inherit(news, olds, weights, sizes, claims, old_ids, heirs, new_ids, next_id):
    """Give each old id to the community that claims the most of it, and others new ids."""
    for i in range(len(claims)):
        p = claims[i]
        if p < 0:
            continue
        q = heirs[olds[p]]
        # Communities come in the order of their names: ties go to the first.
        if q < 0 or precedes(weights, sizes, p, q) > 0:
            heirs[olds[p]] = p
    for j in range(len(heirs)):
        if heirs[j] >= 0:
            new_ids[news[heirs[j]]] = old_ids[j]
    for i in range(len(new_ids)):
        if new_ids[i] < 0:
            new_ids[i] = next_id
            next_id += 1
    return next_id


@kernel()
def list_events(pairs, now, then, claims, heirs, successors, events):
    """Write what happened to communities of two members and more; return how many events."""
    news, olds, weights = pairs
    ids, sizes, masses = now
    old_ids, old_sizes, old_masses = then
    went = np.zeros(len(old_ids), np.int64)
    for p in range(len(news)):
        went[olds[p]] += weights[p]
    fresh = np.ones(len(ids), np.bool_)
    count = 0
    for j in range(len(old_ids)):
        size, mass, stayed = np.int64(0), np.int64(0), np.int64(0)
        if heirs[j] >= 0:
            i = news[heirs[j]]
            fresh[i] = False
            size, mass, stayed = sizes[i], masses[i], weights[heirs[j]]
        if max(size, old_sizes[j]) < 2:
            continue
        joined, left, other = mass - stayed, went[j] - stayed, np.int64(-1)
        kind = GREW if joined > left else SHRANK if joined < left else CONTINUED
        if old_sizes[j] < 2:
            kind = BORN
        elif size < 2:
            kind = DIED
            if size == 0 and successors[j] >= 0 and sizes[news[successors[j]]] > 1:
                kind, other = MERGED, ids[news[successors[j]]]
        event = events[count]
        event[0], event[1], event[2] = kind, old_ids[j], other
        event[3], event[4], event[5], event[6] = old_sizes[j], size, old_masses[j], mass
        event[7], event[8] = joined, left
        count += 1
    for i in range(len(ids)):
        if not fresh[i] or sizes[i] < 2:
            continue
        kind, other, p = BORN, np.int64(-1), claims[i]
        if p >= 0 and old_sizes[olds[p]] > 1:
            kind, other = SPLIT, old_ids[olds[p]]
        event = events[count]
        event[0], event[1], event[2] = kind, ids[i], other
        event[3], event[4], event[5], event[6] = 0, sizes[i], 0, masses[i]
        event[7], event[8] = masses[i], 0
        count += 1
    return count
