"""Which communities a batch concerns, which of them inherits an id, and what became of each.

Ids are linear in the pairs of communities: one after a batch and one before it that share members,
by their indices. `listed` are the vertices whose community has another name than before the batch,
and those added, removed or revived; states are names before and after, and who is alive.
"""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, assignment"

from __future__ import annotations

import numpy as np

from louvain_um.core.compiled import kernel

GREW, SHRANK, CONTINUED, BORN, SPLIT, DIED, MERGED = range(7)


@kernel()
def list_differing(old, names, lived, lives, listed):
    """List the vertices that differ; return how many do."""
    count = 0
    for v in range(len(names)):
        listed[count] = v
        count += v >= len(old) or old[v] != names[v] or lived[v] != lives[v]
    return count


@kernel()
def list_concerned(listed, old, names, index, concerned):
    """List the communities that these vertices are in and were in, by ascending names."""
    for v in listed:
        index[names[v]] = 0
        if v < len(old):
            index[old[v]] = 0
    count = 0
    for c in range(len(index) if len(listed) else 0):
        if index[c] == 0:
            index[c] = count
            concerned[count] = c
            count += 1
    return count


@kernel()
def add_degrees(us, vs, befores, afters, old, weights):
    """Add what edges gained to their ends' communities before the batch."""
    for i in range(len(us)):
        gained = afters[i] - befores[i]
        for v in (us[i], vs[i]):
            weights[old[v] if v < len(old) else v] += gained


@kernel()
def add_moves(listed, old, names, lived, lives, degrees, sizes, weights):
    """Take members and their degrees from communities before the batch to those after it."""
    for v in listed:
        if v < len(old):
            sizes[old[v]] -= lived[v]
        weights[old[v] if v < len(old) else v] -= degrees[v]
        sizes[names[v]] += lives[v]
        weights[names[v]] += degrees[v]


@kernel()
def list_shared(
    listed, old, names, lived, lives, degrees, index, left_sizes, left_weights, places, news, olds,
    weights, sizes,
):  # fmt: skip
    """List what communities after and before the batch share: what stayed, and vertices listed."""
    now, then = places
    for v in listed:
        left_sizes[index[names[v]]] -= lives[v]
        left_weights[index[names[v]]] -= degrees[v]
    count = 0
    for c in range(len(left_sizes)):
        if left_sizes[c] > 0:
            news[count], olds[count] = now[c], then[c]
            weights[count], sizes[count] = left_weights[c], left_sizes[c]
            count += 1
    for v in listed:
        if lives[v] and v < len(old) and lived[v]:
            news[count], olds[count] = now[index[names[v]]], then[index[old[v]]]
            weights[count], sizes[count] = degrees[v], 1
            count += 1
    return count


@kernel()
def list_changed(old, names, index, ids, fresh, changed):
    """List the vertices whose id is another than before, by the ids of concerned communities."""
    count = 0
    for v in range(len(names) if len(ids) else 0):
        place = index[names[v]]
        if place >= 0 and fresh[place] != (ids[index[old[v]]] if v < len(old) else -1):
            changed[count] = v
            count += 1
    return count


@kernel()
def number_names(both, order, names, places):
    """Give each of some names its number, ascending; return how many there are."""
    count = 0
    for i in order:
        if both[i] == np.uint32(0xFFFFFFFF):
            places[i] = -1
            continue
        if count == 0 or names[count - 1] != both[i]:
            names[count] = both[i]
            count += 1
        places[i] = count - 1
    return count


@kernel()
def list_sums(entries, own, old, sums):
    """Write the members and degrees of named communities after a batch, and those before it."""
    for i in range(len(entries)):
        entry = entries[i]
        if old[i] >= 0:
            sums[0, old[i]], sums[1, old[i]] = entry.old_size, entry.old_mass
            sums[2, old[i]], sums[3, old[i]] = entry.old_size_before, entry.old_mass_before
    for i in range(len(entries)):
        entry = entries[i]
        sums[0, own[i]], sums[1, own[i]] = entry.size, entry.mass
        sums[2, own[i]], sums[3, own[i]] = entry.size_before, entry.mass_before


@kernel()
def list_stayed(entries, own, old, left, places, pairs):
    """List what communities after and before a batch share; return how many pairs there are."""
    sizes, weights = left
    now, then = places
    news, olds, shared_weights, shared_sizes = pairs
    count = 0
    for i in range(len(entries)):
        entry = entries[i]
        members, degree = np.int64(entry.members), np.int64(entry.degree)
        if entry.living & 1:
            sizes[own[i]] -= members
        weights[own[i]] -= degree
        if entry.living == 3:
            news[count], olds[count] = now[own[i]], then[old[i]]
            shared_weights[count], shared_sizes[count] = degree, members
            count += 1
    for c in range(len(sizes)):
        if sizes[c] > 0 and then[c] >= 0:
            news[count], olds[count] = now[c], then[c]
            shared_weights[count], shared_sizes[count] = weights[c], sizes[c]
            count += 1
    return count


@kernel()
def list_renamed(entries, own, old, ids, fresh, changed):
    """List the vertices of entries whose id is another than before; return how many there are."""
    count = 0
    for i in range(len(entries)):
        if fresh[own[i]] != (ids[old[i]] if old[i] >= 0 else -1):
            changed[count] = entries[i].vertex
            count += 1
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
def tell(pairs, now, then, claims, heirs, successors, told):
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
        event = told[count]
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
        event = told[count]
        event[0], event[1], event[2] = kind, ids[i], other
        event[3], event[4], event[5], event[6] = 0, sizes[i], 0, masses[i]
        event[7], event[8] = masses[i], 0
        count += 1
    return count
