"""Functors as users write them, with arguments, for the CPU, the emulator and devices."""

import math
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from louvain_um.algorithms.operators import atomic_add, atomic_max, atomic_min

LIMIT = 3
HALF = np.float64(0.5)


def shortest(u, v, w, arc, x, least):
    return atomic_min(least, v, x[u] + w) > x[u] + w


def gathered(u, v, w, arc, x, sums):
    atomic_add(sums, v, x[u] * w - arc % 7)


def highest(u, v, w, arc, x, most):
    return atomic_max(most, v, x[u] % 100 - LIMIT) < 50


def least_real(u, v, w, arc, y, least):
    atomic_min(least, v, y[u] * HALF - w / 3)


def most_short(u, v, w, arc, z, most):
    if z[u] > z[v]:
        atomic_max(most, v, z[u] * z[v])


def counted(u, v, w, arc, x, sums):
    """Loops, conditions, and what ends them."""
    total = 0
    for i in range(u % 5):
        if i == LIMIT:
            break
        total += i * v
    for i in range(2, 6):
        if i % 2 == 0 or x[u] < 0:
            continue
        total -= i
    while total > 10:
        total //= 2
    if not total:
        pass
    elif total > 5 and x[v] > 0:
        total = -total
    else:
        total = total | 1
    atomic_add(sums, v, total)
    return 0 < total <= 9


def widened(u, v, w, arc, x, sums, scale):
    """A name that begins as an integer and ends as a float, and parameters that change."""
    total, big = 0, 1
    for _ in range(3):
        big = big * 2
        total = total + big * 0.25
    w = min(w, 4, x[u] % 10)
    u = u - w
    atomic_add(sums, v, int(total * scale) + u - abs(-w) + len(x))


def chosen(u, v, w, arc, x, y, out):
    out[u] += (x[v] if x[v] > x[u] else y[v]) + max(y[u], 0.5) + math.sqrt(float(w))


def marked(u, v, w, arc, x, seen):
    larger = x[v] > x[u] and u != v
    if larger:
        seen[v] = True
    return larger


def product(u, v, w, arc, y, out):
    out[u] += w * y[v]


def short_product(u, v, w, arc, z, out):
    out[u] += z[v] * z[u] + w


def named(u, v, w, arc, q, least, most):
    """Entries of uint32 as places, values and names."""
    name = q[u]
    if name < q[v] or q[name] == v:
        atomic_max(most, v, name)
    return atomic_min(least, q[name], name) > name and q[u] + w > 3


def beyond(v, x, small, large, low, high):
    """Values that the types of these arrays cannot hold."""
    atomic_max(small, v, x[v])
    atomic_max(large, v, x[v])
    atomic_min(low, v, x[v])
    atomic_min(high, v, x[v])


def signed_term(u, v, w, arc, x, y):
    return x[u] - w if x[v] > 3 else x[v] * 7


def mixed_term(u, v, w, arc, y, z):
    if v % 3:
        return y[v] * w
    return z[u]


TERMS = [
    (lambda u, v, w, arc, x, y: w * y[v], "xy"),
    (signed_term, "xy"),
    (mixed_term, "yz"),
    (lambda u, v, w, arc, q, x: q[v] > x[u], "qx"),
    (lambda u, v, w, arc, q, x: q[v], "qx"),
]
"""Functors whose answers are added up, and their arguments."""


class Case(NamedTuple):
    """A functor of arcs, what its arguments hold, and whether threads may share a vertex's arcs."""

    function: Any
    arguments: str
    balanced: bool = True


CASES = [
    Case(shortest, "xL"), Case(gathered, "xS"), Case(highest, "xi"), Case(least_real, "yF"),
    Case(most_short, "zf"), Case(counted, "xS"), Case(widened, "xS2"), Case(chosen, "xyF", False),
    Case(marked, "xb"), Case(named, "qNM"), Case(product, "yF", False),
    Case(short_product, "zf", False),
]  # fmt: skip


ORDERED = (shortest, highest, named)
"""What these answer depends on the order of the arcs; what they leave in arrays does not."""


def arguments_of(case, n, xp=np):
    """Return a case's arguments for a graph of n vertices, the same in every call."""
    rng = np.random.default_rng(n)
    made = {
        "x": rng.integers(-9, 99, n),
        "y": rng.integers(-40, 40, n) / 8,
        "z": (rng.integers(-40, 40, n) / 8).astype(np.float32),
        "L": np.full(n, 60),
        "S": np.zeros(n, np.int64),
        "F": np.zeros(n),
        "f": np.zeros(n, np.float32),
        "i": np.full(n, -50, np.int32),
        "b": np.zeros(n, bool),
        "q": rng.integers(0, n, n).astype(np.uint32),
        "N": np.full(n, 2**32 - 1, np.uint32),
        "M": np.zeros(n, np.uint32),
    }
    return [2.5 if name == "2" else xp.asarray(made[name]) for name in case.arguments]


def summed(graph, frontier, function, arguments):
    """Return what `advance` adds up, in plain Python: 32 parts, which are added in a tree."""
    found = []
    for u in range(graph.n_vertices) if frontier is None else frontier:
        parts = np.zeros(32)
        for k, arc in enumerate(range(int(graph.offsets[u]), int(graph.offsets[u + 1]))):
            w = 1 if graph.weights is None else int(graph.weights[arc])
            parts[k % 32] += float(function(int(u), int(graph.targets[arc]), w, arc, *arguments))
        while len(parts) > 1:
            parts = parts[: len(parts) // 2] + parts[len(parts) // 2 :]
        found.append(parts[0])
    return np.array(found)


def beyond_arguments(n, xp=np):
    """Return values, and arrays that cannot hold them all."""
    rng = np.random.default_rng(n)
    pool = np.array([-(2**40), -(2**31) - 1, -7, -1, 0, 3, 2**31 + 5, 2**32 - 1, 2**32 + 3])
    x, old = rng.choice(pool, n), rng.integers(0, 9, n)
    kinds = np.int64, np.uint32, np.int32, np.uint32, np.int32
    return [xp.asarray(a.astype(kind)) for a, kind in zip((x, *4 * [old]), kinds, strict=True)]


def arithmetic(v, x, y, out):
    """Every operation on integers."""
    k, a, b = 20 * v, x[v], y[v]
    out[k] = a + b
    out[k + 1] = a - b
    out[k + 2] = a * b
    out[k + 3] = a // b
    out[k + 4] = a % b
    out[k + 5] = a & b
    out[k + 6] = a | b
    out[k + 7] = a ^ b
    out[k + 8] = -a
    out[k + 9] = abs(a)
    out[k + 10] = min(a, b, 4)
    out[k + 11] = max(a, b)
    out[k + 12] = (a == b) + (a != 4) + (a < b) + (a <= b) + (a > b) + (a >= b)
    out[k + 13] = a if a < b <= 40 else -b
    out[k + 14] = not a
    out[k + 15] = int((a > 3 and b > 3) or not a)
    out[k + 16] = int(float(a % 1000) / 7.0)
    out[-1 - (k + 2)] = (a > b) & (b > 0)
    out[k + 18] = True + a
    out[k + 19] = 9223372036854775807 + b


def unsigned_arithmetic(v, q, x, out):
    """Operations on uint32, alone and with integers."""
    k, a, b = 20 * v, q[v], q[v - 1]
    out[k] = a + b
    out[k + 1] = a - b
    out[k + 2] = a * b
    out[k + 3] = (a - b) // max(b, 3)
    out[k + 4] = a % max(b, 5)
    out[k + 5] = a & b | 5 ^ a
    out[k + 6] = -a
    out[k + 7] = a - x[v]
    out[k + 8] = (a - b) - x[v]
    out[k + 9] = (a < b) + (a - b > 7) + (a == x[v])
    out[k + 10] = (a - b) % 7
    out[k + 11] = int(a) - int(b)
    out[k + 12] = a / max(b, 1) > 1.5
    out[k + 13] = a if a > b else x[v]
    out[k + 14] = True + a
    out[k + 15] = q[q[v] % len(q)]
    total = a
    for i in range(a % 4):
        total = total + i
    out[k + 16] = total


def real_arithmetic(v, x, y, z, out, short):
    """Operations on floats of both sizes, with integers and truth values."""
    k = 8 * v
    out[k] = x[v] / y[v] + y[v]
    out[k + 1] = y[v] * z[v] - x[v]
    out[k + 2] = min(y[v], z[v], x[v])
    out[k + 3] = max(z[v], x[v])
    out[k + 4] = abs(-y[v]) + math.sqrt(abs(z[v]))
    out[k + 5] = z[v] if z[v] > y[v] else x[v]
    out[k + 6] = math.inf if x[v] > 3 else -math.inf
    out[k + 7] = -y[v] + (z[v] == y[v])
    short[v] = z[v] * z[v] + z[v] / LIMIT - bool(z[v])


def python(function):
    """Return a functor whose atomics are plain Python."""

    def add(array, i, value):
        array[i], old = array[i] + value, array[i]
        return old

    def lower(array, i, value):
        array[i], old = min(array[i], array.dtype.type(value)), array[i]
        return old

    def higher(array, i, value):
        array[i], old = max(array[i], array.dtype.type(value)), array[i]
        return old

    plain = {"atomic_add": add, "atomic_min": lower, "atomic_max": higher}
    return FunctionType(
        function.__code__, {**function.__globals__, **plain}, closure=function.__closure__
    )


def advanced(graph, frontier, function, arguments):
    """Return what `advance` does, in plain Python: all targets that are kept, arc by arc."""
    kept, answers = [], False
    for u in range(graph.n_vertices) if frontier is None else frontier:
        for arc in range(int(graph.offsets[u]), int(graph.offsets[u + 1])):
            v = int(graph.targets[arc])
            w = 1 if graph.weights is None else int(graph.weights[arc])
            answer = python(function)(int(u), v, w, arc, *arguments)
            answers |= answer is not None
            if answer or answer is None:
                kept.append(v)
    return kept
