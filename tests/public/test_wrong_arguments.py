"""Arguments of wrong kinds give a result or an error of the package in one line, nothing else."""

import functools
import inspect
import warnings

import numpy as np
import pandas as pd
import pytest

import louvain_um as lu
from louvain_um import generators, profiling
from louvain_um.algorithms import operators

WRONG = (
    None, -1, 1.5, 2**70, 10**400, float("nan"), 1j, "", "x", "a\nb", "\0", b"x", [], [None],
    [[1, 2], [3]], {1: "x"}, object(), np.array(None), np.array([np.nan]), np.zeros((2, 3)),
    np.zeros(2, [("a", "i4")]), pd.DataFrame({"x": [1]}), pd.Series(["x", "y"]),
    np.array([]), np.ma.array([1, 2], mask=[0, 1]),
    lu.Communities.of(lu.Graph.from_edges([0, 1], [1, 2]), [0, 0, 1]),
)  # fmt: skip
"""Values of every kind: some are right for some parameters."""

PASSED_ON = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

DOCUMENTED = {"Communities.subgraph": (TypeError, IndexError)}
"""What calls raise as Python's own sequences do."""

LONGEST = 600
"""Characters of a message."""

GRAPH = lu.Graph.from_edges([0, 1, 2, 3, 4, 5, 0], [1, 2, 0, 4, 5, 3, 3])
FOUND = lu.louvain(GRAPH, device="cpu")
EDGES = [(0, 1), (1, 2), (2, 0)]
U, V, W = [0, 1], [1, 2], [1, 2]


def changing():
    return lu.DynamicGraph(GRAPH, device="cpu", weighted=True)


def tracker():
    return lu.Tracker(changing(), threads=1)


def placer():
    made = lu.Placer("1GiB", machine="h200", device="cpu")
    made.array("a", (100,))
    return made


def timed():
    return np.array([(0, 1, 1), (1, 2, 2)])


CPU = {"device": "cpu"}
CALLS = {
    **{name: (getattr(lu, name), {"graph": GRAPH, **CPU, "threads": 1})
       for name in ("louvain", "leiden", "connected_components", "minimum_spanning_forest",
                    "pagerank", "triangles", "profile")},
    "bfs": (lu.bfs, {"graph": GRAPH, "source": 0, **CPU}),
    "sssp": (lu.sssp, {"graph": GRAPH, "source": 0, **CPU}),
    "spmv": (lu.spmv, {"graph": GRAPH, "x": np.ones(6), **CPU}),
    "profile bfs": (lu.profile, {"graph": GRAPH, "program": "bfs", "source": 0, **CPU}),
    "ensemble": (lu.ensemble, {"graph": GRAPH, "runs": 2, **CPU}),
    "resolution_profile": (lu.resolution_profile, {"graph": GRAPH, "points": 2, "runs": 1, **CPU}),
    "modularity": (lu.modularity, {"graph": GRAPH, "labels": FOUND.labels}),
    "plan": (lu.plan, {"graph": GRAPH, "machine": "h200"}),
    "plan of sizes": (lu.plan, {"n_vertices": 100, "n_arcs": 1000, "machine": "h200"}),
    "sweep": (lu.sweep, {"graph": GRAPH, "policies": ["base"], "budgets": ["90%"],
                         "machine": "h200"}),
    "as_graph": (lu.as_graph, {"obj": EDGES}),
    "read_graph": (lu.read_graph, {"path": "g.csv"}),
    "read_labels": (lu.read_labels, {"path": "labels.csv"}),
    "read_partitioned": (lu.read_partitioned, {"data": "g.csv"}),
    "read_stream": (lu.read_stream, {"path": "timed.csv"}),
    "stream": (lambda **named: [*lu.read_stream("timed.csv").steps(**named)], {"every": 1},
               lu.dynamic.streams.EdgeStream.steps),
    "write_graph": (lu.write_graph, {"path": "out.csv", "graph": GRAPH, "force": True}),
    "write_labels": (lu.write_labels, {"labels": FOUND, "path": "out_l.csv", "force": True}),
    "Graph": (lu.Graph, {"offsets": GRAPH.offsets, "targets": GRAPH.targets, "weights": None,
                         "loops": GRAPH.loops}),
    "Ensemble.plot": (lambda **named: agreeing().plot(**named), {}, lambda *, ax: None),
    "ResolutionProfile.plot": (lambda **named: resolutions().plot(**named), {},
                               lambda *, ax: None),
    "ResolutionProfile.partition": (lambda **named: resolutions().partition(**named),
                                    {"resolution": 1.0}, lambda *, resolution: None),
    "Graph.from_edges": (lu.Graph.from_edges, {"source": U, "target": V}),
    "Graph.to_networkx": (GRAPH.to_networkx, {}),
    "Graph.to_igraph": (GRAPH.to_igraph, {}),
    "Communities": (lambda **named: lu.Communities(**named),
                    {"graph": GRAPH, "labels": FOUND.labels, "modularity": FOUND.modularity},
                    lambda *, graph, labels: None),
    "Communities.of": (lu.Communities.of, {"graph": GRAPH, "labels": FOUND.labels}),
    "Communities.load": (lu.Communities.load, {"path": "found.npz"}),
    "Communities.at_level": (FOUND.at_level, {"level": 0}),
    "Communities.describe": (FOUND.describe, {"nodes": pd.DataFrame({"id": range(6), "x": 1})}),
    "Communities.significance": (FOUND.significance, {"graphs": 2, **CPU}),
    "Communities.compare": (FOUND.compare, {"other": FOUND.labels}),
    "Communities.memberships": (FOUND.memberships, {}),
    "Communities.quality": (FOUND.quality, {}),
    "Communities.save": (FOUND.save, {"path": "found.npz", "force": True}),
    "Communities.subgraph": (FOUND.subgraph, {"community": 0}),
    "Communities.table": (FOUND.table, {}),
    "Communities.to_frame": (FOUND.to_frame, {}),
    "Communities.plot": (FOUND.plot, {}),
    "DynamicGraph": (lu.DynamicGraph, {"graph_or_n": GRAPH, **CPU}),
    "DynamicGraph.apply": (lambda **named: changing().apply(**named), {"insert": (U, V, W)},
                           lu.DynamicGraph.apply),
    "DynamicGraph.edit_edges": (lambda **named: changing().edit_edges(**named),
                                {"u": U, "v": V, "w": W}, lu.DynamicGraph.edit_edges),
    "DynamicGraph.add_vertices": (lambda **named: changing().add_vertices(**named), {"k": 2},
                                  lu.DynamicGraph.add_vertices),
    "DynamicGraph.remove_vertices": (lambda **named: changing().remove_vertices(**named),
                                     {"ids": [0]}, lu.DynamicGraph.remove_vertices),
    "DynamicGraph.has_edges": (changing().has_edges, {"u": U, "v": V}),
    "DynamicGraph.weights_of": (changing().weights_of, {"u": U, "v": V}),
    "DynamicGraph.neighbours": (changing().neighbours, {"v": 0}),
    "DynamicGraph.to_networkx": (changing().to_networkx, {}),
    "DynamicGraph.restored": (lu.DynamicGraph.restored,
                              {"graph": GRAPH, "alive": np.ones(6, bool), "epoch": 3}),
    "Tracker": (lambda **named: lu.Tracker(**{"graph": changing(), **named}), {"threads": 1},
                lu.Tracker),
    "Tracker.update": (lambda **named: tracker().update(**named), {"change": None},
                       lu.Tracker.update),
    "Tracker.save": (tracker().save, {"path": "t.npz", "force": True}),
    "Tracker.load": (lu.Tracker.load, {"path": "t.npz"}),
    "Louvain": (lambda **named: lu.Louvain(**{**CPU, **named}).fit(GRAPH), {}, lu.Louvain),
    "Louvain.fit": (lambda **named: lu.Louvain(**CPU).fit(**named), {"X": np.ones((3, 3))},
                    lu.Louvain.fit),
    "Placer": (lu.Placer, {"budget": "1GiB", "machine": "h200", **CPU}),
    "Placer.array": (lambda **named: placer().array(**named), {"name": "b", "shape": (10,)},
                     lu.Placer.array),
    "Placer.fill": (lambda **named: placer().fill(**named), {"name": "a", "values": np.ones(100)},
                    lu.Placer.fill),
    "Placer.get": (lambda **named: placer().get(**named), {"name": "a"}, lu.Placer.get),
    "recording": (lambda **named: lu.recording(**named).__enter__(), {}, lu.recording),
    "advance": (operators.advance, {"graph": GRAPH, "frontier": [0],
                                    "visit": lambda u, v, w, arc: u < v}),
    "filter": (operators.filter, {"graph": GRAPH, "frontier": [0], "keep": lambda v: v > 0}),
    "segmented_intersection": (operators.segmented_intersection, {"graph": GRAPH, "pairs": EDGES}),
    "profiling.load": (profiling.load, {"path": "s.npz"}),
    "profiling.import_nsys": (profiling.import_nsys, {"path": "s.sqlite"}),
    "Session.report": (lambda **named: session().report(**named), {"path": "r.html", "force": True},
                       profiling.Session.report),
    "Session.save": (lambda **named: session().save(**named), {"path": "s2.npz", "force": True},
                     profiling.Session.save),
    "Session.timeline": (lambda **named: session().timeline(**named),
                         {"path": "t.json", "force": True}, profiling.Session.timeline),
    **{name: (getattr(generators, name), {first: size})
       for name, first, size in (("geometric", "n", 50), ("grid", "dims", (3, 4)),
                                 ("lfr", "n", 300), ("planted", "n", 100),
                                 ("ring_of_cliques", "cliques", 3), ("rmat", "scale", 5),
                                 ("stencil", "dims", (3, 3)))},
}  # fmt: skip
"""Name → what is called, right arguments, and what has the signature if not what is called."""


@functools.cache
def session():
    return lu.profile(GRAPH, device="cpu")


@functools.cache
def agreeing():
    return lu.ensemble(GRAPH, runs=2, device="cpu")


@functools.cache
def resolutions():
    return lu.resolution_profile(GRAPH, points=2, runs=1, device="cpu")


def outcome(call, named, documented=()):
    """Return what is wrong about a call's end, "" if nothing is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call(**named)
        except lu.LouvainUmError as error:
            text = str(error)
            return repr(text) if "\n" in text or len(text) > LONGEST else ""
        except documented:
            return ""
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:100]!r}"
    return ""


def files():
    lu.write_graph("g.csv", GRAPH, force=True)
    lu.write_labels(FOUND, "labels.csv", force=True)
    FOUND.save("found.npz", force=True)
    tracker().save("t.npz", force=True)
    np.savetxt("timed.csv", timed(), "%d", ",")


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files()


@pytest.mark.deep
@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_are_refused_in_one_line(there, name):
    call, right, *of = CALLS[name]
    assert outcome(call, right) == ""
    wrong = {}
    for parameter in inspect.signature(of[0] if of else call).parameters.values():
        if parameter.name == "self" or parameter.kind in PASSED_ON:
            continue
        for value in WRONG:
            if found := outcome(call, {**right, parameter.name: value}, DOCUMENTED.get(name, ())):
                wrong[parameter.name, repr(value)] = found
    assert wrong == {}


def test_every_public_call_is_tried():
    public = {name for name in lu.__all__ if inspect.isfunction(getattr(lu, name))}
    public |= {f"Graph.{name}" for name in ("from_edges", "to_networkx", "to_igraph")}
    for each in (lu.Communities, lu.DynamicGraph, lu.Tracker, profiling.Session):
        for name, method in inspect.getmembers(each, inspect.isroutine):
            if (
                name[0] != "_"
                and callable(method)
                and len(inspect.signature(method).parameters) > 1
            ):
                public.add(f"{each.__name__}.{name}")
    public |= {name for name in generators.__all__ if inspect.isfunction(getattr(generators, name))}
    assert public - CALLS.keys() == {"detect_partitioned"}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: lu.louvain(GRAPH, observer=3), "observer must be a function, not 3"),
        (lambda: lu.ensemble(GRAPH, progress="x"), "progress must be True, False or a function"),
        (lambda: FOUND.memberships(threshold=None), "threshold must be a number, not None"),
        (lambda: FOUND.significance(seed=None), "seed must lie in 0 … 2^32 - 1, not None"),
        (lambda: lu.profile(GRAPH, tracer="yes"), "tracer must be True or False, not 'yes'"),
        (lambda: lu.profile(GRAPH, sources=3), "sources must be a list, not 3"),
        (lambda: lu.profile(GRAPH, save_to=3), "save_to must be a path, not 3"),
        (lambda: FOUND.to_networkx() and GRAPH.to_networkx(3), "attributes must be a dict, not 3"),
        (lambda: placer().get("b"), "name must be that of an array (a), not 'b'"),
        (lambda: lu.Graph([0], GRAPH.targets, None, GRAPH.loops), "use Graph.from_edges"),
    ],
)
def test_messages_name_the_argument_and_what_it_must_be(call, said):
    with pytest.raises(lu.LouvainUmError) as caught:
        call()
    assert said in str(caught.value)
