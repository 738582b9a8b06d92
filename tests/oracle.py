"""The rule of the algorithm once more, slowly: plain Python, one thread, no arrays.

Written to be read next to DESIGN and `louvain_um/core/rules.py`; engines must return its labels bit
for bit. Weights and totals are integers; an arc of weight 0 is no arc. Scores are doubles, each
operation rounded on its own, which is what Python's floats do.
"""

from dataclasses import dataclass, replace

from louvain_um.core import rules


@dataclass(frozen=True)
class Net:
    """A level's graph: for each vertex its neighbours' weights, its loop, and what it stands for.

    Masses and second masses are those of the objective, members the vertices of the input.
    """

    neighbours: list[dict[int, int]]
    loops: list[int]
    masses: list[int]
    seconds: list[int]
    members: list[int]
    fixed: list[bool]

    @property
    def vertices(self):
        return range(len(self.loops))


@dataclass(frozen=True)
class Aim:
    """What is maximised, and under which constraints: rates of products of masses, 2m, …"""

    objective: str
    resolution: float
    total: int
    norms: tuple[int, int]
    scale: float
    vertices: int
    start: list[int] | None
    max_size: int | None
    extended: bool

    @property
    def rates(self):
        if self.objective == "cpm":
            return self.resolution * self.scale, 0.0
        first, second = (self.resolution / norm if norm else 0.0 for norm in self.norms)
        return first, second

    def expected(self, mass, total, second, second_total):
        first_rate, second_rate = self.rates
        expected = (first_rate * float(mass)) * float(total)
        if self.norms[1]:
            expected -= (second_rate * float(second)) * float(second_total)
        return expected


@dataclass(frozen=True)
class OracleLevel:
    cycle: int
    vertices: int
    communities: int
    modularity: float
    iterations: int
    arcs_visited: int


def net_of(graph, objective="modularity", fixed=()):
    neighbours = []
    n = graph.n_vertices
    for v in range(n):
        row = slice(int(graph.offsets[v]), int(graph.offsets[v + 1]))
        targets = graph.targets[row].tolist()
        weights = [1] * len(targets) if graph.weights is None else graph.weights[row].tolist()
        pairs = zip(targets, weights, strict=True)
        neighbours.append({target: weight for target, weight in pairs if weight != 0})
    loops = graph.loops.tolist()
    masses, seconds = [1] * n, [0] * n
    if objective == "signed":
        signs = []
        for sign in (1, -1):
            rows = [[max(sign * w, 0) for w in row.values()] for row in neighbours]
            signs.append(
                [sum(row) + 2 * max(sign * w, 0) for row, w in zip(rows, loops, strict=True)]
            )
        masses, seconds = signs
    elif objective != "cpm":
        masses = [sum(neighbours[v].values()) + 2 * loops[v] for v in range(n)]
    if objective in ("directed", "bipartite"):
        seconds = graph.imbalance.tolist()
    return Net(neighbours, loops, masses, seconds, [1] * n, [v in fixed for v in range(n)])


def aim_of(graph, net, objective, resolution, initial, fixed, max_size):
    start = None
    if initial is not None:
        start = [initial.index(label) for label in initial]
    weights = [w for row in net.neighbours for w in row.values()] + [2 * w for w in net.loops]
    total = sum(abs(w) for w in weights)
    given = (initial, fixed, max_size)
    norms = {"signed": (sum(net.masses), sum(net.seconds))}
    norms |= dict.fromkeys(("directed", "bipartite"), (total, total))
    return Aim(
        objective=objective,
        resolution=resolution,
        total=total,
        norms=norms.get(objective, (total, 0)),
        scale=graph.scale,
        vertices=graph.n_vertices,
        start=start,
        max_size=max_size,
        extended=objective != "modularity" or any(each is not None for each in given),
    )


def detect(
    graph,
    method,
    *,
    resolution=1.0,
    threshold=1e-7,
    max_level=None,
    effort="default",
    n_iterations=None,
    seed=0,
    objective="modularity",
    initial=None,
    fixed=None,
    max_size=None,
):
    """Return labels numbered by size, and what each level did."""
    net = net_of(graph, objective, set(fixed or ()))
    aim = aim_of(graph, net, objective, resolution, initial, fixed, max_size)
    unit = aim.total / (2 * aim.scale) if objective == "cpm" and aim.total else 1.0
    found = list(net.vertices) if aim.start is None else aim.start
    if aim.start is not None and method == "leiden":
        found = split(net, found)
    levels = []
    if aim.total == 0:
        return number_by_size(found), levels
    best = value_of(net, found, aim)
    start = found
    for cycle in range(rules.cycles(method, effort, n_iterations)):
        before = best
        level, reached, path = net, start, []
        while max_level is None or len(levels) < max_level:
            alone = method == "louvain" if path else cycle == 0 and aim.start is None
            # Communities to start from are refined even if no single vertex leaves them.
            forced = method == "leiden" and aim.start is not None and not path and cycle == 0
            labels, iterations, visited, gain = move(
                level, reached, aim, seed, cycle, len(path), alone, effort=effort
            )
            factor = 1 if n_iterations is not None else rules.min_gain_factor(cycle, len(path))
            if not forced and levels and rules.as_modularity(gain) <= threshold * factor:
                break
            parts = labels
            if method == "leiden":
                skewed = max(map(len, net.neighbours)) ** 2 > arcs_of(net)
                most = path and skewed and arcs_of(level) > rules.MOST_KEPT * arcs_of(net)
                if most or rules.keeps_whole(cycle, effort):
                    parts = split(level, labels)
                else:
                    parts = refine(level, labels, aim, seed, cycle)
            coarse, numbers, carried = aggregate(level, labels, parts)
            value = value_of(coarse, carried, aim)
            gained = (value - best) / unit
            if gained < 0 or (gained == 0 and not forced):
                break
            best = value
            path.append(numbers)
            levels.append(
                OracleLevel(cycle, len(level.loops), len(set(carried)), value, iterations, visited)
            )
            level, reached = coarse, carried
            if gained <= threshold and not forced:
                break
        if not path:
            break
        if method == "leiden":
            reached = split(level, reached)
            best = value_of(level, reached, aim)
            levels[-1] = replace(levels[-1], modularity=best, communities=len(set(reached)))
        found = reached
        for numbers in reversed(path):
            found = [found[number] for number in numbers]
        start = found
        given = aim.start is not None or n_iterations is not None
        least = threshold * rules.cycle_gain_factor(cycle, given)
        stop = (best - before) / unit <= least
        if stop or (max_level is not None and len(levels) >= max_level):
            break
    return number_by_size(found), levels


def move(
    net,
    start,
    aim,
    seed,
    cycle,
    number,
    alone,
    first=None,
    sub_rounds=rules.SUB_ROUNDS,
    effort="default",
):
    """Sweep until the gain dries up; return labels, sweeps, arcs visited and all gains.

    Only vertices of `first` decide in the first sweep; all without it.
    """
    labels = list(start)
    totals, seconds, members = ([0] * len(labels) for _ in range(3))
    sizes = [0] * len(labels)
    for v in net.vertices:
        totals[labels[v]] += net.masses[v]
        seconds[labels[v]] += net.seconds[v]
        members[labels[v]] += net.members[v]
        sizes[labels[v]] += 1
    pinned = {labels[v] for v in net.vertices if net.fixed[v]}
    active = set(net.vertices) if first is None else set(first)
    visited, gains, before = 0, 0, 0
    for iteration in range(rules.MAX_ITERATIONS):
        salt = rules.salt(cycle, iteration, seed)
        queue = sorted(active)
        visited += sum(len(net.neighbours[v]) for v in queue)
        moves, gain = 0, 0
        for sub_round in range(sub_rounds):
            moved = {}
            gained = {}
            for v in queue:
                if rules.bucket(v, salt, sub_rounds) != sub_round:
                    continue
                active.discard(v)
                if not net.neighbours[v] or net.fixed[v]:
                    continue
                own = labels[v]
                weights = {own: 0}
                for u, weight in net.neighbours[v].items():
                    weights[labels[u]] = weights.get(labels[u], 0) + weight
                mass, second = net.masses[v], net.seconds[v]
                scores = {
                    c: float(weight)
                    - aim.expected(
                        mass,
                        totals[c] - mass * (c == own),
                        second,
                        seconds[c] - second * (c == own),
                    )
                    for c, weight in weights.items()
                    if c == own
                    or aim.max_size is None
                    or members[c] + net.members[v] <= aim.max_size
                }
                stay = scores.pop(own)
                goal, score = own, stay
                if scores:
                    goal = min(scores, key=lambda c: (-scores[c], *tie(c, seed)))
                    score = scores[goal]
                if score <= stay:
                    goal, score = own, stay
                if aim.extended and score < 0.0 and sizes[v] == 0:
                    goal, score = v, 0.0
                swaps = sizes[own] == 1 == sizes[goal] and goal > own and goal not in pinned
                if goal == own or swaps:
                    continue
                share = (score - stay) / float(aim.total)
                if aim.extended:
                    share = min(share, rules.most_gain(len(labels)))
                moved[v] = goal
                gained[v] = round(share * 2.0**rules.GAIN_BITS)
            if aim.max_size is not None:
                for v in refused(net, moved, members, aim.max_size, seed):
                    del moved[v]
                    active.add(v)
            gain += sum(gained[v] for v in moved)
            for v, goal in moved.items():
                for sums, part in (
                    (totals, net.masses),
                    (seconds, net.seconds),
                    (members, net.members),
                ):
                    sums[labels[v]] -= part[v]
                    sums[goal] += part[v]
                sizes[labels[v]] -= 1
                sizes[goal] += 1
                labels[v] = goal
            for v in moved:
                active.update(u for u in net.neighbours[v] if labels[u] != labels[v])
            moves += len(moved)
        gains += gain
        if not rules.prunes(alone, iteration):
            active = set(net.vertices)
        if moves == 0 or rules.is_last_sweep(number, iteration, gain, before, effort):
            break
        before = gain
    return labels, iteration + 1, visited, gains


def refused(net, moved, members, max_size, seed):
    """Return which moves are refused: where all do not fit, all but the first."""
    joining = {}
    for v, goal in moved.items():
        joining.setdefault(goal, []).append(v)
    found = []
    for goal, those in joining.items():
        if members[goal] + sum(net.members[v] for v in those) > max_size:
            found += sorted(those, key=lambda v: tie(v, seed))[1:]
    return found


def tie(community, seed):
    """Return what orders communities of equal score."""
    return rules.mix32(community ^ seed), community


def refine(net, labels, aim, seed, cycle):
    """Return sub-communities: lone vertices have joined others of their community."""
    totals = {}
    seconds = {}
    for v in net.vertices:
        totals[labels[v]] = totals.get(labels[v], 0) + net.masses[v]
        seconds[labels[v]] = seconds.get(labels[v], 0) + net.seconds[v]
    subs = list(net.vertices)
    sub_totals, sub_seconds, sub_sizes = list(net.masses), list(net.seconds), [1] * len(subs)
    cuts = [
        sum(weight for u, weight in net.neighbours[v].items() if labels[u] == labels[v])
        for v in net.vertices
    ]
    salt = rules.salt(cycle, rules.REFINE_SWEEP, seed)

    def well_connected(sub):
        total, second = sub_totals[sub], sub_seconds[sub]
        rest, second_rest = totals[labels[sub]] - total, seconds[labels[sub]] - second
        return float(cuts[sub]) >= aim.expected(total, rest, second, second_rest)

    for sub_round in range(rules.SUB_ROUNDS):
        moved = {}
        for v in net.vertices:
            alone = subs[v] == v and sub_sizes[v] == 1
            if rules.bucket(v, salt) != sub_round or not alone or not well_connected(v):
                continue
            ties = {}
            for u, weight in net.neighbours[v].items():
                if labels[u] == labels[v]:
                    ties[subs[u]] = ties.get(subs[u], 0) + weight
            scores = {}
            for sub, weight in ties.items():
                expected = aim.expected(
                    net.masses[v], sub_totals[sub], net.seconds[v], sub_seconds[sub]
                )
                score = float(weight) - expected
                may_leave = sub_sizes[sub] == 1 and rules.bucket(sub, salt) == sub_round
                if score > 0.0 and not may_leave and well_connected(sub):
                    scores[sub] = score
            if scores:
                goal = min(scores, key=lambda sub: (-scores[sub], *tie(sub, seed)))
                moved[v] = (goal, ties[goal])
        for v, (goal, weight) in moved.items():
            subs[v] = goal
            sub_sizes[v] = 0
            sub_totals[goal] += net.masses[v]
            sub_seconds[goal] += net.seconds[v]
            sub_sizes[goal] += 1
            cuts[goal] += cuts[v] - 2 * weight
    return subs


def aggregate(net, labels, parts):
    """Make each part a vertex, numbered in the order of the parts' labels.

    Returns the new graph, each old vertex's number, and each new vertex's community: the
    smallest number among the parts of its old community.
    """
    rank = {part: number for number, part in enumerate(sorted(set(parts)))}
    numbers = [rank[part] for part in parts]
    neighbours = [{} for _ in rank]
    loops, masses, seconds, members = ([0] * len(rank) for _ in range(4))
    fixed = [False] * len(rank)
    first = {}
    for v in net.vertices:
        a = numbers[v]
        first[labels[v]] = min(first.get(labels[v], a), a)
        loops[a] += net.loops[v]
        masses[a] += net.masses[v]
        seconds[a] += net.seconds[v]
        members[a] += net.members[v]
        fixed[a] |= net.fixed[v]
        for u, weight in net.neighbours[v].items():
            b = numbers[u]
            if a != b:
                neighbours[a][b] = neighbours[a].get(b, 0) + weight
            elif u < v:
                loops[a] += weight
    carried = [0] * len(rank)
    for v in net.vertices:
        carried[numbers[v]] = first[labels[v]]
    return Net(neighbours, loops, masses, seconds, members, fixed), numbers, carried


def arcs_of(net):
    return sum(map(len, net.neighbours))


def split(net, labels):
    """Make every connected part of a community one of its own, named by its smallest vertex.

    Parts that hold fixed vertices of one community stay one.
    """
    held = {}
    for v in net.vertices:
        if net.fixed[v]:
            held.setdefault(labels[v], []).append(v)
    parts = [-1] * len(labels)
    for root in net.vertices:
        if parts[root] >= 0:
            continue
        parts[root] = root
        stack = [root]
        while stack:
            v = stack.pop()
            near = [u for u in net.neighbours[v] if labels[u] == labels[v]]
            if net.fixed[v]:
                near += held[labels[v]]
            for u in near:
                if parts[u] < 0:
                    parts[u] = root
                    stack.append(u)
    return parts


def value_of(net, labels, aim):
    inside, totals, seconds = 0, dict.fromkeys(labels, 0), dict.fromkeys(labels, 0)
    for v in net.vertices:
        totals[labels[v]] += net.masses[v]
        seconds[labels[v]] += net.seconds[v]
        inside += 2 * net.loops[v]
        inside += sum(w for u, w in net.neighbours[v].items() if labels[u] == labels[v])
    squares = sum(value * value for value in totals.values())
    if aim.objective == "cpm":
        pairs = (squares - aim.vertices) // 2
        return inside / (2 * aim.scale) - aim.resolution * pairs
    first, second = aim.norms
    others = sum(value * value for value in seconds.values())
    above, below = squares, aim.total * (first or 1)
    if second:
        above, below = squares * second - others * (first or 1), below * second
    return inside / aim.total - aim.resolution * (above / below)


def number_by_size(labels):
    """Number communities by descending size, ties by their smallest member."""
    members = {}
    for v, label in enumerate(labels):
        members.setdefault(label, []).append(v)
    order = sorted(members, key=lambda label: (-len(members[label]), members[label][0]))
    rank = {label: k for k, label in enumerate(order)}
    return [rank[label] for label in labels]
