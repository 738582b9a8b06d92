"""Moving vertices between communities: one sweep in sub-rounds of frozen state.

A sub-round has three steps: `decide` reads the frozen labels and totals and records each queued
vertex's proposed community, `apply` carries the moves out with integer adds, `activate` marks the
neighbours left behind as active. No step depends on the order of its items. `activate` writes
nothing that `decide` reads, so it shares a stage with the next sub-round's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from louvain_um.core import parallel, rules
from louvain_um.core.compiled import atomic_add, kernel, prefetch
from louvain_um.core.hierarchy import MoveStats
from louvain_um.core.parallel import claim, finish, wait
from louvain_um.core.rules import GAIN_BITS, MAX_ITERATIONS, MIN_SWEEPS, SUB_ROUNDS
from louvain_um.cpu.level import (
    EMPTY,
    I64,
    PREFETCHED,
    U8,
    U32,
    CpuLevel,
    Host,
    LevelRows,
    NeighbourTable,
    add,
    bits_for,
    collect,
    collect_weighted,
    fetch_row,
    of_thread,
)
from louvain_um.cpu.rule import (
    ACTIVE,
    ScoreRule,
    admit,
    bucket,
    extended_of,
    has_room,
    is_pinned,
    mix32,
    new_bytes,
    rule_of,
    second_of,
    wins_tie,
)
from louvain_um.cpu.walk import after, piece_of
from louvain_um.events import Event, ignore

CLAIMED = 256
"""Vertices a thread claims at a time: few enough to even out skewed degrees."""

STAYS = EMPTY
"""Proposal of a vertex that does not move."""

STAGES = 4 * SUB_ROUNDS
"""Stages of a sweep: decide, apply, activate and, under a maximum size, admit of every sub-round.

A vertex's state is ACTIVE, 0 (inactive), or 1 + its sub-round in the current sweep. Until that
sub-round is over the vertex still decides, so only a later move activates it for the next sweep."""

GAIN_UNIT = 2.0**GAIN_BITS

SERIAL_ARCS = 1 << 15
"""Arcs of a sweep below which a second thread costs more than it saves."""


class MoveState(NamedTuple):
    """The frozen state that a sub-round decides from, states of vertices, and proposals."""

    labels: U32
    totals: I64
    sizes: U32
    active: U8
    proposed: U32


class SweepQueue(NamedTuple):
    """The active vertices by sub-round, the claims of threads, and what they add up."""

    queue: U32
    starts: I64
    prunes: bool
    progress: I64
    result: I64


@kernel()
def start(degrees, labels, totals, sizes):
    """Fill totals and sizes from labels."""
    totals[:] = 0
    sizes[:] = 0
    for v in range(len(labels)):
        totals[labels[v]] += degrees[v]
        sizes[labels[v]] += 1


@kernel()
def fill_queue(t, threads, bounds, active, lists, queue, starts):
    """Sort a thread's list by sub-round, ascending in each, behind those of threads before it."""
    listed, counts, _ = lists
    next_ = np.zeros(SUB_ROUNDS, np.int64)
    at = 0
    for r in range(SUB_ROUNDS):
        if t == 0:
            starts[r] = at
        for other in range(threads):
            if other == t:
                next_[r] = at
            at += counts[other, r]
    if t == 0:
        starts[SUB_ROUNDS] = at
    share = (bounds[1] - bounds[0]) * t // threads
    for i in range(share, share + counts[t, SUB_ROUNDS]):
        v = listed[i]
        r = active[v] - 1
        queue[next_[r]] = v
        next_[r] += 1


@kernel()
def list_active(t, threads, bounds, begins, ends, active, salt, sub_rounds, lists, queue, starts):
    """List a thread's share of the active vertices in some bounds; count them by sub-round."""
    # One thread alone fills the queue, too.
    low, high = bounds
    listed, counts, arcs = lists
    share, end = (high - low) * t // threads, (high - low) * (t + 1) // threads
    counts[t] = 0
    found, visited = share, 0
    for v in range(low + share, low + end):
        listed[found] = v
        found += active[v] == ACTIVE
    counts[t, SUB_ROUNDS] = found - share
    active[low + share : low + end] = 0
    for i in range(share, found):
        v = listed[i]
        r = bucket(v, salt, sub_rounds)
        active[v] = r + 1
        counts[t, r] += 1
        visited += ends[v] - begins[v]
    arcs[t] = visited
    if threads == 1:
        fill_queue(t, threads, bounds, active, lists, queue, starts)


def enqueue(
    host: Host, level: CpuLevel, active: U8, listed: U32, queue: U32, salt: np.uint32
) -> tuple[I64, int]:
    """Queue the active vertices; return where each sub-round starts, and their arcs."""
    bounds = first, last = level.local
    threads = host.threads if last - first >= SERIAL_ARCS else 1
    counts = np.empty((threads, SUB_ROUNDS + 1), np.int64)
    arcs, starts = np.empty(threads, np.int64), np.empty(SUB_ROUNDS + 1, np.int64)
    lists = listed, counts, arcs
    given = bounds, *level.bounds, active, salt, level.sub_rounds, lists, queue, starts
    parallel.run(list_active, threads, *given)
    if threads > 1:
        parallel.run(fill_queue, threads, bounds, active, lists, queue, starts)
    return starts, sum(arcs.tolist())


@kernel()
def decide(rows, state, table, queue, begin, end, rule, extended):
    """Propose a community for each of queue[begin:end]; return moves and the sum of their gains."""
    (begins, ends, targets, weights), degrees = rows[:4], rows.degrees
    labels, totals, sizes, _, proposed = state
    keys, sums, used, names, loads = table
    rate, total, seed = rule
    weighted = len(weights) > 0
    moves, gain = 0, 0
    for i in range(begin, end):
        prefetch(begins, queue[min(i + 2 * PREFETCHED, end - 1)])
        after = queue[min(i + PREFETCHED, end - 1)]
        fetch_row(begins, targets, after)
        prefetch(labels, after)
        prefetch(degrees, after)

        v = queue[i]
        proposed[i] = STAYS
        own = labels[v]
        low, high = begins[v], ends[v]
        if weighted:
            count, inside, outside = collect_weighted(labels, rows, low, high, own, names, loads)
        else:
            count = collect(labels, rows, low, high, own, names)
            inside, outside = high - low - np.int64(count), np.int64(count)
        degree = degrees[v]
        pull = rate * np.float64(degree)
        expected = pull * np.float64(totals[own] - degree)
        if extended is not None:
            if low == high or (len(extended.fixed) > 0 and extended.fixed[v]):
                continue
            second = second_of(extended.second, v)
            second_pull = extended.second_rate * second
            expected -= second_pull * (second_of(extended.second_totals, own) - second)
        stay = np.float64(inside) - expected
        # No score is above the weight of all arcs that leave: rounding keeps the order.
        if extended is None:
            if count == 0 or stay >= np.float64(outside):
                continue
        elif extended.bounded and stay >= max(np.float64(outside), 0.0):
            continue
        n_used = add(keys, sums, used, names, loads, count, bits_for(count), 0)
        best, best_score = own, stay
        for k in range(n_used):
            slot = used[k]
            community = keys[slot]
            expected = pull * np.float64(totals[community])
            if extended is not None:
                expected -= second_pull * second_of(extended.second_totals, community)
            score = np.float64(sums[slot]) - expected
            keys[slot] = EMPTY
            if extended is not None and not has_room(extended, community, v):
                continue
            if score > best_score or (
                score == best_score and best != own and wins_tie(community, best, seed)
            ):
                best, best_score = community, score
        if extended is not None and best_score < 0.0 and sizes[v] == 0:
            best, best_score = v, 0.0  # alone, in the empty community of its own number
        if best != own and not (
            sizes[own] == 1 and sizes[best] == 1 and best > own and not is_pinned(extended, best)
        ):
            gained = (best_score - stay) / total
            if extended is not None:
                gained = min(gained, extended.most_gain)
            units = np.int64(np.rint(gained * GAIN_UNIT))
            if extended is not None and len(extended.gains) > 0:
                extended.gains[i] = units
            gain += units
            moves += 1
            proposed[i] = best
    return moves, gain


@kernel()
def apply(degrees, state, queue, begin, end, extended):
    """Carry out the moves of queue[begin:end]."""
    labels, totals, sizes, _, proposed = state
    for i in range(begin, end):
        target = proposed[i]
        if target == STAYS:
            continue
        v = queue[i]
        own = labels[v]
        labels[v] = target
        atomic_add(totals, own, -degrees[v])
        atomic_add(totals, target, degrees[v])
        atomic_add(sizes, own, np.uint32(0xFFFFFFFF))
        atomic_add(sizes, target, np.uint32(1))
        if extended is not None:
            if len(extended.second) > 0:
                atomic_add(extended.second_totals, own, -extended.second[v])
                atomic_add(extended.second_totals, target, extended.second[v])
            if len(extended.members) > 0:
                atomic_add(extended.member_totals, own, -extended.members[v])
                atomic_add(extended.member_totals, target, extended.members[v])


@kernel()
def activate(rows, state, names, queue, begin, end, sub_round):
    """Activate the neighbours of moved vertices that are not in their new community."""
    begins, targets = rows.begins, rows.targets
    labels, _, _, active, proposed = state
    latest = np.uint8(sub_round + 1)
    for i in range(begin, end):
        fetch_row(begins, targets, queue[min(i + PREFETCHED, end - 1)])
        target = proposed[i]
        if target == STAYS:
            continue
        v = queue[i]
        count, piece = np.uint32(0), piece_of(rows, v)
        while True:
            for j in range(np.int64(piece.arc), np.int64(piece.stop)):
                u = targets[np.uint64(j)]
                names[count] = u
                count = np.uint32(count + np.uint32((labels[u] != target) & (active[u] <= latest)))
            piece = after(rows, piece)
            if piece.arc == piece.stop:
                break
        for k in range(count):
            active[names[k]] = ACTIVE


@kernel(inline="always")
def claim_size(items, threads):
    """Return how many items a thread claims at a time, so that it claims several times."""
    return max(1, min(CLAIMED, items // (8 * threads)))


@kernel(forceinline=True)
def decide_claimed(threads, rows, state, table, rule, extended, sweep, r):
    """Decide for the part of a sub-round that this thread claims; return moves and gains."""
    first, last = sweep.starts[r], sweep.starts[r + 1]
    step = claim_size(last - first, threads)
    moves, gain = 0, 0
    begin = first + claim(sweep.progress, 3 * r, step)
    while begin < last:
        end = min(begin + step, last)
        found = decide(rows, state, table, sweep.queue, begin, end, rule, extended)
        moves += found[0]
        gain += found[1]
        finish(sweep.progress, 3 * r, end - begin)
        begin = first + claim(sweep.progress, 3 * r, step)
    return moves, gain


@kernel(forceinline=True)
def activate_claimed(threads, rows, state, names, sweep, r):
    """Activate the neighbours of vertices that moved in the part that this thread claims."""
    first, last = sweep.starts[r], sweep.starts[r + 1]
    step = claim_size(last - first, threads)
    begin = first + claim(sweep.progress, 3 * r + 2, step)
    while begin < last:
        end = min(begin + step, last)
        activate(rows, state, names, sweep.queue, begin, end, r)
        finish(sweep.progress, 3 * r + 2, end - begin)
        begin = first + claim(sweep.progress, 3 * r + 2, step)


@kernel()
def run_sweep(t, threads, rows, state, tables, rule, extended, sweep):
    """Run all sub-rounds of a sweep; add moves and gain to its result."""
    # Unless the sweep prunes no vertex is activated: the caller keeps all active for the next one.
    #
    # Threads claim parts of a stage, two counters each in `progress`, and wait for its work to be
    # finished, never for each other: any one of them could do a sweep alone.
    rows, state, rule, sweep = (
        LevelRows(*rows),
        MoveState(*state),
        ScoreRule(*rule),
        SweepQueue(*sweep),
    )
    table = of_thread(NeighbourTable(*tables), t)
    queue, starts, prunes, progress, result = sweep
    moves, gain = 0, 0
    for r in range(SUB_ROUNDS + 1):
        if r > 0 and prunes:
            activate_claimed(threads, rows, state, table.names, sweep, r - 1)
        if r == SUB_ROUNDS:
            break
        deciding, applying, activating = 3 * r, 3 * r + 1, 3 * r - 1
        first, last = starts[r], starts[r + 1]
        found = decide_claimed(threads, rows, state, table, rule, extended, sweep, r)
        moves += found[0]
        gain += found[1]
        if r > 0 and prunes:
            wait(progress, activating, starts[r] - starts[r - 1])
        wait(progress, deciding, last - first)
        if extended is not None and len(extended.gains) > 0:
            admitting = 3 * SUB_ROUNDS + r
            if first < last and claim(progress, admitting, last - first) == 0:
                found = admit(extended, state, queue, first, last, rule.seed)
                moves += found[0]
                gain += found[1]
                finish(progress, admitting, last - first)
            wait(progress, admitting, last - first)
        step = claim_size(last - first, threads)
        begin = first + claim(progress, applying, step)
        while begin < last:
            end = min(begin + step, last)
            apply(rows.degrees, state, queue, begin, end, extended)
            finish(progress, applying, end - begin)
            begin = first + claim(progress, applying, step)
        wait(progress, applying, last - first)
    atomic_add(result, 0, moves)
    atomic_add(result, 1, gain)


@kernel()
def run_sweeps(t, threads, rows, state, tables, rule, extended, sweep, schedule):
    """Run sweeps by one thread, 0 of 1, to the last; return their number, moves, gain and arcs."""
    # Literals in place of the two numbers would make Numba compile what is called once more.
    queue, starts, _, progress, result = sweep
    active, listed = state[3], state[4]
    first_salt, full_sweeps, sub_rounds, tolerance = schedule
    counts, arcs = np.empty((1, SUB_ROUNDS + 1), np.int64), np.empty(1, np.int64)
    lists, bounds = (listed, counts, arcs), (0, len(active))
    iteration, moves, gain, visited, before = 0, 0, 0, 0, 0
    while True:
        salt, prunes = mix32(np.uint32(first_salt + iteration)), iteration >= full_sweeps
        given = active, salt, sub_rounds, lists, queue, starts
        list_active(t, threads, bounds, rows[0], rows[1], *given)
        progress[:] = 0
        result[:] = 0
        of_sweep = queue, starts, prunes, progress, result
        run_sweep(t, threads, rows, state, tables, rule, extended, of_sweep)
        if not prunes:
            active[:] = ACTIVE
        moves += result[0]
        gain += result[1]
        visited += arcs[0]
        last = result[1] < tolerance or (iteration >= MIN_SWEEPS and result[1] >= before)
        before = result[1]
        iteration += 1
        if last or result[0] == 0 or iteration == MAX_ITERATIONS:
            return iteration, moves, gain, visited


class MovePhase:
    """The move phase of a level: its arrays, and what its sweeps have found so far."""

    def __init__(self, host: Host, level: CpuLevel) -> None:
        self.host, self.level = host, level
        n, empty = level.vertices, host.memory.empty
        first, last = level.local
        labels = empty(f"labels.{level.cycle}.{level.number}", "community", n, np.uint32)
        labels[:] = np.arange(n, dtype=np.uint32) if level.start is None else level.start
        totals = empty("totals", "community", n, np.int64)
        sizes = empty("sizes", "community", n, np.uint32)
        active = empty("active", "scratch", n, np.uint8)
        self.queue = empty("queue", "scratch", last - first, np.uint32)
        proposed = empty("proposed", "scratch", last - first, np.uint32)
        self.tables = host.tables(level, min(level.max_degree, n))
        self.state = MoveState(labels, totals, sizes, active, proposed)
        if level.start is None:
            totals[:], sizes[:] = level.degrees, 1
        else:
            start(level.degrees, labels, totals, sizes)
        active[:] = ACTIVE
        if level.active is not None:
            active *= level.active
        self.extended = None
        if host.problem.extended:
            self.extended = extended_of(level, labels, host.problem)
            host.memory.ledger.add("extended", "community", new_bytes(self.extended))
        records = level.rows, self.state, self.tables, rule_of(host.problem, host.options)
        self.plain = tuple(map(tuple, records))
        self.iteration = self.moves = self.gain = self.visited = self.arcs = 0
        self.before = 0
        self.done = False

    @property
    def small(self) -> bool:
        """Whether one thread does all, and nobody observes its sweeps."""
        level, host = self.level, self.host
        return max(level.arcs, level.vertices) < SERIAL_ARCS and host.observer is ignore

    def run_all(self) -> None:
        """Run all sweeps over a small level."""
        level, options = self.level, self.host.options
        sweep = self.new_sweep(np.empty(SUB_ROUNDS + 1, np.int64))
        schedule = (
            (level.cycle << 16) + rules.seed_salt(options.seed),
            rules.FULL_SWEEPS if level.start is None else 0,
            level.sub_rounds,
            rules.tolerance(level.number, options.effort),
        )
        found = run_sweeps(0, 1, *self.plain, self.extended, tuple(sweep), schedule)
        self.iteration, self.moves, self.gain, self.visited = found

    @property
    def salt(self) -> np.uint32:
        """Salt of the sweep that begins."""
        return np.uint32(rules.salt(self.level.cycle, self.iteration, self.host.options.seed))

    def begin_sweep(self) -> SweepQueue:
        """Queue the active vertices."""
        active, listed = self.state.active, self.state.proposed
        starts, self.arcs = enqueue(self.host, self.level, active, listed, self.queue, self.salt)
        return self.new_sweep(starts)

    def new_sweep(self, starts: I64) -> SweepQueue:
        """Return a sweep whose sub-rounds begin there in the queue."""
        return SweepQueue(
            queue=self.queue,
            starts=starts,
            prunes=rules.prunes(self.level.start is None, self.iteration),
            progress=np.zeros(2 * STAGES, np.int64),
            result=np.zeros(2, np.int64),
        )

    def run(self, sweep: SweepQueue) -> None:
        """Run all sub-rounds of a sweep over a level whose rows all lie here."""
        threads = self.host.threads if self.arcs >= SERIAL_ARCS else 1
        parallel.run(
            run_sweep, threads, *self.plain, self.extended, tuple(sweep)
        )  # fmt: skip

    def end_sweep(self, sweep: SweepQueue, moves: int, gain: int, arcs: int) -> None:
        """Note what a sweep found, and whether it is the last one."""
        level, iteration = self.level, self.iteration
        self.moves, self.gain = self.moves + moves, self.gain + gain
        self.visited += arcs
        if not sweep.prunes:
            self.state.active[:] = ACTIVE
        if self.host.observer is not ignore:
            self.host.observer(
                Event(
                    kind="iteration",
                    phase="move",
                    level=level.number,
                    iteration=iteration,
                    vertices=level.vertices,
                    arcs=level.arcs,
                    moved=moves,
                )
            )
        self.iteration += 1
        self.done = (
            moves == 0
            or rules.is_last_sweep(
                level.number, iteration, gain, self.before, self.host.options.effort
            )
            or self.iteration == rules.MAX_ITERATIONS
        )
        self.before = gain

    def close(self) -> MoveStats:
        """Leave labels and totals on the level; free the other arrays."""
        level, memory = self.level, self.host.memory
        level.labels, level.totals = self.state.labels, self.state.totals
        if self.extended is not None:
            level.second_totals = self.extended.second_totals
            memory.free("extended")
        memory.free("totals", "sizes", "active", "queue", "proposed")
        self.host.free_tables()
        return MoveStats(self.iteration, self.moves, self.visited, self.gain)


@kernel()
def weigh(rows, labels, totals):
    """Add up community degrees in `totals`; return the arcs' weight inside communities."""
    rows = LevelRows(*rows)
    weighted = len(rows.weights) > 0
    inside = 0
    for v in range(len(labels)):
        totals[labels[v]] += rows.degrees[v]
        inside += 2 * rows.loops[v]
        piece = piece_of(rows, v)
        while piece.arc < piece.stop:
            for j in range(piece.arc, piece.stop):
                if labels[rows.targets[j]] == labels[v]:
                    inside += np.int64(rows.weights[j]) if weighted else np.int64(1)
            piece = after(rows, piece)
    return inside
