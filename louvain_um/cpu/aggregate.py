"""From communities to the next level's graph, exactly: communities become vertices.

Each community's members are visited once and their arcs summed in a hash table. Its list of
neighbours is written where its arcs would start if none merged, so that no counting pass is
needed: one chunk of communities at a time, whose lists then move behind those of earlier chunks.
Pages that no list reaches are never backed by memory.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.core.parallel import take
from louvain_um.cpu.level import (
    EMPTY,
    I64,
    PREFETCHED,
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
from louvain_um.cpu.move import SERIAL_ARCS

CLAIMED = 64
SHARES = 8
"""Claims per thread in a small chunk; in a large one a thread claims `CLAIMED` communities."""


class Groups(NamedTuple):
    """Members by community, ascending; where those of each begin, and the arcs before these."""

    members: U32
    starts: I64
    arc_starts: I64


class NewRows(NamedTuple):
    """Rows of the next level; `counts`, one more than rows, becomes their offsets."""

    targets: U32
    weights: U32 | I64
    loops: I64
    counts: I64


@kernel()
def renumber(labels, ranks):
    """Renumber the labels in use 0 … k − 1 in their order; return k."""
    ranks[:] = 0
    for v in range(len(labels)):
        ranks[labels[v]] = 1
    count = np.uint32(0)
    for c in range(len(ranks)):
        if ranks[c]:
            ranks[c] = count
            count += np.uint32(1)
    for v in range(len(labels)):
        labels[v] = ranks[labels[v]]
    return np.int64(count)


@kernel()
def group_members(begins, ends, labels, groups):
    """List the members of each community, ascending; return the largest number of arcs of one."""
    members, starts, arc_starts = groups
    starts[:] = 0
    arc_starts[:] = 0
    for v in range(len(labels)):
        c = np.int64(labels[v])
        starts[c + 1] += 1
        arc_starts[c + 1] += ends[v] - begins[v]
    most = 0
    for c in range(len(starts) - 1):
        most = max(most, arc_starts[c + 1])
        starts[c + 1] += starts[c]
        arc_starts[c + 1] += arc_starts[c]
    for v in range(len(labels)):
        c = np.int64(labels[v])
        members[starts[c]] = v
        starts[c] += 1
    for c in range(len(starts) - 1, 0, -1):
        starts[c] = starts[c - 1]
    starts[0] = 0
    return most


def coarse_rows(
    host: Host, level: CpuLevel, numbers: U32, offsets: I64, loops: I64
) -> tuple[U32, U32 | I64]:
    """Fill offsets and loops of the next level's rows from the rows here; return the rows."""
    (first, last), empty = level.local, host.memory.empty
    by_row = ("begins", "ends", "degrees", "loops")
    rows = level.rows._replace(**{name: getattr(level.rows, name)[first:last] for name in by_row})
    count = len(loops)
    groups = Groups(
        members=empty("members", "scratch", last - first, np.uint32),
        starts=empty("member_starts", "scratch", count + 1, np.int64),
        arc_starts=empty("rooms", "scratch", count + 1, np.int64),
    )
    most = group_members(rows.begins, rows.ends, numbers[first:last], tuple(groups))
    arcs = int(groups.arc_starts[-1])
    tables = host.tables(level, min(most, count))
    out = NewRows(np.empty(arcs, np.uint32), host.weights(arcs), loops, offsets)
    threads = host.threads if arcs > SERIAL_ARCS else 1
    kept = write_rows(threads, rows, numbers, groups, tables, out)
    host.show(
        "aggregate", level, numbers=numbers, members=groups.members, member_starts=groups.starts,
        coarse_offsets=offsets,
    )  # fmt: skip
    # Shrinking in place frees the unused tail without a copy.
    out.targets.resize(kept, refcheck=False)
    out.weights.resize(kept, refcheck=False)
    host.memory.free("members", "member_starts", "rooms")
    host.free_tables()
    return out.targets, out.weights


CHUNKS = 16
LEAST_ARCS = 1 << 16
"""Number of chunks of a level, and the fewest arcs of a chunk."""


def write_rows(
    threads: int,
    rows: LevelRows,
    numbers: U32,
    groups: Groups,
    tables: NeighbourTable,
    out: NewRows,
) -> int:
    """Write the next level's rows, chunk by chunk of communities; return its arcs."""
    arc_starts, offsets = groups.arc_starts, out.counts
    arcs, count = int(arc_starts[-1]), len(arc_starts) - 1
    chunk_arcs = max(arcs // CHUNKS, LEAST_ARCS)
    ends = [0]
    while ends[-1] < count:
        ends.append(end_of_chunk(arc_starts, ends[-1], chunk_arcs))
    size = max((int(arc_starts[b] - arc_starts[a]) for a, b in pairwise(ends)), default=0)
    chunk_rows = np.empty(size, out.targets.dtype), np.empty(size, out.weights.dtype)
    written = *chunk_rows, out.loops, offsets
    plain = tuple(map(tuple, (rows, groups, tables)))
    offsets[0] = 0
    for first, last in pairwise(ends):
        chunk = first, last, np.zeros(1, np.int64)
        parallel.run(sum_arcs, threads, *plain[:1], numbers, *plain[1:], chunk, written)
        append(arc_starts, first, last, written, tuple(out))
    return int(offsets[-1])


@kernel()
def end_of_chunk(arc_starts, first, arcs):
    """Return the end of the chunk from `first`: one community, more up to `arcs` arcs."""
    last = first + 1
    while last < len(arc_starts) - 1 and arc_starts[last + 1] - arc_starts[first] <= arcs:
        last += 1
    return last


@kernel()
def sum_arcs(t, threads, rows, labels, groups, tables, chunk, out):
    """Write neighbours with weights, loop and count of each community of a chunk."""
    rows = LevelRows(*rows)
    (begins, ends, targets, weights), loops = rows[:4], rows.loops
    members, starts, arc_starts = groups
    new_targets, new_weights, new_loops, counts = out
    table = of_thread(NeighbourTable(*tables), t)
    keys, sums, used, names, loads = table
    weighted = len(weights) > 0
    communities = len(starts) - 1
    first, last, claim = chunk
    step = min(max((last - first) // (SHARES * threads), 1), CLAIMED)
    while True:
        begin = first + take(claim, step)
        if begin >= last:
            break
        for c in range(begin, min(begin + step, last)):
            bits = bits_for(min(arc_starts[c + 1] - arc_starts[c], communities))
            base = arc_starts[c] - arc_starts[first]
            found = np.uint32(0)
            inside = 0
            loop = 0
            for m in range(starts[c], starts[c + 1]):
                fetch_row(begins, targets, members[min(m + PREFETCHED, len(members) - 1)])
                v = members[m]
                loop += loops[v]
                low, high = begins[v], ends[v]
                if weighted:
                    count, inner, _ = collect_weighted(labels, rows, low, high, c, names, loads)
                    inside += inner
                else:
                    count = collect(labels, rows, low, high, c, names)
                    inside += high - low - np.int64(count)
                found = add(keys, sums, used, names, loads, count, bits, found)
            for k in range(found):
                slot = used[k]
                new_targets[base + k] = keys[slot]
                new_weights[base + k] = sums[slot]
                keys[slot] = EMPTY
            new_loops[c] = loop + inside // 2
            counts[c + 1] = found


@kernel()
def append(arc_starts, first, last, written, out):
    """Append the lists of a chunk to those before it; turn its counts into offsets."""
    chunk_targets, chunk_weights, _, counts = written
    targets, weights, _, _ = out
    counts[0] = 0
    end = counts[first]
    for c in range(first, last):
        base, found = arc_starts[c] - arc_starts[first], counts[c + 1]
        for k in range(found):
            targets[end + k] = chunk_targets[base + k]
            weights[end + k] = chunk_weights[base + k]
        end += found
        counts[c + 1] = end
