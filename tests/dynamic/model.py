"""A changing graph as a dict of edges, and random batches for it: what stores are compared with."""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from louvain_um import Graph
from louvain_um.dynamic.stores.blocks import SEMANTIC

Edge = tuple[int, int]


@dataclass
class Model:
    """The contents of a changing graph: weight of each edge, smaller end first unless directed."""

    n: int
    weighted: bool
    store: str = "rows"
    edges: dict[Edge, int] = field(default_factory=dict)
    dead: set[int] = field(default_factory=set)
    removed: list[int] = field(default_factory=list)
    """Those that are dead, in the order in which they were removed."""
    attributes: dict[Edge, list[int]] = field(default_factory=dict)
    """Of edges that are no loops; none where each is 0."""

    @property
    def directed(self):
        return "directed=yes" in self.store

    def edge(self, u, v):
        return (u, v) if self.directed else (min(u, v), max(u, v))

    def accepted(self, insert):
        """Return what may be inserted: edges that are there only by stores that look them up."""
        if "unchecked" not in self.store:
            return insert
        return [e for e in insert if e[0] == e[1] or self.edge(*e[:2]) not in self.edges]

    def apply(self, insert, delete, decrease, duplicates):
        """Apply a batch; return each changed edge's weights before and after, and the missing."""
        gone = {self.edge(*e) for e in delete}
        less, more = ([(self.edge(u, v), w) for u, v, w in each] for each in (decrease, insert))
        named = [*gone, *(edge for edge, _ in less), *(edge for edge, _ in more)]
        before = {edge: self.edges.get(edge, 0) for edge in named}
        missing = {edge for edge in named[: len(gone) + len(less)] if not before[edge]}
        for edge in gone:
            self.edges.pop(edge, None)
        for edge, w in less:
            if edge in self.edges:
                self.edges[edge] -= w
                assert self.edges[edge] >= 0
        summing = self.weighted if duplicates is None else duplicates == "sum"
        for edge, w in more:
            old = self.edges.get(edge, 0)
            self.edges[edge] = old + w if summing else max(old, w)
        for edge in before:
            if not self.edges.get(edge):
                self.edges.pop(edge, None)
                self.attributes.pop(edge, None)
        after = {edge: self.edges.get(edge, 0) for edge in before}
        changed = {e: (w, after[e]) for e, w in before.items() if w != after[e]}
        return changed, len(missing)

    def remove(self, ids):
        """Remove vertices and their edges."""
        gone = set(ids) - self.dead
        self.edges = {e: w for e, w in self.edges.items() if gone.isdisjoint(e)}
        self.removed += sorted(gone)
        self.dead |= gone
        self.attributes = {e: a for e, a in self.attributes.items() if e in self.edges}

    def reused(self, count):
        """Make vertices of removed ones again; return their ids."""
        order = self.removed if "ids=queue" in self.store else sorted(self.dead)
        again = sorted(order[:count])
        self.removed = [v for v in self.removed if v not in again]
        self.dead -= set(again)
        return again

    def graph(self):
        u, v = (np.array([e[k] for e in self.edges], np.int64) for k in (0, 1))
        w = np.array(list(self.edges.values()), np.int64) if self.weighted else None
        return Graph.from_edges(u, v, w, n_vertices=self.n, duplicates="once")


def columns(edges, width):
    return tuple(np.array([e[k] for e in edges], np.int64) for k in range(width))


def same_contents(g, model):
    if model.directed:
        found, expected = g._store.compressed(), sorted(e for e in model.edges if e[0] != e[1])
        sources = np.repeat(np.arange(model.n), np.diff(found.offsets)).tolist()
        assert list(zip(sources, found.targets.tolist(), strict=True)) == expected
        weights = [1] * len(expected) if found.weights is None else found.weights.tolist()
        assert weights == [model.edges[edge] for edge in expected]
        loops = [model.edges.get((v, v), 0) for v in range(model.n)]
        assert g._contents.host_loops().tolist() == loops
    else:
        expected, found = model.graph(), g.host_snapshot()
        for name in ("offsets", "targets", "loops"):
            assert np.array_equal(getattr(found, name), getattr(expected, name)), name
        if model.weighted:
            assert np.array_equal(found.weights, expected.weights)
    assert model.weighted == (found.weights is not None)
    assert (g.n_vertices, g.n_edges) == (model.n, len(model.edges))
    assert set(np.flatnonzero(~g.alive).tolist()) == model.dead
    if model.attributes:
        held, rows = g._store, np.arange(g.n_vertices, dtype=np.uint32)
        keys, places = held.placed(held.xp.asarray(rows))
        values = np.stack([held.xp.asarray(a)[places] for a in g.attributes.edges().values()])
        ends = np.stack([keys >> 32, keys & 0xFFFFFFFF])
        if not model.directed:
            ends.sort(axis=0)
        expected = [model.attributes.get(edge, [0, 0, 0]) for edge in map(tuple, ends.T.tolist())]
        assert values.T.tolist() == expected


WEIGHTS = st.one_of(st.integers(0, 9), st.integers(2**31, 2**33))


@st.composite
def batches(draw, model):
    """Return a batch for a model: inserts, deletes and decreases that it can take."""
    living = sorted(set(range(model.n)) - model.dead)
    if not living:
        return {"insert": [], "delete": [], "decrease": [], "duplicates": None}
    hub = living[0]
    vertex = st.one_of(st.sampled_from(living), st.just(hub))
    weight = WEIGHTS if model.weighted else st.just(1)
    present = sorted(model.edges)
    some = st.tuples(vertex, vertex)
    known = st.one_of(st.sampled_from(present), some) if present else some
    insert = draw(st.lists(st.tuples(some, weight), max_size=40))
    delete = draw(st.lists(known, max_size=20))
    decrease = []
    if model.weighted:
        for edge in draw(st.lists(known, max_size=5, unique_by=lambda e: model.edge(e[0], e[1]))):
            most = model.edges.get(model.edge(*edge), 3)
            decrease.append((*edge, draw(st.sampled_from([most, (most + 1) // 2, 0]))))
    duplicates = draw(st.sampled_from([None, "once", "sum"] if model.weighted else [None, "once"]))
    return {
        "insert": model.accepted([(*edge, w) for edge, w in insert]),
        "delete": delete,
        "decrease": decrease,
        "duplicates": duplicates,
    }


def apply(g, batch, order=None):
    """Apply a batch, its edges in another order and direction if `order` is given."""
    given = {}
    for name in ("insert", "delete", "decrease"):
        edges = list(batch[name])
        if order is not None:
            edges = [edges[k] for k in order.permutation(len(edges))]
            edges = [(b, a, *w) if order.random() < 0.5 else (a, b, *w) for a, b, *w in edges]
        width = 2 if name == "delete" or not g.weighted else 3
        if edges or name == "insert":
            given[name] = columns(edges, width)
    return g.apply(**given, duplicates=batch["duplicates"])


def follow(data, g, model):
    """Change a graph and its model a few times, in any way; they hold the same each time."""
    for _ in range(data.draw(st.integers(1, 6))):
        step = data.draw(st.sampled_from(["batch", "batch", "batch", "add", "remove", "compact"]))
        if step == "batch":
            batch = data.draw(batches(model))
            expected, missing = model.apply(**batch)
            change = apply(g, batch).to_host()
            weights = zip(change.before.tolist(), change.after.tolist(), strict=True)
            edges = zip(change.u.tolist(), change.v.tolist(), strict=True)
            assert dict(zip(edges, weights, strict=True)) == expected
            assert change.missing == missing
            assert change.total_weight == g.total_weight
        elif step == "add":
            count, reuse = data.draw(st.integers(0, 40)), data.draw(st.booleans())
            again = model.reused(count if reuse else 0)
            fresh = list(range(model.n, model.n + count - len(again)))
            assert list(g.add_vertices(count, reuse=reuse)) == again + fresh
            model.n += len(fresh)
        elif step == "remove":
            living = sorted(set(range(model.n)) - model.dead)
            ids = data.draw(st.lists(st.sampled_from(living), max_size=4)) if living else []
            g.remove_vertices(np.array(ids, np.int64))
            model.remove(ids)
        else:
            g.compact()
        g.check()
        same_contents(g, model)


def operate(rng, g, model, steps, size):
    """Carry out steps of `size` operations of every kind; compare contents after every fifth."""
    for step in range(steps):
        living = np.setdiff1d(np.arange(model.n), list(model.dead))
        u, v = living[(len(living) * rng.random((2, size)) ** 2).astype(np.int64)]  # hubs, loops
        w = (
            rng.integers(0, 2**33 if step == 7 else 9, size)
            if model.weighted
            else np.ones(size, int)
        )
        parts = int(0.6 * size), int(0.9 * size)
        present = list(model.edges)
        known = (
            [present[k] for k in rng.integers(0, len(present), size - parts[0])] if present else []
        )
        decreased = dict.fromkeys(known[parts[1] - parts[0] :] if model.weighted else [])
        batch = {
            "insert": model.accepted(
                [*zip(u.tolist(), v.tolist(), w.tolist(), strict=True)][: parts[0]]
            ),
            "delete": [*known[: parts[1] - parts[0]], (int(u[-1]), int(v[-1]))],
            "decrease": [(*e, int(rng.integers(0, model.edges[e] + 1))) for e in decreased],
            "duplicates": None,
        }
        expected, missing = model.apply(**batch)
        change = apply(g, batch)
        assert (len(change), change.missing) == (len(expected), missing)
        if hasattr(g._store, "attributes"):
            edges = [e for e in model.edges if e[0] != e[1]][step % 3 :: 3]
            for k, name in enumerate(SEMANTIC):
                values = rng.integers(0, 2**32, len(edges))
                g.attributes.edit(
                    name, values, *columns(edges, 2)[:: -1 if k and not model.directed else 1]
                )
                for edge, value in zip(edges, values.tolist(), strict=True):
                    model.attributes.setdefault(edge, [0, 0, 0])[k] = value
        if step % 10 == 3:
            gone = rng.choice(living, 3, replace=False)
            g.remove_vertices(gone)
            model.remove(gone.tolist())
            assert list(g.add_vertices(2, reuse=True)) == model.reused(2)
            g.add_vertices(5)
            model.n += 5
        if step % 5 == 4:
            g.check()
            same_contents(g, model)
