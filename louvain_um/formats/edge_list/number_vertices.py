"""Number the ids of an edge list 0 … n − 1, in ascending order of id."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.core import parallel
from louvain_um.core.compiled import kernel
from louvain_um.errors import GraphError
from louvain_um.formats.edge_list.number_parser import ones
from louvain_um.formats.graph_file import too_many

SMALL = 1 << 15
"""Edges below which a second thread does not pay."""


@cache
def hash_keys() -> NDArray[np.uint64]:
    """Return three random words, uint64[3], the last two odd: keys of a process's hash tables."""
    keys = np.frombuffer(secrets.token_bytes(24), np.uint64).copy()
    keys[1:] |= np.uint64(1)
    return keys


Numbered = tuple[NDArray[np.uint32], NDArray[np.uint32], int, NDArray[np.int64] | None]

NUMBER_SPARSE: ContextVar[Callable[..., Numbered | None]] = ContextVar(
    "number_sparse", default=lambda u, v: None
)
"""What numbers ids that are far from dense; a table of hashes does if it returns None."""


def refuse_ids(u: NDArray[Any], v: NDArray[Any], base: int, *, trusted: bool) -> None:
    """Raise an error for ids below the first one, or far beyond the number of edges."""
    if not len(u):
        return
    low, high = _extent(u, v)
    if low < base:
        raise GraphError(
            f"id {low} is below {base}, the first id; correct it, or pass one_based=False "
            "(--zero-based)"
        )
    if not trusted and (problem := too_many(high + 1 - base, len(u))):
        raise GraphError(problem)


def number_vertices(
    u: NDArray[Any], v: NDArray[Any], *, announced: int | None = None, base: int | None = None
) -> Numbered:
    """Return the vertices of a list of non-negative integer ids, numbered from 0."""
    if len(u) == 0:
        return _small(u), _small(v), announced or 0, _names(base or 0, announced or 0)
    low, high = _extent(u, v)
    if base is not None:
        n = max(high + 1 - base, announced or 0)
        return _shift(u, base), _shift(v, base), n, _names(base, n)
    if announced is not None and high <= announced and (low >= 1 or high < announced):
        base = 0 if high < announced else 1
        return _shift(u, base), _shift(v, base), announced, _names(base, announced)
    return _compact(u, v, low, high)


def _compact(u: NDArray[Any], v: NDArray[Any], low: int, high: int) -> Numbered:
    if high - low < 2 * len(u) + (1 << 16):
        seen = np.zeros(high - low + 1, np.uint8)
        threads = _threads(u)
        parallel.run(_mark, threads, u, v, low, seen)
        n = int(np.count_nonzero(seen))
        if n == high - low + 1:
            return _shift(u, low), _shift(v, low), n, _names(low, n)
        # One bit per id and one count per 64 ids: small tables for random look-ups.
        bits = np.packbits(np.append(seen, np.zeros(-len(seen) % 64, np.uint8)), bitorder="little")
        words = bits.view("<u8").astype(np.uint64, copy=False)
        before = np.zeros(len(words), np.uint32)
        np.cumsum(np.bitwise_count(words[:-1]), out=before[1:], dtype=np.uint32)
        out = _output(u), _output(v)
        parallel.run(_rank, threads, u, v, low, words, before, *out)
        return *out, n, np.flatnonzero(seen) + low
    if found := NUMBER_SPARSE.get()(u, v):
        return found
    keys: NDArray[np.int64] = np.full(1 << 12, -1, np.int64)
    count = 0
    for ids in (u, v):
        done = 0
        while done < len(ids):
            done, count = _collect(ids, done, keys, count, hash_keys())
            if done < len(ids):
                old, keys = keys, np.full(4 * len(keys), -1, np.int64)
                _collect(old[old >= 0], 0, keys, 0, hash_keys())
    names = np.sort(keys[keys >= 0])
    ranks = np.empty(len(keys), np.uint32)
    _rank_keys(names, keys, ranks, hash_keys())
    return _looked_up(u, keys, ranks), _looked_up(v, keys, ranks), count, names


def _names(base: int, n: int) -> NDArray[np.int64] | None:
    return None if base == 0 else np.arange(base, base + n, dtype=np.int64)


def _small(ids: NDArray[Any]) -> NDArray[np.uint32]:
    return ids.astype(np.uint32, copy=False)


def _shift(ids: NDArray[Any], base: int) -> NDArray[np.uint32]:
    if not base:
        return _small(ids)
    out, kind = _output(ids), ids.dtype
    np.subtract(ids, kind.type(base), out, dtype=kind, casting="unsafe")
    return out


def _output(ids: NDArray[Any]) -> NDArray[np.uint32]:
    """Return an array for the ids' numbers: the ids' own if it has the right type."""
    return ids if ids.dtype == np.uint32 else np.empty(len(ids), np.uint32)


def _threads(ids: NDArray[Any]) -> int:
    return parallel.default_threads() if len(ids) > SMALL else 1


def _extent(u: NDArray[Any], v: NDArray[Any]) -> tuple[int, int]:
    """Return the smallest and the largest id."""
    threads = _threads(u)
    ends = np.empty((threads, 2), np.int64)
    parallel.run(_extremes, threads, u, v, ends)
    return int(ends[:, 0].min()), int(ends[:, 1].max())


def _looked_up(
    ids: NDArray[Any], keys: NDArray[np.int64], ranks: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    out = _output(ids)
    _look_up(ids, keys, ranks, out, hash_keys())
    return out


@kernel()
def _extremes(t, threads, u, v, ends):
    """Write the smallest and the largest id of this thread's share."""
    first = len(u) * t // threads
    low, high = np.int64(u[first]), np.int64(u[first])
    for i in range(first, len(u) * (t + 1) // threads):
        a, b = np.int64(u[i]), np.int64(v[i])
        low, high = min(low, a, b), max(high, a, b)
    ends[t, 0], ends[t, 1] = low, high


@kernel()
def _mark(t, threads, u, v, low, seen):
    """Mark the ids of this thread's share; threads may write the same 1."""
    for i in range(len(u) * t // threads, len(u) * (t + 1) // threads):
        # Write only where needed: a written cache line moves between cores.
        a, b = np.int64(u[i]) - low, np.int64(v[i]) - low
        if seen[a] == 0:
            seen[a] = 1
        if seen[b] == 0:
            seen[b] = 1


@kernel()
def _rank(t, threads, u, v, low, words, before, out_u, out_v):
    """Write the number of each id of this thread's share: the count of smaller ids that occur."""
    for i in range(len(u) * t // threads, len(u) * (t + 1) // threads):
        out_u[i] = _below(np.uint64(np.int64(u[i]) - low), words, before)
        out_v[i] = _below(np.uint64(np.int64(v[i]) - low), words, before)


@kernel()
def _below(place, words, before):
    word, bit = place >> np.uint64(6), place & np.uint64(63)
    lower = words[word] & ((np.uint64(1) << bit) - np.uint64(1))
    return before[word] + np.uint32(ones(lower))


@kernel()
def _slot(key, keys, secret):
    """Return the slot of `key`, or the empty slot where it belongs."""
    mask = np.uint64(len(keys) - 1)
    place = (np.uint64(key) ^ secret[0]) * secret[1]
    place = (place ^ (place >> np.uint64(32))) * secret[2]
    place = (place ^ (place >> np.uint64(29))) & mask
    while keys[place] != key and keys[place] != -1:
        place = (place + np.uint64(1)) & mask
    return place


@kernel()
def _collect(ids, start, keys, count, secret):
    """Insert ids from `start` on; return early, before the table is more than half full."""
    for i in range(start, len(ids)):
        key = np.int64(ids[i])
        place = _slot(key, keys, secret)
        if keys[place] == -1:
            if 2 * count >= len(keys):
                return i, count
            keys[place] = key
            count += 1
    return len(ids), count


@kernel()
def _rank_keys(names, keys, ranks, secret):
    for i in range(len(names)):
        ranks[_slot(names[i], keys, secret)] = i


@kernel()
def _look_up(ids, keys, ranks, out, secret):
    for i in range(len(ids)):
        out[i] = ranks[_slot(np.int64(ids[i]), keys, secret)]
