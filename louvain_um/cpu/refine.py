"""Leiden's refinement: inside each community, single vertices join sub-communities.

Only a vertex still alone may move, and a sub-community of one vertex may be joined only while that
vertex cannot move itself. So no sub-community ever loses a vertex, and each stays connected.
One sweep in sub-rounds of frozen state, like moving (Traag, Waltman and van Eck 2019, §3, with
the best candidate in place of a random one).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from louvain_um.core import parallel, rules
from louvain_um.core.compiled import atomic_add, atomic_load, kernel
from louvain_um.core.parallel import claim, finish, wait
from louvain_um.core.rules import SUB_ROUNDS
from louvain_um.cpu import move
from louvain_um.cpu.level import (
    EMPTY,
    I64,
    PREFETCHED,
    U32,
    CpuLevel,
    Host,
    NeighbourTable,
    add,
    bits_for,
    fetch_row,
    of_thread,
)
from louvain_um.cpu.move import claim_size, enqueue
from louvain_um.cpu.rule import ACTIVE, bucket, rule_of, wins_tie


class Parts(NamedTuple):
    """Communities, and the sub-communities that they are divided into."""

    labels: U32
    totals: I64
    refined: U32
    sub_totals: I64
    sub_sizes: U32
    external_weight: I64


class Joins(NamedTuple):
    """Single vertices, the sub-communities that they join, and their weights to these."""

    vertices: U32
    targets: U32
    weights: I64


class Rounds(NamedTuple):
    """The vertices by sub-round, the claims of threads, and the joins of each sub-round."""

    queue: U32
    starts: I64
    salt: np.uint32
    progress: I64
    counts: I64


class SecondMasses(NamedTuple):
    """Second masses of vertices, communities and sub-communities, and their rate."""

    masses: I64
    totals: I64
    sub_totals: I64
    rate: float


@kernel()
def start(t, threads, rows, parts):
    """Make every vertex a sub-community; set `external_weight` to its arcs within its community."""
    begins, ends, targets, weights, degrees, _ = rows
    labels, _, refined, sub_totals, sub_sizes, external_weight = parts
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
    own = second.sub_totals[sub]
    expected = (rate * np.float64(total)) * np.float64(community_total - total)
    expected -= (second.rate * np.float64(own)) * np.float64(second.totals[community] - own)
    return np.float64(external) >= expected


@kernel()
def decide(rows, parts, table, rounds, joins, rule, second, sub_round, begin, end):
    """List which single vertices of queue[begin:end] join which sub-community."""
    begins, ends, targets, weights, degrees, _ = rows
    labels, totals, refined, sub_totals, sub_sizes, external_weight = parts
    queue, starts, salt, _, counts = rounds
    joined, joined_to, joined_weights = joins
    rate, _, seed = rule
    weighted = len(weights) > 0
    keys, sums, used, names, loads = table
    for i in range(begin, end):
        fetch_row(begins, targets, queue[min(i + PREFETCHED, end - 1)])
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
            second_pull = second.rate * np.float64(second.masses[v])
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
                expected -= second_pull * np.float64(second.sub_totals[sub])
            score = np.float64(weight) - expected
            if score < best_score or score <= 0.0:
                continue
            if score == best_score and not wins_tie(sub, best, seed):
                continue
            if sub_sizes[sub] == 1 and bucket(sub, salt, SUB_ROUNDS) == sub_round:
                continue
            if second is None:
                eligible = well_connected(
                    external_weight[sub], sub_totals[sub], community_total, rate
                )
            else:
                eligible = well_connected_by_both(
                    external_weight[sub], sub_totals[sub], community_total, rate, sub,
                    labels[v], second,
                )  # fmt: skip
            if eligible:
                best, best_score, best_weight = sub, score, weight
        if best != v:
            at = starts[sub_round] + atomic_add(counts, sub_round, 1)
            joined[at] = v
            joined_to[at] = best
            joined_weights[at] = best_weight


@kernel(forceinline=True)
def decide_claimed(threads, rows, parts, table, rounds, joins, rule, second, r):
    """Decide for the part of a sub-round that this thread claims."""
    first, last = rounds.starts[r], rounds.starts[r + 1]
    step = claim_size(last - first, threads)
    begin = first + claim(rounds.progress, 2 * r, step)
    while begin < last:
        end = min(begin + step, last)
        decide(rows, parts, table, rounds, joins, rule, second, r, begin, end)
        finish(rounds.progress, 2 * r, end - begin)
        begin = first + claim(rounds.progress, 2 * r, step)


@kernel()
def decide_round(t, threads, rows, parts, tables, rounds, joins, rule, second, r):
    """Decide for the vertices of a sub-round."""
    table = of_thread(NeighbourTable(*tables), t)
    decide_claimed(threads, rows, parts, table, Rounds(*rounds), joins, rule, second, r)


@kernel()
def run_rounds(t, threads, rows, parts, tables, rounds, joins, rule, second):
    """Decide and carry out all sub-rounds; threads share the work as in a sweep of moving."""
    table, rounds = of_thread(NeighbourTable(*tables), t), Rounds(*rounds)
    progress, degrees = rounds.progress, rows[4]
    for r in range(SUB_ROUNDS):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        decide_claimed(threads, rows, parts, table, rounds, joins, rule, second, r)
        wait(progress, 2 * r, last - first)
        last = first + atomic_load(rounds.counts, r)
        step = claim_size(last - first, threads)
        begin = first + claim(progress, 2 * r + 1, step)
        while begin < last:
            end = min(begin + step, last)
            apply(degrees, parts, joins, begin, end, second)
            finish(progress, 2 * r + 1, end - begin)
            begin = first + claim(progress, 2 * r + 1, step)
        wait(progress, 2 * r + 1, last - first)


@kernel()
def apply(degrees, parts, joins, begin, end, second):
    """Carry out joins[begin:end]. A vertex that joins leaves an empty sub-community behind."""
    _, _, refined, sub_totals, sub_sizes, external_weight = parts
    joined, joined_to, joined_weights = joins
    for i in range(begin, end):
        v, target = np.int64(joined[i]), np.int64(joined_to[i])
        refined[v] = target
        sub_sizes[v] = 0
        atomic_add(sub_totals, target, degrees[v])
        atomic_add(sub_sizes, target, np.uint32(1))
        atomic_add(external_weight, target, external_weight[v] - 2 * joined_weights[i])
        if second is not None:
            atomic_add(second.sub_totals, target, second.masses[v])


class RefinePhase:
    """The refinement of a level: its arrays, and the steps of its sub-rounds."""

    def __init__(self, host: Host, level: CpuLevel) -> None:
        self.host, self.level, rows = host, level, level.rows
        self.rows = (*rows[:4], rows.degrees, rows.loops)
        n, empty = level.vertices, host.memory.empty
        first, last = level.local
        refined = empty(f"refined.{level.cycle}.{level.number}", "community", n, np.uint32)
        sub_totals = empty("refined_totals", "community", n, np.int64)
        sub_sizes = empty("refined_sizes", "community", n, np.uint32)
        external_weight = empty("external_weight", "community", n, np.int64)
        self.parts = Parts(
            level.labels, level.totals, refined, sub_totals, sub_sizes, external_weight
        )
        self.queue = empty("queue", "scratch", last - first, np.uint32)
        moved = empty("moved", "scratch", last - first, np.uint32)
        proposed = empty("proposed", "scratch", last - first, np.uint32)
        weights = empty("weight_to_target", "scratch", last - first, np.int64)
        self.joins = Joins(moved, proposed, weights)
        self.tables = tuple(host.tables(level, min(level.max_degree, n)))
        self.rule = tuple(rule_of(host.problem, host.options))
        self.second = None
        if len(level.second):
            masses = level.second, level.second_totals, level.second.copy()
            self.second = SecondMasses(*masses, host.problem.objective.second_rate)
        # Threads wait for each other twice a sub-round, which takes as long as many arcs.
        self.threads = host.threads if level.arcs >= move.SERIAL_ARCS else 1
        parallel.run(start, self.threads, self.rows, tuple(self.parts))
        salt = np.uint32(rules.salt(level.cycle, rules.REFINE_SWEEP, host.options.seed))
        active = np.full(n, ACTIVE, np.uint8)
        self.starts, _ = enqueue(host, level, active, proposed, self.queue, salt)
        progress, counts = np.zeros(4 * SUB_ROUNDS, np.int64), np.zeros(SUB_ROUNDS, np.int64)
        self.rounds = Rounds(self.queue, self.starts, salt, progress, counts)
        self.plain = (
            self.rows, tuple(self.parts), self.tables, tuple(self.rounds), tuple(self.joins),
            self.rule, self.second,
        )  # fmt: skip

    def run(self) -> None:
        """Run all sub-rounds over a level whose rows all lie here."""
        parallel.run(run_rounds, self.threads, *self.plain)

    def decide(self, r: int) -> Joins:
        """Return which single vertices of a sub-round join which sub-community."""
        parallel.run(decide_round, self.threads, *self.plain, r)
        joined = slice(self.starts[r], self.starts[r] + self.rounds.counts[r])
        vertices, targets, weights = self.joins
        return Joins(vertices[joined], targets[joined], weights[joined])

    def apply(self, joins: Joins) -> None:
        """Carry out what a sub-round decided, wherever the rows lie."""
        parts, degrees = tuple(self.parts), self.level.degrees
        apply(degrees, parts, tuple(joins), 0, len(joins.vertices), self.second)

    def close(self) -> None:
        """Leave sub-communities on the level; free the other arrays."""
        self.level.refined = self.parts.refined
        memory = self.host.memory
        memory.free("refined_totals", "refined_sizes", "external_weight", "weight_to_target")
        memory.free("queue", "moved", "proposed")
        self.host.free_tables()


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
