"""Functors of users on the CPU: compiled by Numba, into kernels that call them.

Each function of this module has a counterpart in `gpu.algorithms.functors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numba import njit, types
from numba.core.errors import NumbaError

from louvain_um.core import compiled, parallel
from louvain_um.core.compiled import kernel
from louvain_um.cpu.algorithms import operators
from louvain_um.cpu.algorithms.operators import PARTS, ROWS, SERIAL_ARCS, arrays, claim_rows
from louvain_um.cpu.walk import INLINE, after, piece_of, row

inlined: Any = njit(**INLINE)  # type: ignore[call-overload]
released: Any = njit(nogil=True, _nrt=False)  # type: ignore[call-overload]
"""Not cached on disk, where an index would name functions of users."""

advance: Final = inlined(operators.advance.py_func)
sum_row: Final = inlined(operators.sum_row.py_func)

KEPT: Final = 64
"""Functors whose kernels are kept."""

EMPTY: Final = 0xFFFFFFFF

ANSWERS: Final = types.Boolean, types.Integer, types.Float


@kernel(**INLINE)
def place(array, index):
    """Return where an entry is; places below 0 count from the end."""
    at = index + (len(array) if index < 0 else 0)  # signed
    if at < 0 or at >= len(array):
        raise IndexError("index is out of bounds")
    return at


@kernel(**INLINE)
def atomic_add(array, index, value):
    """Add to an entry; return what it was."""
    return compiled.atomic_add(array, place(array, index), value)


@kernel(**INLINE)
def atomic_min(array, index, value):
    """Lower an entry to a value that is less; return what it was."""
    at = place(array, index)
    old = array[at]
    return compiled.atomic_min(array, at, value) if value < old else old


@kernel(**INLINE)
def atomic_max(array, index, value):
    """Raise an entry to a value that is more; return what it was."""
    at = place(array, index)
    old = array[at]
    return compiled.atomic_max(array, at, value) if value > old else old


def visit_arcs(functor, arguments, rows, frontier, balanced, returns):
    """Call a functor for the arcs of a frontier; return what `advance` does."""
    before = np.zeros(len(frontier) + 1, np.int64)
    if balanced or returns == "all":
        np.cumsum(rows.ends[frontier] - rows.begins[frontier], out=before[1:])
    out = np.full(before[-1] if returns == "all" else 0, EMPTY, np.uint32)
    marks = np.zeros(rows.n_vertices if returns == "unique" else 0, np.bool_)
    many = before[-1] > SERIAL_ARCS or (not balanced and len(frontier) > ROWS)
    threads = parallel.default_threads() if many else 1
    _run(
        functor, "over_arcs" if balanced else "over_rows", threads, arrays(rows), frontier, before,
        np.zeros(1, np.int64), arguments, out, marks,
    )  # fmt: skip
    if returns == "unique":
        return np.flatnonzero(marks).astype(np.uint32)
    return out[out != EMPTY] if returns else None


def sum_arcs(functor, arguments, rows, frontier, *, whole):
    """Return the sums of what a functor returns for the arcs of each item of a frontier."""
    sums, counter = np.empty(len(frontier)), np.zeros(1, np.int64)
    threads = parallel.default_threads() if len(frontier) > ROWS else 1
    parts = np.empty((threads, PARTS))
    _run(functor, "over_sums", threads, arrays(rows), frontier, counter, arguments, parts, sums)
    return sums


def keep_items(functor, arguments, frontier):
    """Return whether a functor keeps each item of a frontier."""
    kept = np.empty(len(frontier), np.bool_)
    threads = parallel.default_threads() if len(frontier) > SERIAL_ARCS else 1
    _run(functor, "over_items", threads, frontier, np.zeros(1, np.int64), arguments, kept)
    return kept


def visit_common(functor, arguments, rows, pairs):
    """Count the common neighbours of pairs, and call a functor for each of them."""
    counts, counter = np.zeros(len(pairs), np.int64), np.zeros(1, np.int64)
    threads = parallel.default_threads() if len(pairs) > ROWS else 1
    _run(functor, "over_pairs", threads, arrays(rows), pairs, counter, arguments, counts)
    return counts


def _run(functor, name, threads, *given):
    """Run a kernel; turn what the compiler and the functor raise into one line."""
    if functor.source is not None:
        raise functor.refused("it is CUDA C++, and the arrays are NumPy's")
    compiled = _kernels(functor)[name]
    try:
        parallel.run(compiled, threads, *given)
    except MemoryError:
        raise
    except NumbaError as error:
        raise functor.refused(line_of(error)) from None
    except Exception as error:
        words = " ".join([type(error).__name__ + ":", *str(error).split()])
        raise functor.failed(f"raises {words.rstrip(':')}") from None


def line_of(error):
    """Return what Numba has to say in one line: a reason, an unknown call, or how it begins."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    begun = [line for line in lines if not line.startswith("Failed in")]
    reasons = [line.split("Error: ")[1] for line in begun if "Error: " in line]
    calls = [f"{line[4:]} is unknown to it" for line in lines if line.startswith(">>> ")]
    reasons = [reason for reason in reasons if not reason.startswith("Failed in")]
    return [*reasons, *calls, *begun, type(error).__name__][0]


@inlined
def ends_of(rows, u, arc):
    """Return what a functor is given of an arc: its ends, weight and place."""
    w = np.int64(rows[3][arc]) if len(rows[3]) > 0 else np.int64(1)
    return np.int64(u), np.int64(rows[2][arc]), w, np.int64(arc)


class Inferred(NamedTuple):
    """A functor that Numba has compiled: whether it answers, and the types of its names."""

    call: Any
    answers: bool
    names: Mapping[str, set[str]]


@lru_cache(KEPT)
def inferred(functor):
    """Return what Numba makes of a functor, or refuse it."""
    checked: Any = njit(boundscheck=True, **INLINE)  # type: ignore[call-overload]
    call = checked(functor.function)
    numbers = [getattr(types, "boolean" if kind == "bool" else kind) for kind, _ in functor.kinds]
    given = [
        types.Array(number, 1, "C") if is_array else number
        for number, (_, is_array) in zip(numbers, functor.kinds, strict=True)
    ]
    kinds = (*(types.int64 for _ in functor.leading), *given)
    try:
        call.compile(kinds)
    except MemoryError:
        raise
    except Exception as error:  # Numba raises what it likes
        raise functor.refused(line_of(error)) from None
    overload = call.overloads[kinds]
    found = overload.signature.return_type
    if not isinstance(found, (types.NoneType, *ANSWERS)):
        raise functor.refused(f"it returns {found}; return a number, or nothing")
    names: dict[str, set[str]] = {}
    for name, kind in overload.type_annotation.typemap.items():
        first = name.split(".")[0]
        if first in functor.function.__code__.co_varnames and not isinstance(kind, types.Array):
            names.setdefault(first, set()).add(str(types.unliteral(kind)))
    return Inferred(call, not isinstance(found, types.NoneType), names)


@lru_cache(KEPT)
def _kernels(functor):
    """Return the kernels that call a functor, by name."""
    call, answers, _ = inferred(functor)
    if answers:

        @inlined
        def kept(leading, arguments):
            return call(*(leading + arguments)) != 0
    else:

        @inlined
        def kept(leading, arguments):
            call(*(leading + arguments))
            return True

    one64 = np.uint64(1)

    @inlined
    def visit(state, u, arc, k):
        rows, arguments, out, marks = state
        v = rows[2][arc]
        if kept(ends_of(rows, u, arc), arguments):
            if len(marks) > 0:
                marks[v] = True
            elif len(out) > 0:
                out[k] = v

    @inlined
    def number(state, u, arc):
        rows, arguments = state
        return np.float64(call(*(ends_of(rows, u, arc) + arguments)))

    @released
    def over_arcs(t, threads, rows, frontier, before, counter, arguments, out, marks):
        advance(rows, frontier, before, counter, visit, (rows, arguments, out, marks))

    @released
    def over_rows(t, threads, rows, frontier, before, counter, arguments, out, marks):
        state = rows, arguments, out, marks
        low, high = claim_rows(counter, len(frontier), ROWS)
        while low < high:
            for i in range(low, high):
                u, k = frontier[i], before[i]
                piece = piece_of(rows, u)
                while piece.arc < piece.stop:
                    for arc in range(piece.arc, piece.stop):
                        visit(state, u, arc, k)
                        k += 1
                    piece = after(rows, piece)
            low, high = claim_rows(counter, len(frontier), ROWS)

    @released
    def over_sums(t, threads, rows, frontier, counter, arguments, parts, sums):
        low, high = claim_rows(counter, len(frontier), ROWS)
        while low < high:
            for i in range(low, high):
                sums[i] = sum_row(rows, frontier[i], parts[t], number, (rows, arguments))
            low, high = claim_rows(counter, len(frontier), ROWS)

    @released
    def over_items(t, threads, frontier, counter, arguments, answers):
        low, high = claim_rows(counter, len(frontier), ROWS)
        while low < high:
            for i in range(low, high):
                answers[i] = kept((np.int64(frontier[i]),), arguments)
            low, high = claim_rows(counter, len(frontier), ROWS)

    @released
    def over_pairs(t, threads, rows, pairs, counter, arguments, counts):
        targets = rows[2]
        low, high = claim_rows(counter, len(pairs), ROWS)
        while low < high:
            for p in range(low, high):
                a, b = pairs[p, 0], pairs[p, 1]
                (begin, end), (first, stop) = row(rows, a), row(rows, b)
                if end - begin > stop - first:
                    a, b = b, a
                piece, other = piece_of(rows, a), piece_of(rows, b)
                first = other.arc
                while piece.arc < piece.stop and other.arc < other.stop:
                    for arc in range(piece.arc, piece.stop):
                        c = targets[arc]
                        while other.arc < other.stop and targets[other.stop - one64] < c:
                            other = after(rows, other)
                            first = other.arc
                        last = other.stop
                        while first < last:
                            middle = (first + last) >> one64
                            if targets[middle] < c:
                                first = middle + one64
                            else:
                                last = middle
                        if first < other.stop and targets[first] == c:
                            counts[p] += 1
                            ends = np.int64(pairs[p, 0]), np.int64(pairs[p, 1])
                            kept((*ends, np.int64(c)), arguments)
                    piece = after(rows, piece)
            low, high = claim_rows(counter, len(pairs), ROWS)

    return {
        "over_arcs": over_arcs, "over_rows": over_rows, "over_sums": over_sums,
        "over_items": over_items, "over_pairs": over_pairs,
    }  # fmt: skip
