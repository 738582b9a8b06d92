"""Time and memory of every public call grow in proportion to the graph, whatever its shape."""

import functools
import gc
import inspect
import math
import re
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import louvain_um as lu
from louvain_um.algorithms.operators import advance, filter, segmented_intersection
from louvain_um.core.headroom import host_memory
from louvain_um.distributed.files.writing import write_labels_partitioned
from louvain_um.options import Options
from louvain_um.profiling.access.recorder import record
from tests.distributed.threads import detect_in_threads
from tests.tiers import EXAMPLES

STEEPEST = 1.15
"""The largest exponent of time or memory, over graphs of which the larger has eight times as many
vertices: n log n has 1.1 here, n² has 2. Over so wide a range, a part of a cache or of another
process changes little; a quadratic part is found if it takes a third of the time of the larger."""

STEEPEST_OF_OBJECTS = 1.3
"""The same for time where each edge becomes objects of Python, which soon outgrow a cache."""

OF_OBJECTS = ("networkx", "pairs", "read graphml", "read gexf", "read cyjs")

FEWEST_VERTICES, MOST_VERTICES = 128, 1024
"""Bounds of the smaller of two graphs."""

FEWEST_SECONDS = 0.001
"""A larger smallest graph is taken until a call takes as long."""

FEWEST_BYTES = 1 << 18

BYTES_PER_VERTEX = 100
"""What the largest graphs take at most, with NumPy's temporary arrays."""

UNMEASURED = {
    "recording": "a block of other calls",
    "detect_partitioned": "the case `ranks`, and the case `write_parts`",
    "Communities.to_cdlib": "a conversion by cdlib",
    "Communities.plot": "draws at most 1,500 vertices",
    "Communities.require_graph": "an attribute",
    "Graph.counts_there": "on a device",
    "Graph.arcs": "parts of arrays",
    "Graph.renewed": "shares all arrays",
    "DynamicGraph.restored": "a part of the case `saved tracker`",
    "DynamicGraph.device_view": "on a device",
    "DynamicGraph.linked_device_view": "on a device",
    "DynamicGraph.linked_view": "arrays of the store",
    "DynamicGraph.unchanged": "a lock",
    "DynamicGraph.refuse_directed": "a check of one attribute",
    "Placer": "arrays on a device",
}
"""Public calls, or all of a class, and why they have no case."""


def path(n):
    return np.arange(n - 1), np.arange(1, n)


def star(n):
    return np.zeros(n - 1, np.int64), np.arange(1, n)


def isolated(n):
    return np.arange(4), np.arange(4, 8)


def random(n):
    first, steps = np.random.default_rng(n).integers(0, n - 1, (2, 2 * n))
    return first, (first + steps + 1) % n


def hubs(n):
    return np.repeat(np.arange(2), n - 2), np.tile(np.arange(2, n), 2)


KINDS = {kind.__name__: kind for kind in (path, star, isolated, random, hubs)}


@dataclass
class Case:
    """A graph, and what calls need of it."""

    n: int
    ends: tuple
    folder: Path

    @functools.cached_property
    def weights(self):
        return 1 + np.arange(len(self.ends[0])) % 7

    @functools.cached_property
    def graph(self):
        return lu.Graph.from_edges(*self.ends, self.weights, n_vertices=self.n)

    @functools.cached_property
    def pairs(self):
        return list(zip(*self.ends, strict=True))

    @functools.cached_property
    def found(self):
        return lu.louvain(self.graph, device="cpu")

    @functools.cached_property
    def groups(self):
        return np.arange(self.n) // 10

    def file(self, name):
        path = self.folder / f"{self.n}_{name}"
        if not path.exists():
            lu.write_graph(path, self.graph)
        return path

    @functools.cached_property
    def changing(self):
        return changed(self)

    @functools.cached_property
    def saved(self):
        path = self.folder / f"found{self.n}.npz"
        self.found.save(path, force=True)
        return path

    def out(self, name):
        return self.folder / f"out_{name}"


def changed(case, **options):
    """Return a changing graph that had a batch of edges and one of deletions."""
    changing = lu.DynamicGraph(case.graph, device="cpu", **options)
    some = np.arange(0, case.n - 1, 2)
    changing.apply(insert=(some, some + 1))
    changing.apply(delete=(some, some + 1))
    return changing


def followed(case):
    changing = lu.DynamicGraph(case.graph, device="cpu")
    tracker = lu.Tracker(changing)
    some = np.arange(0, case.n - 1, 100)
    return tracker.update(changing.apply(insert=(some, some + 1))).ids


def saved_and_loaded(case):
    lu.Tracker(lu.DynamicGraph(case.graph, device="cpu")).save(case.out("t.npz"), force=True)
    return lu.Tracker.load(case.out("t.npz"))


def timed(case):
    path = case.folder / f"timed{case.n}.csv"
    if not path.exists():
        ends = np.column_stack([*case.ends, np.arange(len(case.ends[0]))])
        np.savetxt(path, ends, "%d", ",")
    return path


def labels_file(case):
    path = case.folder / f"labels{case.n}.csv"
    if not path.exists():
        lu.write_labels(case.groups, path)
    return path


def kept(u, v, w, arc):
    return u < v


def even(v):
    return v % 2 == 0


ALGORITHMS = {
    "bfs": lambda c: lu.bfs(c.graph, 0, device="cpu"),
    "sssp": lambda c: lu.sssp(c.graph, 0, device="cpu"),
    "components": lambda c: lu.connected_components(c.graph, device="cpu"),
    "forest": lambda c: lu.minimum_spanning_forest(c.graph, device="cpu"),
    "pagerank": lambda c: lu.pagerank(c.graph, 0.2, device="cpu", tolerance=1e-4),
    "triangles": lambda c: lu.triangles(c.graph, device="cpu"),
    "spmv": lambda c: lu.spmv(c.graph, np.ones(c.n), device="cpu"),
    "advance": lambda c: advance(c.graph, None, kept),
    "filter": lambda c: filter(c.graph, None, even),
    "intersection": lambda c: segmented_intersection(c.graph, np.column_stack(c.ends)),
}

DETECTION = {
    "louvain": lambda c: lu.louvain(c.graph, device="cpu"),
    "leiden": lambda c: lu.leiden(c.graph, device="cpu"),
    "cpm": lambda c: lu.leiden(c.graph, device="cpu", objective="cpm", resolution=0.01),
    "max_size": lambda c: lu.louvain(c.graph, device="cpu", max_size=20),
    "initial": lambda c: lu.louvain(c.graph, device="cpu", initial=c.groups, fixed=range(9)),
    "best": lambda c: lu.leiden(c.graph, device="cpu", effort="best"),
    "modularity": lambda c: lu.modularity(c.graph, c.groups),
    "ensemble": lambda c: lu.ensemble(c.graph, runs=2, device="cpu"),
    "resolutions": lambda c: lu.resolution_profile(c.graph, points=3, runs=1, device="cpu"),
    "significance": lambda c: c.found.significance(graphs=2, device="cpu"),
    "describe": lambda c: c.found.describe(
        pd.DataFrame({"id": np.arange(c.n), "x": np.arange(c.n) % 9})
    ),
    "estimator": lambda c: lu.Louvain().fit(c.graph.to_scipy()).get_params(),
    "fit_predict": lambda c: lu.Louvain().set_params(seed=1).fit_predict(c.graph.to_scipy()),
    "ranks": lambda c: detect_in_threads(c.graph, Options(device="cpu"), ranks=2),
}

RESULTS = {
    "of": lambda c: lu.Communities.of(c.graph, c.groups),
    "hierarchy": lambda c: c.found.hierarchy(),
    "communities": lambda c: c.found.communities(),
    "induced_graph": lambda c: c.found.induced_graph(),
    "subgraph": lambda c: c.found.subgraph(0),
    "quality": lambda c: c.found.quality(),
    "memberships": lambda c: c.found.memberships(),
    "table": lambda c: c.found.table(),
    "compare": lambda c: c.found.compare(c.groups),
    "to_frame": lambda c: c.found.to_frame(levels=True),
    "to_dict": lambda c: c.found.to_dict(),
    "at_level": lambda c: c.found.at_level(0),
    "save": lambda c: c.found.save(c.out("found.npz"), force=True),
    "load": lambda c: lu.Communities.load(c.saved),
    "write_labels": lambda c: lu.write_labels(c.found, c.out("l.csv"), force=True),
    "write_json": lambda c: lu.write_labels(c.found, c.out("l.json"), force=True),
    "read_labels": lambda c: lu.read_labels(labels_file(c)),
    "write_parts": lambda c: write_labels_partitioned(c.found, c.out("labels"), force=True),
    "networkx": lambda c: c.found.to_networkx(),
}

GRAPHS = {
    "from_edges": lambda c: lu.Graph.from_edges(*c.ends, n_vertices=c.n),
    "named": lambda c: lu.Graph.from_edges(*c.ends, n_vertices=c.n, names=[*map(str, range(c.n))]),
    "as_graph": lambda c: lu.as_graph(np.column_stack(c.ends)),
    "pairs": lambda c: lu.as_graph(c.pairs),
    "frame": lambda c: lu.as_graph(c.graph.to_pandas()),
    "scipy": lambda c: lu.as_graph(c.graph.to_scipy()),
    "igraph": lambda c: lu.as_graph(c.graph.to_igraph()),
    "validate": lambda c: c.graph.validate(),
    "partitioned": lambda c: lu.read_partitioned(str(c.file("g.csv"))),
}
for suffix in ("csv", "npz", "mtx", "graph", "parquet", "graphml", "gexf", "cyjs", "csv.gz"):
    GRAPHS[f"write {suffix}"] = functools.partial(
        lambda s, c: lu.write_graph(c.out(f"g.{s}"), c.graph, force=True), suffix
    )
    GRAPHS[f"read {suffix}"] = functools.partial(
        lambda s, c: lu.read_graph(c.file(f"g.{s}")), suffix
    )

STORES = ("rows", "csr", "bump", "pages", "vine", "bal", "ouro-s-p")
CHANGING = {store: functools.partial(lambda s, c: changed(c, store=s), store) for store in STORES}
CHANGING |= {
    "tracker": followed,
    "saved tracker": saved_and_loaded,
    "stream": lambda c: [*lu.read_stream(timed(c)).steps(every=c.n // 4)],
    "compact": lambda c: c.changing.compact(),
    "snapshots": lambda c: (c.changing.snapshot(), c.changing.host_snapshot(), c.changing.view()),
    "checks": lambda c: (c.changing.digest(), c.changing.check()),
    "edges": lambda c: (c.changing.has_edges(*c.ends), c.changing.weights_of(*c.ends)),
    "edit": lambda c: lu.DynamicGraph(c.graph, weighted=True, device="cpu").edit_edges(
        *c.ends, np.ones(len(c.ends[0]), np.int64)
    ),
    "neighbours": lambda c: c.changing.neighbours(0),
    "networkx": lambda c: c.changing.to_networkx(),
    "add": lambda c: lu.DynamicGraph(c.graph, device="cpu").add_vertices(c.n),
    "remove": lambda c: changed(c).remove_vertices(np.arange(c.n // 2)),
}

MEMORY = {
    "plan": lambda c: lu.plan(c.graph, machine="h200", device_budget="60%"),
    "profile": lambda c: lu.profile(c.graph, device="cpu"),
    "record": lambda c: record(c.graph),
    "sweep": lambda c: lu.sweep(c.graph, policies=["base"], budgets=["60%"], machine="h200"),
}

CALLS = {
    "algorithms": ALGORITHMS, "detection": DETECTION, "results": RESULTS, "graphs": GRAPHS,
    "changing": CHANGING, "memory": MEMORY,
}  # fmt: skip


def seconds(call, case):
    """Return the processor time of a call."""
    gc.disable()
    try:
        begin = time.process_time()
        call(case)
        return max(time.process_time() - begin, FEWEST_SECONDS)
    finally:
        gc.enable()


def highest_bytes(call, case):
    """Return the memory of Python and NumPy that a call takes at most."""
    tracemalloc.start()
    try:
        call(case)
        return max(tracemalloc.get_traced_memory()[1], FEWEST_BYTES)
    finally:
        tracemalloc.stop()


def growth(call, make, steepest=STEEPEST):
    """Return the exponents of time and memory."""
    n = FEWEST_VERTICES
    call(make(n))  # compiles
    while n < MOST_VERTICES and seconds(call, make(n)) <= FEWEST_SECONDS:
        n *= 2
        call(make(n))  # makes what is read
    small, large = make(n), make(8 * n)
    call(large)
    few, many = seconds(call, small), seconds(call, large)
    for _ in range(4):  # others may have been at work
        if math.log(many / few, 8) <= steepest:
            break
        few, many = min(few, seconds(call, small)), min(many, seconds(call, large))
    # Nothing disturbs memory, so a fourfold does; recording it makes a call take thrice as long.
    call(make(4 * n))
    fewest, most = (highest_bytes(call, make(size)) for size in (n, 4 * n))
    return math.log(many / few, 8), math.log(most / fewest, 4)


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("calls", CALLS)
def test_time_and_memory_grow_with_the_graph(tmp_path, monkeypatch, calls, kind):
    monkeypatch.setenv("LOUVAIN_UM_THREADS", "1")
    make = functools.cache(lambda n: Case(n, KINDS[kind](n), tmp_path))
    steep = {}
    for name, call in CALLS[calls].items():
        steepest = STEEPEST_OF_OBJECTS if name in OF_OBJECTS else STEEPEST
        found = growth(call, make, steepest)
        if found[0] > steepest or found[1] > STEEPEST:
            steep[name] = found
    assert not steep


@pytest.mark.deep
def test_what_grows_too_fast_is_found(tmp_path):
    make = functools.cache(lambda n: Case(n, path(n), tmp_path))
    memory = growth(lambda c: np.add.outer(c.groups % 9 > 4, c.groups % 9 > 4), make, 9)[1]
    assert memory > STEEPEST
    seconds, memory = growth(lambda c: np.convolve(*np.tile(c.groups, (2, 2))), make)
    assert seconds > STEEPEST
    assert memory <= STEEPEST
    seconds, memory = growth(lambda c: np.sort(np.random.default_rng(1).random(30 * c.n)), make)
    assert seconds <= STEEPEST
    assert memory <= STEEPEST


MOST = 10**8 if EXAMPLES > 1 else 2 * 10**7
"""Vertices of the largest graph: more than 2²⁴. Its edges weigh 5, so that products of weights
exceed 2⁵³."""


@pytest.mark.deep
@pytest.mark.parametrize(
    ("kind", "n", "weight", "components"),
    [(star, 10**7, None, 1), (isolated, 10**7, None, 10**7 - 4), (path, MOST, 5, 1)],
)
def test_very_many_vertices(kind, n, weight, components):
    if (host_memory() or 0) < BYTES_PER_VERTEX * n:
        pytest.skip(f"{BYTES_PER_VERTEX * n >> 30} GiB of memory are not free")
    u, v = kind(n)
    weights = None if weight is None else np.full(len(u), weight)
    graph = lu.Graph.from_edges(u, v, weights, n_vertices=n)
    del u, v, weights
    found = lu.louvain(graph, device="cpu")
    assert len(found.labels) == found.sizes.sum() == n
    assert found.modularity == lu.modularity(graph, found.labels)
    parts = lu.connected_components(graph, device="cpu")
    assert np.count_nonzero(parts == np.arange(n)) == components
    if kind is path:  # pieces of it
        assert np.count_nonzero(np.diff(found.labels)) == found.n_communities - 1
        assert found.modularity > 0.999
    else:
        assert found.n_communities == components


def test_every_public_call_is_measured():
    text = "\n".join(map(inspect.getsource, (changed, followed, saved_and_loaded)))
    text += Path(__file__).read_text().partition("\nALGORITHMS = ")[2].partition("\nCALLS = ")[0]
    public = {name for name in lu.__all__ if inspect.isfunction(getattr(lu, name))}
    for title, each in ((title, getattr(lu, title)) for title in lu.__all__):
        if not isinstance(each, type) or issubclass(each, Exception):
            continue
        for name, call in inspect.getmembers(each, inspect.isroutine):
            ours = str(getattr(call, "__module__", "")).startswith("louvain_um")
            if ours and not name.startswith("_"):
                public.add(title if title in UNMEASURED else f"{title}.{name}")
    missing = {name for name in public if not re.search(rf"\.{name.split('.')[-1]}\b", text)}
    assert missing == {*UNMEASURED}
