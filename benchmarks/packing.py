"""What packing targets gains, and what placing arrays: each with and without the other.

    python benchmarks/packing.py lfr24 rmat24 -o packing_h200.json

`adv2` leaves the graph on the host and all else on the device; `auto` places every array. Each runs
with targets of 32 bits and of 24, and with shares of the in-core memory. The shortest of `--runs`
counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from common import device_graph, machine, save
from zoo import point

from louvain_um.placement import plan
from louvain_um.placement.policy.auto import choose
from louvain_um.placement.policy.candidate import best_of, candidate
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO

Choose = Callable[..., Any]


def unpacked(default: Any, declare: Any, work: Any, limit: int, *asked: Any) -> Any:
    """Choose as `auto` does, where targets cannot be packed."""
    out_of_core, _, free = asked
    return choose(default, declare, work, limit, out_of_core, None, free)


def packed_adv2(
    default: Any, declare: Any, work: Any, limit: int, _out: Any, compact: Any, _free: Any
) -> Any:
    """Place arrays as `adv2` does, with packed targets."""
    policy = replace(find_policy("adv2"), name=AUTO.name)
    found = [
        candidate(policy, compact(small), work, limit, low_scratch=small, compact=True, like="adv2")
        for small in (False, True)
    ]
    return best_of(found, limit) or found[-1]


WAYS: dict[str, tuple[str, int, Choose]] = {
    "auto, 24 bits": ("auto", 24, choose),
    "auto, 32 bits": ("auto", 32, unpacked),
    "adv2, 24 bits": ("auto", 24, packed_adv2),
    "adv2, 32 bits": ("adv2", 32, choose),
}


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("graphs", nargs="+", help="lfr24, rmat24 …, as in gpu_detect.py")
    parser.add_argument("--budgets", default="70%,50%,30%")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=500, help="seconds for everything")
    parser.add_argument("-o", "--out", type=Path, required=True)
    chosen = parser.parse_args()
    import cupy

    begun, results = time.perf_counter(), []
    for name in chosen.graphs:
        graph = device_graph(name).to_host()
        cupy.get_default_memory_pool().free_all_blocks()
        core = point(graph, chosen.runs, memory="auto")
        of = {"graph": name, "vertices": graph.n_vertices, "arcs": graph.n_arcs}
        results.append({**of, "way": "in core", "budget": None, **core})
        print(f"{name} in core: {1e3 * core['seconds']:.1f} ms", flush=True)
        for budget in chosen.budgets.split(","):
            for way, (policy, bits, how) in WAYS.items():
                if time.perf_counter() - begun > chosen.limit:
                    return print("out of time", flush=True)
                with mock.patch.object(plan, "choose", how):
                    row = point(graph, chosen.runs, memory=policy, device_budget=budget)
                if row["feasible"]:
                    row["times"] = row["seconds"] / core["seconds"]
                    row["same_labels"] = row["labels"] == core["labels"]
                results.append({**of, "way": way, "bits": bits, "budget": budget, **row})
                save("packing_h200", {"machine": machine(), "results": results}, chosen.out)
                told = f"x{row['times']:.2f}" if row["feasible"] else row["reason"][:80]
                print(f"{name} {budget} {way}: {told}", flush=True)
    return None


if __name__ == "__main__":
    main()
