"""Published stores of changing graphs: the same batches on each, on three kinds of graph.

    python benchmarks/stores.py [--scale 16] [--batches 1000,10000,100000] [--steps 3]
                                [--trials 100000]

A grid of roads, a graph with power-law degrees and one with communities, of 2^scale vertices each.
Random edges are deleted and as many inserted, as `louvain-um stores` does, on the CPU. With batches
of one size all else that `--also all` measures, too: batches that come sorted or meet at few
vertices, PageRank, triangles, vertices added and removed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import machine, save

from louvain_um import generators
from louvain_um.dynamic.comparison import Comparison, compare_stores
from louvain_um.dynamic.stores import STORES
from louvain_um.dynamic.trials import TRIALS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=int, default=16)
    parser.add_argument("--batches", default="1000,10000,100000")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--stores", default=",".join(STORES))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    side = round(2 ** (args.scale / 2))
    graphs = {
        "roads": generators.stencil((side, side)).graph,
        "power law": generators.rmat(args.scale, seed=1).graph,
        "communities": generators.lfr(1 << args.scale, seed=1).graph,
    }
    settings = Comparison(
        stores=tuple(args.stores.split(",")),
        batches=tuple(map(int, args.batches.split(","))),
        steps=args.steps,
    )
    trials = replace(settings, batches=(args.trials,), steps=1, also=tuple(TRIALS))
    with tempfile.TemporaryDirectory() as folder:
        found, tried = (
            compare_stores(graphs.items(), chosen, Path(folder, name), tell=print)
            for name, chosen in (("stores", settings), ("trials", trials))
        )
    for records in (found, tried):
        contents = {(r["graph"], r["batch"]): r["contents"] for r in records}
        assert all(r["contents"] == contents[r["graph"], r["batch"]] for r in records)
    about = {
        name: {"vertices": graph.n_vertices, "arcs": graph.n_arcs} for name, graph in graphs.items()
    }
    record = {"machine": machine(), "graphs": about, "results": plain(found)}
    print(json.dumps(record["results"][-1]))
    save("stores", record | {"trials": plain(tried)}, args.out)


def plain(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records without digests and what was not measured."""
    left_out = ("digest", "contents")
    return [{k: v for k, v in r.items() if k not in left_out and v is not None} for r in records]


if __name__ == "__main__":
    main()
