"""Leiden's refinement: inside each community, single vertices join sub-communities.

Only a vertex still alone may move, and a sub-community of one vertex may be joined only while that
vertex cannot move itself. So no sub-community ever loses a vertex, and each stays connected.
One sweep in sub-rounds of frozen state, like moving (Traag, Waltman and van Eck 2019, §3, with
the best candidate in place of a random one).
"""

# Numba functions carry no annotations: Numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, assignment"

from __future__ import annotations

import numpy as np

from louvain_um.core.compiled import kernel
from louvain_um.core.intrinsics import atomic_add
from louvain_um.core.parallel import take
from louvain_um.cpu.hash_table import AHEAD, EMPTY, add, bits_for, fetch_row, of_thread
from louvain_um.cpu.rule import bucket, wins_tie

STRETCH = 256
"""Vertices a thread claims at a time."""


@kernel()
def start(t, threads, graph, labels, refined, sub_totals, sub_sizes, external_weight):
    """Make every vertex a sub-community; set `external_weight` to its arcs within its community."""
    begins, ends, targets, weights, degrees = graph
    weighted = len(weights) > 0
    n = len(labels)
    for v in range(n * t // threads, n * (t + 1) // threads):
        refined[v] = v
        sub_totals[v] = degrees[v]
        sub_sizes[v] = 1
        external = 0
        for j in range(begins[v], ends[v]):
            if labels[targets[j]] == labels[v]:
                external += np.int64(weights[j]) if weighted else np.int64(1)
        external_weight[v] = external


@kernel(inline="always")
def well_connected(external, total, community_total, rate):
    """Whether a sub-community has at least the weight to its community expected at random."""
    return np.float64(external) >= (rate * np.float64(total)) * np.float64(community_total - total)


@kernel(forceinline=True)
def well_connected_by_both(external, total, community_total, rate, sub, community, second):
    """Do as `well_connected`, with second masses."""
    _, totals, sub_totals, second_rate = second
    own = sub_totals[sub]
    expected = (rate * np.float64(total)) * np.float64(community_total - total)
    expected -= (second_rate * np.float64(own)) * np.float64(totals[community] - own)
    return np.float64(external) >= expected


@kernel()
def decide(
    t, threads, graph, state, tallies, salt, sub_rounds, sub_round, queue, first, last, rate,
    seed, second, claim,
):  # fmt: skip
    """List in `moved` and `proposed` which single vertices join which sub-community."""
    begins, ends, targets, weights, degrees = graph
    labels, totals, refined, sub_totals, sub_sizes, external_weight = state[:6]
    moved, proposed, weight_to_target = state[6:]
    weighted = len(weights) > 0
    keys, sums, used, names, loads = of_thread(tallies, t)
    while True:
        begin = first + take(claim, STRETCH)
        if begin >= last:
            break
        for i in range(begin, min(begin + STRETCH, last)):
            fetch_row(begins, targets, queue[min(i + AHEAD, last - 1)])
            v = np.int64(queue[i])
            low, high = begins[v], ends[v]
            degree, community_total = degrees[v], totals[labels[v]]
            if low == high or refined[v] != v or sub_sizes[v] != 1:
                continue
            if second is None:
                if not well_connected(external_weight[v], degree, community_total, rate):
                    continue
            else:
                if not well_connected_by_both(
                    external_weight[v], degree, community_total, rate, v, labels[v], second
                ):
                    continue
                second_pull = second[3] * np.float64(second[0][v])
            count = np.uint32(0)
            for j in range(low, high):
                u = targets[np.uint64(j)]
                names[count] = refined[u]
                if weighted:
                    loads[count] = weights[np.uint64(j)]
                count = np.uint32(count + np.uint32(labels[u] == labels[v]))
            n_used = add(keys, sums, used, names, loads, count, bits_for(count), 0)
            pull = rate * np.float64(degree)
            best, best_score, best_weight = np.uint32(v), 0.0, np.int64(0)
            for k in range(n_used):
                slot = used[k]
                sub, weight = keys[slot], sums[slot]
                keys[slot] = EMPTY
                expected = pull * np.float64(sub_totals[sub])
                if second is not None:
                    expected -= second_pull * np.float64(second[2][sub])
                score = np.float64(weight) - expected
                if score < best_score or score <= 0.0:
                    continue
                if score == best_score and not wins_tie(sub, best, seed):
                    continue
                if sub_sizes[sub] == 1 and bucket(sub, salt, sub_rounds) == sub_round:
                    continue
                if second is None:
                    joins = well_connected(
                        external_weight[sub], sub_totals[sub], community_total, rate
                    )
                else:
                    joins = well_connected_by_both(
                        external_weight[sub], sub_totals[sub], community_total, rate, sub,
                        labels[v], second,
                    )  # fmt: skip
                if joins:
                    best, best_score, best_weight = sub, score, weight
            if best != v:
                at = atomic_add(claim, 1, 1)
                moved[at] = v
                proposed[at] = best
                weight_to_target[at] = best_weight


@kernel()
def apply(t, threads, graph, state, second, claim):
    """Carry out the listed moves. A vertex that moves leaves an empty sub-community behind."""
    degrees = graph[4]
    _, _, refined, sub_totals, sub_sizes, external_weight, moved, proposed, weight_to_target = state
    count = claim[1]
    for i in range(count * t // threads, count * (t + 1) // threads):
        v, target = np.int64(moved[i]), np.int64(proposed[i])
        refined[v] = target
        sub_sizes[v] = 0
        atomic_add(sub_totals, target, degrees[v])
        atomic_add(sub_sizes, target, np.uint32(1))
        atomic_add(external_weight, target, external_weight[v] - 2 * weight_to_target[i])
        if second is not None:
            atomic_add(second[2], target, second[0][v])


@kernel()
def split(begins, ends, targets, labels, parents, fixed):
    """Label each connected component of a community with its smallest member, in place."""
    n = len(labels)
    for v in range(n):
        parents[v] = v
    for v in range(n):
        for j in range(begins[v], ends[v]):
            u = np.int64(targets[j])
            if u < v and labels[u] == labels[v]:
                a, b = root_of(parents, v), root_of(parents, u)
                parents[max(a, b)] = min(a, b)
    if len(fixed) > 0:
        first = np.full(n, n, np.int64)
        for v in range(n):
            if fixed[v] and first[labels[v]] == n:
                first[labels[v]] = v
            elif fixed[v]:
                a, b = root_of(parents, v), root_of(parents, first[labels[v]])
                parents[max(a, b)] = min(a, b)
    for v in range(n):
        labels[v] = root_of(parents, v)


@kernel()
def root_of(parents, v):
    """Return the root of v, halving the path to it."""
    while parents[v] != v:
        parents[v] = parents[parents[v]]
        v = np.int64(parents[v])
    return v


@kernel()
def relabel_communities(labels, numbers, first, coarse):
    """Translate communities to the next level, whose vertices are sub-communities."""
    n = len(labels)
    for v in range(n):
        first[labels[v]] = np.uint32(0xFFFFFFFF)
    for v in range(n):
        first[labels[v]] = min(first[labels[v]], numbers[v])
    for v in range(n):
        coarse[numbers[v]] = first[labels[v]]
