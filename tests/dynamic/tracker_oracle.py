"""The rule of a tracker once more, slowly: plain Python, each step from the whole graph."""

from dataclasses import dataclass, field
from math import inf

from louvain_um.core import rules
from tests import oracle
from tests.oracle import Aim, Net

Edges = dict[tuple[int, int], int]


def edges_of(net):
    edges = {(v, v): loop for v, loop in enumerate(net.loops) if loop}
    for v in net.vertices:
        edges |= {(v, u): weight for u, weight in net.neighbours[v].items() if v < u}
    return edges


def arcs_of(net):
    return sum(len(row) for row in net.neighbours)


def smallest(labels):
    first = {}
    return [first.setdefault(label, v) for v, label in enumerate(labels)]


@dataclass
class Following:
    """A tracker's state: the graph before the next batch and its communities."""

    net: Net
    method: str
    renew: float
    audit: float | None
    always: bool = False
    resolution: float = 1.0
    seed: int = 0
    names: list[int] = field(default_factory=list)
    aim: Aim = field(init=False)
    touched: dict[int, float] = field(default_factory=dict)
    turnover: int = 0
    changed: float = 0.0
    regained: float = 0.0
    period: int = 1

    def static(self, graph):
        labels, _ = oracle.detect(graph, self.method, resolution=self.resolution, seed=self.seed)
        return smallest(labels)

    def quality(self, names):
        return oracle.value_of(self.net, names, self.aim) if self.aim.total else 0.0

    def lead_of(self, other, current):
        quality = self.quality(other)
        return (quality - self.quality(current)) / abs(quality) if quality else 0.0

    def update(self, graph):
        """Follow to the next graph; return communities named after their smallest members."""
        old, self.net = edges_of(self.net), oracle.net_of(graph)
        self.aim = oracle.aim_of(graph, self.net, "modularity", self.resolution, None, None, None)
        new, names = edges_of(self.net), list(self.names)
        names += range(len(names), graph.n_vertices)
        marks, loose, turnover, different = set[int](), set[int](), 0, 0
        removed = set[tuple[int, int]]()
        for u, v in sorted(old.keys() | new.keys()):
            delta = new.get((u, v), 0) - old.get((u, v), 0)
            if not delta:
                continue
            different += 2 * abs(delta)
            against = (names[u] == names[v]) == (delta < 0)
            turnover += 2 * abs(delta) * against
            if against and u != v:
                marks |= {u, v}
                for end in (u, v):
                    self.touched[end] = self.touched.get(end, 0) + abs(delta)
            common = self.net.neighbours[u].keys() & self.net.neighbours[v].keys()
            held = any(names[w] == names[u] for w in common)
            if u != v and names[u] == names[v] and (u, v) not in new:
                removed.add((u, v))
                if not held:
                    loose.add(names[u])
        whole, fell = self.split_loosened(names, loose, removed)
        marks |= fell
        self.touched |= dict.fromkeys(fell, inf)
        total = self.aim.total
        self.turnover += turnover
        self.changed += different / max(1, total)
        found = self.cycle(whole, marks, levels=False) if marks and total else whole
        if self.turnover > self.renew * total > 0:
            masses = self.net.masses
            freed = {v for v, turns in self.touched.items() if turns >= self.renew * masses[v]}
            stay = smallest([len(found) + v if v in freed else c for v, c in enumerate(found)])
            released = [v if v in freed else name for v, name in enumerate(stay)]
            renewed = self.cycle(released, freed, levels=True)
            if renewed and self.quality(renewed) >= self.quality(found):
                self.regained += self.lead_of(renewed, found)
                found = renewed
            elif self.method == "leiden" and not self.always:
                found = oracle.split(self.net, found)
            self.touched = {v: turns for v, turns in self.touched.items() if v not in freed}
            self.turnover = 0
        if self.always:
            left = {name for v, name in enumerate(whole) if found[v] != name}
            loose = {found[v] for v, name in enumerate(whole) if name in left}
            found = self.split(found, loose)
        self.names = found
        if self.audit is None or not total:
            return self.names
        if self.regained > self.period * self.audit or self.changed >= 1:
            fresh = self.static(graph)
            lead = self.lead_of(fresh, found)
            if lead > self.audit:
                self.names, self.touched, self.turnover = fresh, {}, 0
                soon = int(2 * self.period * self.audit / lead)
                self.period = max(1, min(self.period, soon))
            elif lead < self.audit / 2:
                self.period *= 2
            self.changed = self.regained = 0.0
        return self.names

    def split_loosened(self, names, loose, removed):
        """Separate the parts with ends of removed edges, or all where a search cannot tell."""
        arcs, fell, fallen = self.net.neighbours, set[int](), set[int]()
        for end in {end for edge in removed if names[edge[0]] in loose for end in edge}:
            current = names[end]
            members = [v for v, name in enumerate(names) if name == current]
            anchor = max(members, key=lambda v: (len(arcs[v]), -v))
            part, read, state = [end], 0, "held" if end == anchor else "part"
            for v in part:
                row = sorted(arcs[v])
                for low in range(0, len(row), rules.MOST_PART):
                    if state == "part" and read >= rules.MOST_PART_ARCS:
                        state = "cut"
                    if state != "part":
                        break
                    chunk = row[low : low + rules.MOST_PART]
                    read += len(chunk)
                    inside = [w for w in chunk if names[w] == current]
                    if any(w == anchor or anchor in arcs[w] for w in inside):
                        state = "held"
                    part += [w for w in inside if w not in part]
            if state == "cut" or (state == "part" and len(part) > rules.MOST_PART):
                fallen.add(current)
            elif state == "part":
                fell.update(part)
        whole = self.split(names, fallen)
        fell = {v for v in fell if names[v] not in fallen}
        off = [len(names) + name if v in fell else name for v, name in enumerate(whole)]
        parts = oracle.split(self.net, off)
        rest = smallest(off)
        whole = [parts[v] if v in fell else rest[v] for v in self.net.vertices]
        renamed = {v for v in self.net.vertices if names[v] in fallen and whole[v] != names[v]}
        return whole, fell | renamed

    def split(self, names, loose):
        parts = oracle.split(self.net, names)
        return [parts[v] if name in loose else name for v, name in enumerate(names)]

    def cycle(self, start, first, *, levels):
        """Move the first vertices and what they activate; with levels, go on as Leiden does.

        Without first vertices it is the first cycle of a run from single ones.
        """
        cycle = 0 if first is None else 1
        rule = self.aim, self.seed, cycle
        rounds = rules.SUB_ROUNDS if levels else rules.FRONTIER_SUB_ROUNDS
        labels, *_ = oracle.move(self.net, start, *rule, 0, first is None, first, rounds)
        if not levels:
            return smallest(labels)
        level, reached, path = self.net, start, []
        most = rules.MOST_KEPT * arcs_of(level)
        best = float("-inf")  # freed vertices find communities again
        least = 1e-7 * rules.RENEWAL_FACTOR
        joins = False
        while True:
            if path:
                alone = self.method == "louvain"
                labels, _, _, gain = oracle.move(level, reached, *rule, len(path), alone)
                little = rules.as_modularity(gain) <= least
                joins = little and not joins and not alone and len(set(reached)) < len(reached)
                if little and not joins:
                    break
            parts = labels
            if self.method == "leiden" and path and (joins or arcs_of(level) > most):
                parts = oracle.split(level, labels)
            elif self.method == "leiden":
                parts = oracle.refine(level, labels, *rule)
            coarse, numbers, carried = oracle.aggregate(level, labels, parts)
            value = oracle.value_of(coarse, carried, self.aim)
            gained, best = value - best, max(value, best)
            if gained < 0 or (gained == 0 and not joins):
                break
            path.append(numbers)
            level, reached = coarse, carried
            if gained <= least and not joins:
                break
        if not path:
            return []
        if self.method == "leiden":
            reached = oracle.split(level, reached)
        for numbers in reversed(path):
            reached = [reached[number] for number in numbers]
        return smallest(reached)
