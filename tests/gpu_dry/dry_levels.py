"""Scripts of runs larger than any here: made up from levels that runs on a device had."""

import json
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from louvain_um.core.hierarchy import MoveStats
from louvain_um.core.objective import Sums
from louvain_um.gpu import preparation
from louvain_um.gpu.aggregate import kernel_arguments, limits
from louvain_um.gpu.memory import array_specs, level_room, shape
from louvain_um.gpu.memory.graph_stats import DegreeStats
from louvain_um.gpu.memory.packed import PACKED_ARCS
from louvain_um.gpu.memory.shape import SMALL
from louvain_um.gpu.move import arguments
from louvain_um.graph.graph import Graph
from louvain_um.placement.migration import pages
from louvain_um.placement.policy import auto
from tests.gpu_dry.dry_script import CommunityArcs, RangeStep, Script
from tests.paths import RESULTS

LARGE = {
    ("rmat24", "leiden"): [
        (0, 16777216, 520756880, 8783530),
        (0, 10099721, 506464600, 7920514),
        (0, 8626039, 402116220, 7912237),
        (0, 8008054, 58914674, 7911091),
        (0, 7913116, 973872, 7910974),
        (0, 7911075, 9028, 7910961),
        (1, 16777216, 520756880, 7910961),
        (1, 9791656, 505430294, 7910955),
        (1, 8553119, 371713510, 7910951),
        (1, 7963845, 31854510, 7910951),
        (2, 16777216, 520756880, 7910951),
        (2, 9783385, 505426390, 7910950),
        (2, 8548557, 368221628, 7910948),
        (2, 7963613, 32722896, 7910948),
    ],
    ("road", "louvain"): [
        (0, 37027225, 100706080, 16511787),
        (0, 16511787, 53348446, 6098082),
        (0, 6098082, 22032240, 2175291),
        (0, 2175291, 7894522, 912333),
        (0, 912333, 2398208, 559206),
        (0, 559206, 556660, 478593),
        (1, 37027225, 100706080, 464315),
    ],
    ("road", "leiden"): [
        (0, 37027225, 100706080, 16511787),
        (0, 19016097, 59625960, 6400000),
        (0, 8535680, 29399530, 2500000),
        (0, 3797273, 13755896, 1100000),
        (0, 1791669, 6204878, 700000),
        (0, 975039, 2656624, 464331),
        (1, 37027225, 100706080, 464331),
        (1, 16129397, 52171500, 464331),
        (2, 37027225, 100706080, 464331),
    ],
}
"""Cycle, vertices, arcs and communities of levels, measured too but for some communities."""

UNEVEN = {"rmat": 0.9, "lfr": 0.3, "stencil": 0.1, "road": 0.1}
"""Exponent of the arcs of communities by rank."""

MAX_DEGREE = {"rmat": 0.02, "lfr": 0.0, "stencil": 0.0, "road": 0.0}
MIN_MAX_DEGREE = {"rmat": 3000, "lfr": 4000, "stencil": 26, "road": 4}
"""Largest degree: a share of the vertices, at least so many."""

SKEW = {"rmat": 80.0, "lfr": 8.0, "stencil": 1.0, "road": 1.0}

MEAN_WEIGHT = 500
"""Mean weight of an arc where arcs have weights."""

ISOLATED = {"rmat": 0.42, "lfr": 0.0, "stencil": 0.0, "road": 0.0}
"""Share of the vertices that have no arcs, and stay as they are on every level."""


@dataclass
class Guess:
    """One aggregation with known sizes and made-up rows."""

    vertices: int
    arcs: int
    communities: int
    kept: int
    inside: int
    total: int
    uneven: float
    isolated: int = 0
    squares: int = 0
    joined: float = 0.0

    @property
    def max_degree(self):
        """Largest degree of the next level."""
        k = self.communities - self.isolated
        return int(min(k - 1, self.rows.outer.max(initial=0)))

    @cached_property
    def rows(self):
        """Arcs of each community; at most one is left for each other community."""
        k = self.communities
        rank = np.random.default_rng(0).permutation(k) + 1.0
        filled = k - self.isolated
        arcs = spread(np.where(rank > filled, 0.0, rank**-self.uneven), self.arcs)
        room = np.minimum(arcs, max(filled - 1, 0))
        outer = np.minimum(spread(room, self.kept), room)
        return CommunityArcs(arcs, outer, np.minimum(outer + 1, arcs))

    def part(self, first, last):
        """Return a range's rows, with as many pairs as its arcs would join at random."""
        count = min(last - first, self.communities)
        arcs = self.arcs * (last - first) // self.vertices
        names, even = np.arange(count), np.ones(count)
        sizes = spread(even, int(self.hit(arcs)))
        return RangeStep(
            names, CommunityArcs(spread(even, arcs), sizes, sizes), int(self.hit(arcs))
        )

    def hit(self, arcs):
        """Return how many pairs of communities so many random arcs join."""
        whole = self.kept + self.communities
        return min(arcs, whole * -np.expm1(-arcs / whole))

    def append(self, part):
        self.joined += part.pairs

    def merged(self):
        even = np.ones(self.communities)
        return CommunityArcs(
            spread(even, int(self.joined)),
            self.rows.outer,
            spread(even, int(self.hit(self.joined))),
        )

    def merge(self):
        self.joined = self.hit(self.joined)

    def forget(self):
        self.__dict__.pop("rows", None)


def spread(weights, total):
    """Return whole numbers of so much together, in proportion to weights."""
    ends = np.cumsum(weights, dtype=np.float64)
    return np.diff(np.floor(ends * (total / max(ends[-1], 1))), prepend=0).astype(np.int64)


def levels_of(name, method):
    if (name, method) in LARGE:
        names = ("cycle", "vertices", "arcs", "communities")
        return [dict(zip(names, level, strict=True)) for level in LARGE[name, method]]
    results = json.loads((RESULTS / "gpu_detect_h200.json").read_text())["results"]
    run = next(r for r in results if (r["graph"], r["method"]) == (name, method))
    # The level after a cycle's last one moved, too, and was dropped for what it gained.
    tried = {(p["cycle"], p["level"]): p["arcs"] for p in run["phases"] if p["phase"] == "move"}
    levels = list[dict[str, int]]()
    for level in run["levels"]:
        number = sum(before["cycle"] == level["cycle"] for before in levels)
        left = tried.get((level["cycle"], number + 1))
        levels.append(level | ({} if left is None else {"left": left}))
    return levels


def made_up(name, method, shrink=1):
    """Return a graph of the sizes of one measured, or that much smaller, and its script."""
    kind = name.rstrip("0123456789")
    levels = [
        {
            k: max(1, int(lev[k]) // shrink)
            for k in ("vertices", "arcs", "communities", "left")
            if k in lev
        }
        | {"cycle": lev["cycle"]}
        for lev in levels_of(name, method)
    ]
    n, arcs = levels[0]["vertices"], levels[0]["arcs"]
    max_degree = max(int(MAX_DEGREE[kind] * n), MIN_MAX_DEGREE[kind])
    degrees = DegreeStats(max_degree, int(SKEW[kind] * arcs * arcs / n), int(ISOLATED[kind] * n))
    return made_of(levels, method, degrees, UNEVEN[kind])


def scale(monkeypatch, shrink):
    """Make pages, chunks and queues so many times smaller, for graphs that are."""
    page = pages.LEAST_PAGE // shrink
    for module in (pages, auto):
        monkeypatch.setattr(module, "LEAST_PAGE", page)
    monkeypatch.setattr(pages, "MOST_PAGE", pages.MOST_PAGE // shrink)
    for module in (array_specs, shape, level_room):
        monkeypatch.setattr(module, "SMALL", SMALL // shrink)
    least, chunk = limits.LIMITS.small // shrink, limits.LIMITS.chunk // shrink
    for module in (preparation, shape, level_room):
        smaller = replace(limits.LIMITS, small=least, chunk=chunk)
        monkeypatch.setattr(module, "LIMITS", smaller)
    low = replace(limits.LOW_SCRATCH, chunk=limits.LOW_SCRATCH.chunk // shrink)
    monkeypatch.setattr(limits, "LOW_SCRATCH", low)
    monkeypatch.setattr(limits, "REFINED_CHUNK", limits.REFINED_CHUNK // shrink)
    monkeypatch.setattr(kernel_arguments, "LEAST_ROWS", kernel_arguments.LEAST_ROWS // shrink)
    for name in ("QUEUE_BLOCK", "MOST_QUEUED"):
        monkeypatch.setattr(arguments, name, getattr(arguments, name) // shrink)


def recorded_kinds():
    record = json.loads((RESULTS / "graph_kinds_h200.json").read_text())
    found = record["results"]
    return found


def kind_run(kind, method, shrink):
    """Return a kind of graph with so many times fewer vertices and arcs, and its script."""
    wanted = kind, method, None
    run = next(r for r in recorded_kinds() if (r["kind"], r["method"], r["budget"]) == wanted)
    levels = [
        {
            "cycle": cycle,
            "vertices": max(1, vertices // shrink),
            "arcs": max(1, arcs // shrink),
            "visited": visited // shrink,
            "communities": max(1, communities // shrink),
        }
        for cycle, vertices, arcs, _, _, visited, communities in run["levels"]
    ]
    known, n, arcs = run["shape"], levels[0]["vertices"], levels[0]["arcs"]
    degrees = DegreeStats(
        max(1, known["max_degree"] // shrink if known["hub_arcs"] else known["max_degree"]),
        int(known["skew"] * arcs * arcs / n),
        known["isolated"] // shrink,
        known["hub_arcs"] // shrink,
        known["clustering"],
        weights16=(weighted := bool(known["weight_bytes"])),
    )
    return made_of(levels, method, degrees, 0.9 if known["skew"] > 10 else 0.3, weighted=weighted)


def made_of(levels, method, degrees, uneven, *, weighted=False):
    """Return a graph of the sizes of a run's levels, and the script of the run."""
    n, arcs = levels[0]["vertices"], levels[0]["arcs"]
    total = arcs * (MEAN_WEIGHT if weighted else 1)
    script = Script(n, max_degree=degrees.max_degree, communities=levels[-1]["communities"])
    script.survey, isolated, inside = degrees, degrees.isolated, 0
    for at, level in enumerate(levels):
        following = levels[at + 1] if at + 1 < len(levels) else None
        last = following is None or following["cycle"] > level["cycle"]
        k = level["communities"] if last else following["vertices"]
        most = min(level["arcs"] * 9 // 10, (k - isolated) * (k - isolated - 1))
        kept = level.get("left", most) if last else following["arcs"]
        inside += total // 100  # enough for another cycle
        made = (uneven, isolated)
        _add(script, level["vertices"], level["arcs"], k, kept, inside, total, *made)
        if "visited" in level:
            script.moves[-1] = replace(script.moves[-1], arcs_visited=level["visited"])
        if last:  # and one that gains nothing
            _add(script, k, kept, k, kept, 0, total, *made)
        if method == "leiden":
            script.sums.append(Sums(inside, 0, level["communities"]))
            if last:
                script.sums += [Sums(0, 0, k), Sums(inside, 0, k)]
    if len({lev["cycle"] for lev in levels}) < (2 if method == "louvain" else 3):
        _add(script, n, arcs, k, kept, 0, total, *made)
        script.sums += [Sums(0, 0, k)] if method == "leiden" else []
    ends = np.linspace(0, arcs, n + 1).astype(np.int64)
    weights = np.full(arcs, MEAN_WEIGHT, np.uint32) if weighted else None
    targets = np.zeros(arcs, np.uint32)
    targets[::PACKED_ARCS] = n - 1  # packed, they take as many bytes as any
    return Graph(ends, targets, weights, np.zeros(n, np.int64), check=False), script


def _add(script, n, arcs, k, kept, inside, total, uneven, isolated):
    script.moves.append(MoveStats(4, n, 4 * arcs, 1 << 48))
    script.steps.append(Guess(n, arcs, k, kept, inside, total, uneven, isolated))
