"""Kinds of graph for `graph_kinds.py`, made of whole arrays: on a device with CuPy, or with NumPy.

A kind is a function of the array module, a generator of random numbers and the number of arcs
wanted. It returns the vertices and the ends of edges; loops and repeated edges are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

Edges = tuple[int, Any, Any]
"""Vertices, and both ends of each edge."""

Make = Callable[[Any, Any, int], Edges]


def random(xp: Any, rng: Any, arcs: int, degree: int = 32) -> Edges:
    """Both ends uniform; no communities."""
    n, m = arcs // degree, arcs // 2
    return n, rng.integers(0, n, m), rng.integers(0, n, m)


def random_regular(xp: Any, rng: Any, arcs: int, each: int = 16) -> Edges:
    """Random permutations, sixteen by default."""
    n = arcs // (2 * each)
    ends = [_permutation(xp, rng, n) for _ in range(each)]
    return n, xp.tile(xp.arange(n), each), xp.concatenate(ends)


def preferential(xp: Any, rng: Any, arcs: int, each: int = 16) -> Edges:
    """Barabási and Albert's: an edge ends where an earlier, random one begins or ends."""
    n = arcs // (2 * each)
    m = n * each
    slot = xp.arange(m, dtype=xp.int64)
    # An even slot holds a source; an odd one copies a random earlier slot.
    choice = (rng.random(m) * (2 * slot + 1)).astype(xp.int64)
    while bool((choice % 2).any()):
        choice = xp.where(choice % 2 == 1, choice[choice // 2], choice)
    return n, slot // each, choice // (2 * each)


def holme_kim(xp: Any, rng: Any, arcs: int, each: int = 16, closed: float = 0.7) -> Edges:
    """Preferential attachment that closes triangles with the target chosen before."""
    n, u, v = preferential(xp, rng, arcs, each)
    slot = xp.arange(len(v))
    closing = (rng.random(len(v)) < closed) & (slot % each > 0)
    neighbour = v[xp.roll(v, 1) * each + rng.integers(0, each, len(v))]
    return n, u, xp.where(closing, neighbour, v)


def small_world(xp: Any, rng: Any, arcs: int, near: int = 6, far: float = 0.1) -> Edges:
    """Watts and Strogatz's ring of `near` neighbours a side; a share `far` are shortcuts."""
    n = arcs // (2 * near)
    u = xp.tile(xp.arange(n), near)
    v = (u + xp.repeat(xp.arange(1, near + 1), n)) % n
    return n, u, _rewired(xp, rng, n, v, far)


def block_model(xp: Any, rng: Any, arcs: int, size: int = 1000, inside: float = 0.65) -> Edges:
    """Degree-corrected blocks: power-law degrees, most edges within blocks of equal size."""
    n, m = arcs // 18 // size * size or size, arcs // 2
    weight = xp.cumsum((1 - rng.random(n)) ** (-1 / 1.5))
    before, whole = xp.concatenate([xp.zeros(1), weight]), weight[-1]

    def drawn(low: Any, span: Any) -> Any:
        place = rng.random(m)
        place *= span
        place += low
        return xp.minimum(xp.searchsorted(weight, place, side="right"), n - 1)

    u = drawn(0.0, whole)
    far = rng.random(m) >= inside
    low = before[u // size * size]
    span = before[u // size * size + size]
    span -= low
    low, span = xp.where(far, 0.0, low), xp.where(far, whole, span)
    return n, u, drawn(low, span)


def nested_blocks(xp: Any, rng: Any, arcs: int) -> Edges:
    """Blocks of 32 in blocks of 1,024 in blocks of 65,536."""
    n, m = arcs // 30, arcs // 2
    u, draw = rng.integers(0, n, m), rng.random(m)
    v = rng.integers(0, n, m)
    for share, size in ((0.3, 1 << 16), (0.6, 1 << 10), (0.35, 32)):
        v = xp.where(draw < share, u // size * size + v % size, v)
    return n, u, xp.minimum(v, n - 1)


def kronecker(
    xp: Any, rng: Any, arcs: int, a: float = 0.45, b: float = 0.22, degree: int = 32
) -> Edges:
    """R-MAT with flatter parameters: 0.45, 0.22, 0.22, 0.11."""
    scale, m = max(4, round(math.log2(arcs / degree))), arcs // 2
    u, v = (xp.zeros(m, xp.int64) for _ in range(2))
    for _ in range(scale):
        draw = rng.random(m)
        u = 2 * u + (draw >= a + b)
        v = 2 * v + (((draw >= a) & (draw < a + b)) | (draw >= a + 2 * b))
    ids = _permutation(xp, rng, 1 << scale)
    return 1 << scale, ids[u], ids[v]


def road(xp: Any, rng: Any, arcs: int, share: float = 0.68) -> Edges:
    """A grid of streets of which a third is missing."""
    side = int(math.sqrt(arcs / (2.7 * share / 0.68)))
    at = xp.arange(side * side)
    right, down = at[at % side < side - 1], at[: side * (side - 1)]
    u, v = xp.concatenate([right, down]), xp.concatenate([right + 1, down + side])
    there = rng.random(len(u)) < share
    return side * side, u[there], v[there]


def lattice(xp: Any, rng: Any, arcs: int) -> Edges:
    """A cube, each vertex with its six neighbours."""
    side = max(2, round((arcs / 6) ** (1 / 3)))
    at = xp.arange(side**3)
    x, y = at % side, at // side % side
    steps = ((at[x < side - 1], 1), (at[y < side - 1], side), (at[: -(side**2)], side**2))
    u = xp.concatenate([begin for begin, _ in steps])
    return side**3, u, xp.concatenate([begin + step for begin, step in steps])


def geometric(xp: Any, rng: Any, arcs: int, degree: float = 14) -> Edges:
    """Points in a square, joined within a radius."""
    n = int(arcs / degree)
    radius = math.sqrt(degree / (math.pi * n))
    cells = max(1, int(1 / radius))
    x, y = rng.random(n), rng.random(n)
    cell = (y * cells).astype(xp.int64) * cells + (x * cells).astype(xp.int64)
    order = xp.argsort(cell)
    x, y, cell = x[order], y[order], cell[order]
    begin = xp.searchsorted(cell, xp.arange(cells * cells + 1))
    column, row, ends = cell % cells, cell // cells, []
    for dx, dy in ((0, 0), (1, 0), (-1, 1), (0, 1), (1, 1)):
        inside = (column + dx >= 0) & (column + dx < cells) & (row + dy < cells)
        other = xp.where(inside, cell + dy * cells + dx, 0)
        low, high = begin[other], xp.where(inside, begin[other + 1], 0)
        for step in range(16):
            u = xp.nonzero(low + step < high)[0]
            v = low[u] + step
            near = (x[u] - x[v]) ** 2 + (y[u] - y[v]) ** 2 < radius * radius
            ends.append((u[near], v[near]))
    return n, xp.concatenate([u for u, _ in ends]), xp.concatenate([v for _, v in ends])


def nearest(xp: Any, rng: Any, arcs: int, k: int = 8) -> Edges:
    """Points in clouds on a line of cells, each joined to the nearest of the next 24."""
    n = int(arcs / (2 * k) * 1.25)
    clouds = max(1, n // 5000)
    at = xp.sort(rng.integers(0, clouds, n) + 0.3 * rng.standard_normal(n))
    side, ends = rng.random(n) / clouds * 40, []
    reach = xp.concatenate([at[2 * k :], xp.full(min(2 * k, n), at[-1])]) - at
    u = xp.arange(n)
    for step in range(1, 25):
        v = u[:-step] + step
        far = (at[v] - at[:-step]) + xp.abs(side[v] - side[:-step]) * reach[:-step] * clouds / 40
        near = far < reach[:-step]
        ends.append((u[:-step][near], v[near]))
    return n, xp.concatenate([u for u, _ in ends]), xp.concatenate([v for _, v in ends])


def hub_and_leaf(xp: Any, rng: Any, arcs: int, hubs: int = 100, share: int = 25) -> Edges:
    """A hundred hubs, each with four hundredths of all vertices as leaves, and a path."""
    n = max(2 * hubs, int(arcs / (2 * hubs / share + 2)))
    count = n // share
    ends, leaves = xp.repeat(xp.arange(hubs), count), rng.integers(0, n, hubs * count)
    path = xp.arange(n - 1)
    return n, xp.concatenate([ends, path]), xp.concatenate([leaves, path + 1])


def bipartite(
    xp: Any, rng: Any, arcs: int, tastes: int = 64, each: int = 24, per_item: int = 400,
    inside: float = 0.6,
) -> Edges:  # fmt: skip
    """Users and items: users have tastes, items are popular by rank."""
    users, items, m = arcs // each, max(tastes, arcs // per_item), arcs // 2
    u = rng.integers(0, users, m)
    taste, of_taste = u * tastes // users, items // tastes
    home = taste * of_taste + (rng.random(m) ** 2.5 * of_taste).astype(xp.int64)
    other = (rng.random(m) ** 3 * items).astype(xp.int64)
    return users + items, u, users + xp.where(rng.random(m) < inside, home, other)


def chains(xp: Any, rng: Any, arcs: int, every: int = 20) -> Edges:
    """Chains like those of a de Bruijn graph, with a branch every twenty vertices."""
    n = int(arcs / (2 * (1 + 1 / every)))
    at = xp.arange(n - 1)
    branches = rng.integers(0, n, n // every)
    joined = (branches + rng.integers(2, 100000, len(branches))) % n
    whole = at[rng.random(n - 1) < 0.998]
    return n, xp.concatenate([whole, branches]), xp.concatenate([whole + 1, joined])


def cliques(xp: Any, rng: Any, arcs: int, size: int = 24) -> Edges:
    """Cliques on a ring."""
    count = max(3, arcs // (size * (size - 1) + 2))
    base = xp.arange(count) * size
    pairs = [(i, j) for i in range(size) for j in range(i)]
    u = xp.concatenate([base + i for i, _ in pairs] + [base])
    v = xp.concatenate([base + j for _, j in pairs] + [(base + size + 1) % (count * size)])
    return count * size, u, v


def caveman(xp: Any, rng: Any, arcs: int, size: int = 30, far: float = 0.1) -> Edges:
    """Cliques on a ring, of which a share of the edges is rewired."""
    n, u, v = cliques(xp, rng, arcs, size)
    return n, u, _rewired(xp, rng, n, v, far)


def planted(
    xp: Any, rng: Any, arcs: int, size: int = 500, degree: int = 24, inside: float = 0.6
) -> Edges:
    """Groups of equal size; degrees hardly differ."""
    n, m = max(2 * size, arcs // degree // size * size), arcs // 2
    u = rng.integers(0, n, m)
    home = u // size * size + rng.integers(0, size, m)
    return n, u, xp.where(rng.random(m) < inside, home, rng.integers(0, n, m))


def affiliation(xp: Any, rng: Any, arcs: int, size: int = 12, each: int = 3) -> Edges:
    """Groups that overlap: a near one, a farther one and others at random; all members know."""
    n = arcs // (each * (size - 1))
    groups, home = n * each // size, xp.arange(n) // size
    away = (((1 - rng.random(n)) ** (-1 / 0.8) - 1) * 3).astype(xp.int64)
    joined = [xp.minimum(home % groups, groups - 1), (home + away) % groups]
    joined += [rng.integers(0, groups, n) for _ in range(each - 2)]
    groups_of, member = xp.concatenate(joined), xp.tile(xp.arange(n), each)
    order = xp.argsort(groups_of, kind="stable")
    groups_of, member, ends = groups_of[order], member[order], []
    for step in range(1, size):
        same = groups_of[step:] == groups_of[:-step]
        ends.append((member[step:][same], member[:-step][same]))
    return n, xp.concatenate([u for u, _ in ends]), xp.concatenate([v for _, v in ends])


def web(xp: Any, rng: Any, arcs: int, each: int = 8) -> Edges:
    """Hosts of power-law sizes: links to a host's first pages, to near pages, and to few others."""
    n = arcs // (2 * each)
    m = n * each
    sizes = (20 * (1 - rng.random(n // 20 + 1)) ** (-1 / 1.2)).astype(xp.int64)
    begin = xp.concatenate([xp.zeros(1, xp.int64), xp.minimum(xp.cumsum(sizes), n)])
    begin = xp.concatenate([begin[begin < n], xp.full(1, n)])
    u = xp.repeat(xp.arange(n), each)
    host = xp.searchsorted(begin, u, side="right") - 1
    low, high = begin[host], begin[host + 1]
    first = low + ((high - low) * rng.random(m) ** 3).astype(xp.int64)
    near = xp.clip(u + (rng.standard_normal(m) * 5).astype(xp.int64), low, high - 1)
    far, draw = (n * rng.random(m) ** 4).astype(xp.int64), rng.random(m)
    return n, u, xp.where(draw < 0.45, first, xp.where(draw < 0.85, near, far))


def tree(xp: Any, rng: Any, arcs: int, power: float = 1) -> Edges:
    """Each vertex joins an earlier one, the earlier the larger the power."""
    n = arcs // 2
    at = xp.arange(1, n)
    return n, at, (at * rng.random(n - 1) ** power).astype(xp.int64)


def grid(xp: Any, rng: Any, arcs: int, reach: int = 1) -> Edges:
    """A square, each vertex with all others within `reach`, diagonals too."""
    side = int(math.sqrt(arcs / ((2 * reach + 1) ** 2 - 1)))
    at, ends = xp.arange(side * side), []
    x = at % side
    for dx in range(-reach, reach + 1):
        for dy in range(reach + 1):
            if (dy, dx) > (0, 0):
                inside = (x + dx >= 0) & (x + dx < side) & (at + dy * side + dx < side * side)
                ends.append((at[inside], at[inside] + dy * side + dx))
    return side * side, xp.concatenate([u for u, _ in ends]), xp.concatenate([v for _, v in ends])


def chung_lu(xp: Any, rng: Any, arcs: int, exponent: float = 2.5, degree: int = 20) -> Edges:
    """Power-law degrees, and nothing else."""
    n, m = arcs // degree, arcs // 2
    weight = xp.cumsum((1 - rng.random(n)) ** (-1 / (exponent - 1)))
    ends = (xp.searchsorted(weight, rng.random(m) * weight[-1]) for _ in range(2))
    return n, *ends


def skewed(xp: Any, rng: Any, arcs: int, u: float = 1, v: float = 12) -> Edges:
    """Ends n·rᵉ of uniform r: with a large exponent, many vertices share few neighbours."""
    n, m = 2 * arcs // 5, arcs // 2
    ends = ((n * rng.random(m) ** exponent).astype(xp.int64) for exponent in (u, v))
    return n, *ends


KINDS: dict[str, Make] = {
    made.__name__: made
    for made in (
        random, random_regular, preferential, holme_kim, small_world, block_model, nested_blocks,
        kronecker, road, lattice, geometric, nearest, hub_and_leaf, bipartite, chains, cliques,
    )
}  # fmt: skip

SKEWED: dict[str, Make] = {
    "skewed_4": partial(skewed, v=4),
    "skewed_12": skewed,
    "skewed_20": partial(skewed, v=20),
    "skewed_both": partial(skewed, u=3, v=6),
}
"""Kinds whose giant communities many threads add to at once; nothing was fitted to them."""

OTHERS: dict[str, Make] = {
    made.__name__: made
    for made in (affiliation, caveman, chung_lu, grid, planted, skewed, tree, web)
}
"""Kinds that predictions of seconds are fitted to, too."""

GENERATED: dict[str, tuple[str, dict[str, Any]]] = {
    "lfr_mixing_2": ("lfr", {"mixing": 0.2}),
    "lfr_mixing_5": ("lfr", {"mixing": 0.5}),
    "lfr_mixing_7": ("lfr", {"mixing": 0.7}),
    "rmat": ("rmat", {}),
}
"""Kinds of the package's generators, and their options."""

ARCS_PER_VERTEX = {"lfr": 39, "rmat": 30, "stencil": 26}
"""Of graphs that the package's generators make, about."""

WEIGHTED = ("nearest", "bipartite")
"""Kinds whose edges weigh 1 … 1000."""

FITTED = (
    "random", "preferential", "small_world", "nested_blocks", "road", "geometric", "bipartite",
    "cliques", "lfr_mixing_5", "rmat",
)  # fmt: skip
"""Half of the kinds: constants may be fitted to these, and are judged on the others."""


def rows(xp: Any, n: int, u: Any, v: Any, *, weighted: bool = False) -> tuple[Any, Any, Any]:
    """Return offsets, targets and weights of a list of edges, each once, without loops."""
    keys = (xp.minimum(u, v).astype(xp.uint64) << 32) | xp.maximum(u, v).astype(xp.uint64)
    del u, v
    keys = xp.sort(keys[(keys >> 32) != (keys & 0xFFFFFFFF)])
    fresh = xp.ones(len(keys), bool)
    fresh[1:] = keys[1:] != keys[:-1]
    keys = keys[fresh]
    del fresh
    keys = xp.sort(xp.concatenate([keys, (keys << 32) | (keys >> 32)]))
    ends = xp.searchsorted(keys, xp.arange(1, n + 1).astype(xp.uint64) << 32)
    offsets = xp.concatenate([xp.zeros(1, xp.int64), ends.astype(xp.int64)])
    targets = (keys & 0xFFFFFFFF).astype(xp.uint32)
    if not weighted:
        return offsets, targets, None
    edge = xp.minimum(keys, (keys << 32) | (keys >> 32))
    mixed = (edge ^ (edge >> 29)) * 0x5851F42D4C957F2D >> 40
    return offsets, targets, (mixed % 1000 + 1).astype(xp.uint32)


def made(
    xp: Any,
    name: str,
    arcs: int,
    seed: int = 0,
    *,
    weighted: bool | None = None,
    shuffled: bool = False,
    **options: Any,
) -> Any:
    """Return a kind's graph: a `DeviceGraph` with CuPy, a `Graph` with NumPy.

    `options` are those of its function; `shuffled` numbers vertices at random.
    """
    if name in GENERATED:
        name, given = GENERATED[name]
        options = given | options
    if name in ARCS_PER_VERTEX:
        return _generated(xp, name, arcs, seed, **options)
    rng = xp.random.default_rng(seed)
    n, u, v = (KINDS | SKEWED | OTHERS)[name](xp, rng, arcs, **options)
    if shuffled:
        ids = _permutation(xp, rng, n)
        u, v = ids[u], ids[v]
    weigh = name in WEIGHTED if weighted is None else weighted
    offsets, targets, weights = rows(xp, n, u, v, weighted=weigh)
    if xp.__name__ == "numpy":
        from louvain_um.graph.graph import Graph

        return Graph(offsets, targets, weights, xp.zeros(n, xp.int64))
    from louvain_um.gpu.graph import DeviceGraph

    return DeviceGraph(offsets, targets, weights)


def _generated(
    xp: Any, name: str, arcs: int, seed: int, per_vertex: int | None = None, **options: Any
) -> Any:
    vertices = arcs / (per_vertex or ARCS_PER_VERTEX[name])
    size: Any = int(vertices)
    if name == "rmat":
        size = round(math.log2(vertices))
    elif name == "stencil":
        size = (round(vertices ** (1 / 3)),) * 3
    if xp.__name__ == "numpy":
        from louvain_um.generators import GENERATORS

        return GENERATORS[name](size, seed=seed, **options).graph
    from louvain_um.gpu.generate import generate

    return getattr(generate, name)(size, seed=seed, **options).graph


def _rewired(xp: Any, rng: Any, n: int, ends: Any, share: float) -> Any:
    return xp.where(rng.random(len(ends)) < share, rng.integers(0, n, len(ends)), ends)


def _permutation(xp: Any, rng: Any, n: int) -> Any:
    return xp.argsort(rng.random(n))
