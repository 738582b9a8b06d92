"""The rule of the algorithm once more, slowly: plain Python, one thread, no arrays.

Written to be read beside DESIGN and `louvain_um/core/rules.py`; engines must return its labels bit
for bit. Weights and totals are integers; an arc of weight 0 is no arc. Scores are doubles, each
operation rounded on its own, which is what Python's floats do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from louvain_um import Graph
from louvain_um.core import rules


@dataclass(frozen=True)
class Net:
    """A level's graph: for each vertex its neighbours' weights, and its loop."""

    neighbours: list[dict[int, int]]
    loops: list[int]

    @property
    def vertices(self) -> range:
        return range(len(self.loops))

    def degree(self, v: int) -> int:
        return sum(self.neighbours[v].values()) + 2 * self.loops[v]


@dataclass(frozen=True)
class OracleLevel:
    cycle: int
    vertices: int
    communities: int
    modularity: float
    iterations: int
    arcs_visited: int


def net_of(graph: Graph) -> Net:
    neighbours = []
    for v in range(graph.n_vertices):
        row = slice(int(graph.offsets[v]), int(graph.offsets[v + 1]))
        targets = graph.targets[row].tolist()
        weights = [1] * len(targets) if graph.weights is None else graph.weights[row].tolist()
        pairs = zip(targets, weights, strict=True)
        neighbours.append({target: weight for target, weight in pairs if weight > 0})
    return Net(neighbours, graph.loops.tolist())


def detect(
    graph: Graph,
    method: str,
    *,
    resolution: float = 1.0,
    threshold: float = 1e-7,
    max_level: int | None = None,
    seed: int = 0,
) -> tuple[list[int], list[OracleLevel]]:
    """Return labels numbered by size, and what each level did."""
    net = net_of(graph)
    total = sum(net.degree(v) for v in net.vertices)
    found = list(net.vertices)
    levels: list[OracleLevel] = []
    if total == 0:
        return number_by_size(found), levels
    best = modularity(net, found, total, resolution)
    start = found
    for cycle in range(rules.CYCLES[method]):
        before = best
        level, reached, path = net, start, []
        while max_level is None or len(levels) < max_level:
            alone = method == "louvain" if path else cycle == 0
            labels, iterations, visited, gain = move(
                level, reached, total, resolution, seed, cycle, len(path), alone
            )
            if levels and rules.as_modularity(gain) <= threshold * rules.min_gain_factor(
                cycle, len(path)
            ):
                break
            parts = labels
            if method == "leiden":
                parts = refine(level, labels, total, resolution, seed, cycle)
            coarse, numbers, carried = aggregate(level, labels, parts)
            value = modularity(coarse, carried, total, resolution)
            gained = value - best
            if gained <= 0:
                break
            best = value
            path.append(numbers)
            levels.append(
                OracleLevel(cycle, len(level.loops), len(set(carried)), value, iterations, visited)
            )
            level, reached = coarse, carried
            if gained <= threshold:
                break
        if not path:
            break
        if method == "leiden":
            reached = split(level, reached)
            best = modularity(level, reached, total, resolution)
            levels[-1] = replace(levels[-1], modularity=best, communities=len(set(reached)))
        found = reached
        for numbers in reversed(path):
            found = [found[number] for number in numbers]
        start = found
        if best - before <= threshold or (max_level is not None and len(levels) >= max_level):
            break
    return number_by_size(found), levels


def move(
    net: Net,
    start: list[int],
    total: int,
    resolution: float,
    seed: int,
    cycle: int,
    number: int,
    alone: bool,
) -> tuple[list[int], int, int, int]:
    """Sweep until the gain dries up; return labels, sweeps, arcs visited and all gains."""
    labels = list(start)
    degrees = [net.degree(v) for v in net.vertices]
    totals, sizes = [0] * len(labels), [0] * len(labels)
    for v in net.vertices:
        totals[labels[v]] += degrees[v]
        sizes[labels[v]] += 1
    active = set(net.vertices)
    rate = resolution / total
    visited, gains, before = 0, 0, 0
    for iteration in range(rules.MAX_ITERATIONS):
        salt = rules.salt(cycle, iteration, seed)
        queue = sorted(active)
        visited += sum(len(net.neighbours[v]) for v in queue)
        moves, gain = 0, 0
        for sub_round in range(rules.SUB_ROUNDS):
            moved = {}
            for v in queue:
                if rules.bucket(v, salt) != sub_round:
                    continue
                active.discard(v)
                if not net.neighbours[v]:
                    continue
                own = labels[v]
                weights = {own: 0}
                for u, weight in net.neighbours[v].items():
                    weights[labels[u]] = weights.get(labels[u], 0) + weight
                pull = rate * float(degrees[v])
                scores = {
                    c: float(weight) - pull * float(totals[c] - degrees[v] * (c == own))
                    for c, weight in weights.items()
                }
                stay = scores.pop(own)
                if not scores:
                    continue
                goal = min(scores, key=lambda c: (-scores[c], *tie(c, seed)))
                if scores[goal] <= stay or (sizes[own] == 1 == sizes[goal] and goal > own):
                    continue
                moved[v] = goal
                gain += round((scores[goal] - stay) / float(total) * 2.0**rules.GAIN_BITS)
            for v, goal in moved.items():
                totals[labels[v]] -= degrees[v]
                sizes[labels[v]] -= 1
                totals[goal] += degrees[v]
                sizes[goal] += 1
                labels[v] = goal
            for v in moved:
                active.update(u for u in net.neighbours[v] if labels[u] != labels[v])
            moves += len(moved)
        gains += gain
        if not rules.prunes(alone, iteration):
            active = set(net.vertices)
        if moves == 0 or rules.is_last_sweep(number, iteration, gain, before):
            break
        before = gain
    return labels, iteration + 1, visited, gains


def tie(community: int, seed: int) -> tuple[int, int]:
    """Return what orders communities of equal score."""
    return rules.mix32(community ^ seed), community


def refine(
    net: Net, labels: list[int], total: int, resolution: float, seed: int, cycle: int
) -> list[int]:
    """Return sub-communities: lone vertices have joined others of their community."""
    rate = resolution / total
    degrees = [net.degree(v) for v in net.vertices]
    totals: dict[int, int] = {}
    for v in net.vertices:
        totals[labels[v]] = totals.get(labels[v], 0) + degrees[v]
    subs = list(net.vertices)
    sub_totals, sub_sizes = list(degrees), [1] * len(subs)
    cuts = [
        sum(weight for u, weight in net.neighbours[v].items() if labels[u] == labels[v])
        for v in net.vertices
    ]
    salt = rules.salt(cycle, rules.REFINE_SWEEP, seed)

    def well_connected(sub: int) -> bool:
        rest = totals[labels[sub]] - sub_totals[sub]
        return float(cuts[sub]) >= (rate * float(sub_totals[sub])) * float(rest)

    for sub_round in range(rules.SUB_ROUNDS):
        moved = {}
        for v in net.vertices:
            alone = subs[v] == v and sub_sizes[v] == 1
            if rules.bucket(v, salt) != sub_round or not alone or not well_connected(v):
                continue
            ties: dict[int, int] = {}
            for u, weight in net.neighbours[v].items():
                if labels[u] == labels[v]:
                    ties[subs[u]] = ties.get(subs[u], 0) + weight
            pull = rate * float(degrees[v])
            scores = {}
            for sub, weight in ties.items():
                score = float(weight) - pull * float(sub_totals[sub])
                may_leave = sub_sizes[sub] == 1 and rules.bucket(sub, salt) == sub_round
                if score > 0.0 and not may_leave and well_connected(sub):
                    scores[sub] = score
            if scores:
                goal = min(scores, key=lambda sub: (-scores[sub], *tie(sub, seed)))
                moved[v] = (goal, ties[goal])
        for v, (goal, weight) in moved.items():
            subs[v] = goal
            sub_sizes[v] = 0
            sub_totals[goal] += degrees[v]
            sub_sizes[goal] += 1
            cuts[goal] += cuts[v] - 2 * weight
    return subs


def aggregate(net: Net, labels: list[int], parts: list[int]) -> tuple[Net, list[int], list[int]]:
    """Make each part a vertex, numbered in the order of the parts' labels.

    Returns the new graph, each old vertex's number, and each new vertex's community: the
    smallest number among the parts of its old community.
    """
    rank = {part: number for number, part in enumerate(sorted(set(parts)))}
    numbers = [rank[part] for part in parts]
    neighbours: list[dict[int, int]] = [{} for _ in rank]
    loops = [0] * len(rank)
    first: dict[int, int] = {}
    for v in net.vertices:
        a = numbers[v]
        first[labels[v]] = min(first.get(labels[v], a), a)
        loops[a] += net.loops[v]
        for u, weight in net.neighbours[v].items():
            b = numbers[u]
            if a != b:
                neighbours[a][b] = neighbours[a].get(b, 0) + weight
            elif u < v:
                loops[a] += weight
    carried = [0] * len(rank)
    for v in net.vertices:
        carried[numbers[v]] = first[labels[v]]
    return Net(neighbours, loops), numbers, carried


def split(net: Net, labels: list[int]) -> list[int]:
    """Make every connected part of a community one of its own, named by its smallest vertex."""
    parts = [-1] * len(labels)
    for root in net.vertices:
        if parts[root] >= 0:
            continue
        parts[root] = root
        stack = [root]
        while stack:
            v = stack.pop()
            for u in net.neighbours[v]:
                if parts[u] < 0 and labels[u] == labels[v]:
                    parts[u] = root
                    stack.append(u)
    return parts


def modularity(net: Net, labels: list[int], total: int, resolution: float) -> float:
    inside, totals = 0, dict.fromkeys(labels, 0)
    for v in net.vertices:
        totals[labels[v]] += net.degree(v)
        inside += 2 * net.loops[v]
        inside += sum(w for u, w in net.neighbours[v].items() if labels[u] == labels[v])
    squares = sum(value * value for value in totals.values())
    return inside / total - resolution * (squares / (total * total))


def number_by_size(labels: list[int]) -> list[int]:
    """Number communities by descending size, ties by their smallest member."""
    members: dict[int, list[int]] = {}
    for v, label in enumerate(labels):
        members.setdefault(label, []).append(v)
    order = sorted(members, key=lambda label: (-len(members[label]), members[label][0]))
    rank = {label: k for k, label in enumerate(order)}
    return [rank[label] for label in labels]
