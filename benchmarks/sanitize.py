"""Small runs for compute-sanitizer: both methods, weighted and not, in core and within a budget.

    compute-sanitizer --tool memcheck python benchmarks/sanitize.py 12
    compute-sanitizer --tool racecheck python benchmarks/sanitize.py 10

Runs on R-MAT graphs of that scale, and one less with weights; on a mesh with a vertex that has more
arcs than any table on a multiprocessor holds, also with weights whose sums take 64 bits; on a
larger mesh in core, which is added up as large levels are; and on one that is larger still, in
blocks, for two levels. Checks every label against the CPU engine's.
"""

from __future__ import annotations

import argparse

import numpy as np

import louvain_um as lu
from louvain_um.errors import MemoryBudgetError
from louvain_um.generators import rmat, stencil
from louvain_um.placement.policy import Placement, Policy

PREFETCHED = Policy(
    name="prefetched",
    placements=dict.fromkeys(("hash", "community", "scratch"), Placement("device"))
    | {"graph": Placement("prefetched")},
)
"""Level 0's arcs come and go in blocks."""

CASES = (("device", None), ("auto", "70%"), ("auto", "50%"), ("base", None))
"""At 70 % scratch is small, at 50 % arcs are packed and some of the run lies on the host."""
BLOCKS = (("base", "60%"), (PREFETCHED, "60%"))
MESH, LARGER = (40, 40, 40), (48, 48, 48)
SHEET = (60, 60)
HEAVY = 1 << 22
"""Weight of an arc with which a sheet's total needs more than 32 bits."""


def hub(weight: int = 1) -> lu.Graph:
    """Return a sheet whose first vertex is joined to every other."""
    sheet = stencil(SHEET).graph
    ends = np.repeat(np.arange(sheet.n_vertices), np.diff(sheet.offsets))
    others = np.arange(1, sheet.n_vertices)
    u, v = np.append(ends, 0 * others), np.append(sheet.targets, others)
    once = np.unique(np.sort(np.stack((u, v), axis=1), axis=1), axis=0)
    weights = np.full(len(once), weight) if weight != 1 else None
    return lu.Graph.from_edges(once[:, 0], once[:, 1], weights, n_vertices=sheet.n_vertices)


def main() -> None:
    """Run every case once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scale", type=int, nargs="?", default=12)
    scale = parser.parse_args().scale
    weighted = rmat(scale - 1, weights="uniform", seed=1).graph
    graphs = (
        (rmat(scale, seed=1).graph, CASES, None),
        (weighted, CASES, None),
        (hub(), CASES[:3], None),
        (hub(HEAVY), CASES[:1], None),
        (stencil(MESH).graph, CASES[:1], None),
        (stencil(LARGER).graph, BLOCKS, 2),  # racecheck takes minutes for what comes after
    )
    for graph, cases, levels in graphs:
        for detect in (lu.louvain, lu.leiden):
            want = detect(graph, device="cpu", max_level=levels).labels
            for memory, budget in cases:
                name = getattr(memory, "name", memory)
                told = f"{detect.__name__} {graph} {name} {budget or 'in core'}"
                try:
                    where = {"device": "cuda", "memory": memory, "device_budget": budget}
                    found = detect(graph, max_level=levels, **where)
                except MemoryBudgetError as error:
                    print(f"{told}: refused, {error}", flush=True)
                    continue
                assert np.array_equal(found.labels, want), told
                moved = found.provenance["traffic_bytes"]["to_device"]
                assert moved or cases is not BLOCKS, f"{told}: not in blocks"
                print(f"{told}: the CPU's labels", flush=True)


if __name__ == "__main__":
    main()
