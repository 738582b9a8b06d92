"""Published stores of changing graphs: the same batches on each, on three kinds of graph.

    python benchmarks/stores.py [--scale 16] [--batches 1000,10000,100000] [--steps 3]
                                [--trials 20000] [--trial-scale 16] [--passes 3]
                                [--device cpu|cuda]

A grid of roads, a graph with power-law degrees and one with communities, of 2^scale vertices each.
Random edges are deleted and as many inserted, as `louvain-um stores` does. Then all
else that `--also all` measures, on smaller graphs of the same kinds: batches that come sorted or
meet at few vertices, PageRank, triangles, vertices added and removed. Stores take turns there, so
that other work on the machine slows all of them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from common import machine, save

from louvain_um import generators
from louvain_um.analysis.stores.comparison import Comparison, compare_stores
from louvain_um.analysis.stores.trials import TRIALS, Trials
from louvain_um.dynamic.graph import DynamicGraph
from louvain_um.dynamic.scenarios import churn
from louvain_um.dynamic.stores import DEVICE_STORES, STORES
from louvain_um.graph.graph import Graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=int, default=16)
    parser.add_argument("--batches", default="1000,10000,100000")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--trial-scale", type=int, default=16)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--stores", help="by default all that the device has")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    every_store = STORES if args.device == "cpu" else DEVICE_STORES
    settings = Comparison(
        stores=tuple(args.stores.split(",") if args.stores else every_store),
        device=args.device,
        batches=tuple(map(int, args.batches.split(","))),
        steps=args.steps,
    )
    record: dict[str, Any] = {"machine": machine(), "graphs": {}, "results": [], "trials": []}
    small = graphs_of(args.trial_scale)
    for name, graph in graphs_of(args.scale).items():
        with tempfile.TemporaryDirectory() as folder:
            found = compare_stores([(name, graph)], settings, Path(folder, "stores"), tell=print)
        record["graphs"][name] = {"vertices": graph.n_vertices, "arcs": graph.n_arcs}
        record["results"] += checked(found)
        record["trials"] += trials(name, small[name], settings, args)
        save("stores" if args.device == "cpu" else "stores_h200", record, args.out)
        print(json.dumps(record["results"][-1]), flush=True)


def checked(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return points to record; all stores hold the same after the same batches."""
    contents = {r["batch"]: r["contents"] for r in found}
    assert all(r["contents"] == contents[r["batch"]] for r in found)
    left_out = ("digest", "contents")
    return [{k: v for k, v in r.items() if k not in left_out and v is not None} for r in found]


def graphs_of(scale: int) -> dict[str, Graph]:
    """Return a graph of each kind with 2^scale vertices."""
    side = round(2 ** (scale / 2))
    return {
        "roads": generators.stencil((side, side)).graph,
        "power law": generators.rmat(scale, seed=1).graph,
        "communities": generators.lfr(1 << scale, seed=1).graph,
    }


def trials(
    name: str, graph: Graph, settings: Comparison, args: argparse.Namespace
) -> list[dict[str, Any]]:
    """Return the fastest of each trial, the stores in turns: other work slows all of them."""
    graphs = {
        store: DynamicGraph(graph, store=store, device=settings.device, names=False)
        for store in settings.stores
    }
    for held in graphs.values():
        for step in churn(graph, batch=args.trials, steps=1).steps():
            step.apply(held)
    where = {"graph": name, "vertices": graph.n_vertices, "arcs": graph.n_arcs}
    best = {store: {**where, "store": store, "batch": args.trials} for store in graphs}
    for run in range(args.passes):
        print(name, "trials", run)
        for store, held in graphs.items():
            chosen = tuple(TRIALS) if run == args.passes - 1 else tuple(TRIALS)[:-1]
            found = Trials(held, args.trials, settings.device, run).run(chosen)
            best[store] |= {k: min(v, best[store].get(k, v)) for k, v in found.items()}
    assert len({held.digest() for held in graphs.values()}) == 1
    return list(best.values())


if __name__ == "__main__":
    main()
