"""How well are seconds predicted before a run? Families of graph on a GPU, fitted and judged.

    python benchmarks/predictions.py measure -o predictions_h200.json
    python benchmarks/predictions.py judge

`measure` runs members of many families in core, on a GPU, and stores what a plan knows of them and
what their levels did. `judge`, anywhere, fits `[measured_runs]` of `placement/machine/h200.toml` to
these and to the larger graphs of `graph_kinds.py`, prints it, and stores in the record how far
predictions are off: of half of the families by a fit to the other half, and of each family by a fit
to all others. `counted` is the same if visits, arcs and sweeps of all levels were known before a
run: what is off then is due to rates. In budgets, predictions are those of plans.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kinds
import numpy as np
from common import RESULTS, machine, save
from graph_kinds import made_on_host, point
from numpy.typing import NDArray

from louvain_um.gpu.memory.shape import Shape
from louvain_um.options import Budget
from louvain_um.placement.model.forecast import expected_seconds, features
from louvain_um.placement.model.workload import LocalStructure
from louvain_um.planning import measure, plan, plan_shape

Row = dict[str, Any]
Array = NDArray[np.float64]

METHODS = ("louvain", "leiden")

GRAPHS, KERNEL_WIDTH, RIDGE = 16, 4.0, 0.03
"""Graphs that others are compared with, twice the squared length of the kernel, and the ridge."""

SWEEP, LEVEL = 0.15e-3, 0.7e-3
"""Seconds that a sweep and a level take, however small."""

LEAST_OF_ARCS = 0.3
"""Share of a run that its arcs take at least."""

BUDGET_EXPONENT = 0.2
"""Power of the times in core by which ranges widen in budgets, at both ends."""

SPLITS = 8
"""Random halves of the families."""

BUSY_HOST = 1.2
"""How much longer graphs of the record took than those of `graph_kinds.py`: other programs ran on
the host. With it both are predicted alike."""


VARIANTS: dict[str, list[dict[str, Any]]] = {
    "random": [{}, {"degree": 4}, {"degree": 8}, {"degree": 16}, {"degree": 100}],
    "random_regular": [{}, {"each": 4}],
    "preferential": [{}, {"each": 2}, {"each": 6}],
    "holme_kim": [
        {}, {"each": 5}, {"closed": 0.95}, {"each": 8, "closed": 0.4},
    ],
    "small_world": [
        {}, {"far": 0.01}, {"far": 0.35}, {"far": 0.7}, {"near": 3}, {"near": 12},
        {"shuffled": True},
    ],
    "block_model": [
        {}, {"inside": 0.4}, {"size": 100}, {"size": 100, "inside": 0.85},
        {"size": 5000, "inside": 0.8},
    ],
    "nested_blocks": [{}, {"shuffled": True}],
    "kronecker": [{}, {"a": 0.5, "b": 0.2, "degree": 16}, {"a": 0.4, "b": 0.25}, {"degree": 8}],
    "road": [{}, {"share": 0.6}, {"share": 0.9}, {"shuffled": True}],
    "lattice": [{}, {"shuffled": True}],
    "grid": [{}, {"reach": 2}, {"shuffled": True}],
    "geometric": [{}, {"degree": 6}, {"degree": 30}, {"shuffled": True}],
    "nearest": [{}, {"k": 4}, {"k": 16}, {"weighted": False}, {"shuffled": True}],
    "hub_and_leaf": [{}, {"hubs": 20, "share": 10}, {"hubs": 1000, "share": 200}],
    "bipartite": [
        {}, {"inside": 0.9}, {"tastes": 1000, "each": 10, "per_item": 100},
        {"tastes": 16, "each": 40, "per_item": 2000, "inside": 0.3}, {"weighted": False},
    ],
    "chains": [{}, {"every": 5}, {"every": 100}, {"shuffled": True}],
    "cliques": [{}, {"size": 6}, {"size": 100}],
    "caveman": [{}, {"size": 12, "far": 0.3}, {"size": 60, "far": 0.5}],
    "skewed": [{"v": 4}, {"v": 12}, {"u": 3, "v": 6}, {"v": 2}, {"u": 2, "v": 2}],
    "planted": [
        {}, {"size": 50}, {"size": 50, "inside": 0.4}, {"size": 5000, "inside": 0.7},
        {"degree": 8, "inside": 0.8}, {"shuffled": True},
    ],
    "affiliation": [{}, {"size": 30, "each": 2}, {"size": 8, "each": 2}],
    "web": [{}, {"each": 16}, {"each": 4}],
    "tree": [{}, {"power": 0.3}, {"power": 3}],
    "chung_lu": [
        {}, {"exponent": 2.1}, {"exponent": 3, "degree": 8}, {"degree": 60},
    ],
    "lfr": [
        {"mixing": 0.5}, {"mixing": 0.1}, {"mixing": 0.2}, {"mixing": 0.3}, {"mixing": 0.7},
        {"mixing": 0.8}, {"min_degree": 5, "max_degree": 200, "per_vertex": 14},
        {"mixing": 0.4, "min_community": 500},
    ],
    "rmat": [{}, {"edge_factor": 8, "per_vertex": 15}, {"edge_factor": 64, "per_vertex": 110}],
    "stencil": [{}],
}  # fmt: skip
"""Families of graphs, and options of their members."""


def counts(levels: list[Any]) -> Row:
    """Return what all levels of a run did together."""
    return {
        "visits": sum(level[5] for level in levels),
        "arcs": sum(level[2] for level in levels),
        "swept": sum(level[1] * level[4] for level in levels),
        "communities": sum(level[6] for level in levels),
        "sweeps": sum(level[4] for level in levels),
        "levels": len(levels),
    }


def points(family: str, options: Row, arcs: int, runs: int) -> list[Row]:
    """Return what one graph's runs took in core, by each method."""
    graph, found = made_on_host(family, arcs, **options), list[Row]()
    for method in METHODS:
        known = measure(graph, method)
        row = point(graph, runs, method=method, memory="auto")
        shape = known.shape
        found.append({
            "family": family, "options": options, "method": method, "weighted": graph.weighted,
            "vertices": graph.n_vertices, "arcs": graph.n_arcs, "isolated": shape.isolated,
            "skew": known.skew, "structure": shape.structure, "seconds": row["seconds"],
            "predicted": row["plan"]["seconds_range"],
            "counts": counts(row["levels"]),
        })  # fmt: skip
        took = f"{1e3 * row['seconds']:.1f} ms, predicted {1e3 * row['plan']['seconds']:.1f}"
        print(f"{family} {options} {graph.n_arcs:,} {method}: {took}", flush=True)
    return found


def run_all(chosen: argparse.Namespace) -> None:
    """Run members of all families, the first of each first, and store what they took."""
    begun, results, about = time.perf_counter(), list[Row](), machine()
    most = max(map(len, VARIANTS.values()))
    asked = [
        (family, members[at], int(arcs * 1e6))
        for arcs in chosen.arcs
        for at in range(most)
        for family, members in VARIANTS.items()
        if at < len(members)
    ]
    points("random", {}, 1_000_000, 1)  # loads kernels
    for at, (family, options, arcs) in enumerate(asked):
        if time.perf_counter() - begun > chosen.limit:
            print(f"out of time: {at} of {len(asked)} graphs")
            break
        results += points(family, options, arcs, chosen.runs)
        if at % 16 == 15:
            save("predictions", {"machine": about, "results": results}, chosen.out)
    save("predictions", {"machine": about, "results": results}, chosen.out)


def known_rows(record: Row, larger: Row) -> list[Row]:
    """Return runs in core of both records, as one program on the machine takes."""
    found = [row | {"seconds": row["seconds"] / BUSY_HOST} for row in record["results"]]
    for row in larger["results"]:
        shape, kind = row["shape"], row["kind"]
        if row["policy"] == "auto" and row["budget"] is None:
            found.append({
                "family": kinds.GENERATED.get(kind, (kind.split("_")[0],))[0]
                if kind in kinds.GENERATED | kinds.SKEWED else kind,
                "kind": kind, "method": row["method"], "vertices": row["vertices"],
                "arcs": row["arcs"], "isolated": shape["isolated"],
                "skew": shape["skew"] * row["arcs"] / row["vertices"],
                "structure": shape["structure"], "seconds": row["seconds"],
                "counts": counts(row["levels"]),
            })  # fmt: skip
    return found


def features_of(row: Row) -> tuple[float, ...]:
    """Return what a prediction depends on."""
    joined = row["vertices"] - row["isolated"]
    return features(LocalStructure(*row["structure"]), joined, row["arcs"], row["skew"])


def equal_families(rows: list[Row]) -> Array:
    """Return weights of rows with which each family counts as much."""
    names = [row["family"] for row in rows]
    return np.array([1 / names.count(name) for name in names])


def spread_out(points: Array, count: int) -> Array:
    """Return some of the points: the middle one, and then always the farthest from all of these."""
    chosen = [int(np.argmin((points**2).sum(1)))]
    distances = ((points - points[chosen[0]]) ** 2).sum(1)
    while len(chosen) < min(count, len(points)):
        chosen.append(int(np.argmax(distances)))
        distances = np.minimum(distances, ((points - points[chosen[-1]]) ** 2).sum(1))
    return points[chosen]


def fit(rows: list[Row]) -> Row:
    """Return `[measured_runs]` as fitted to these rows."""
    found = np.array([features_of(row) for row in rows])
    scale = np.stack([found.mean(0), found.std(0)])
    at = (found - scale[0]) / scale[1]
    graphs = spread_out(at, GRAPHS)
    near = np.exp(-((at[:, None] - graphs) ** 2).sum(-1) / KERNEL_WIDTH)
    terms = np.hstack([np.ones((len(rows), 1)), at, near])
    model: Row = {"kernel_width": KERNEL_WIDTH, "scale": scale.tolist(), "graphs": graphs.tolist()}
    for method in sorted({row["method"] for row in rows}):
        mine = np.array([row["method"] == method for row in rows])
        of = [row for row in rows if row["method"] == method]
        seconds, steps = (
            np.array([each(row) for row in of]) for each in (lambda row: row["seconds"], of_steps)
        )
        arcs = np.maximum(seconds - steps, LEAST_OF_ARCS * seconds) / [row["arcs"] for row in of]
        weights = equal_families(of)
        model[method] = {
            "arcs": ridge(terms[mine], np.log(arcs), weights, at.shape[1]),
            "steps": ridge(terms[mine], np.log(steps), weights, at.shape[1]),
        }
    return model


def of_steps(row: Row) -> float:
    """Return seconds of sweeps and levels, however small."""
    return float(SWEEP * row["counts"]["sweeps"] + LEVEL * row["counts"]["levels"])


def ridge(terms: Array, values: Array, weights: Array, slopes: int) -> Row:
    """Return the mean, the slopes of features and the weights of graphs that give the values."""
    smooth = RIDGE * np.eye(terms.shape[1])
    smooth[0, 0] = 0
    weighed = terms.T * weights
    mean, *rest = np.linalg.solve(weighed @ terms + smooth, weighed @ values).tolist()
    return {"mean": mean, "slopes": rest[:slopes], "weights": rest[slopes:]}


def predicted(rows: list[Row], model: Row) -> Array:
    """Return predicted seconds, relative to those that runs took."""
    return np.array([
        expected_seconds(features_of(row), row["arcs"], row["method"], model) / row["seconds"]
        for row in rows
    ])  # fmt: skip


def counted(rows: list[Row], others: list[Row]) -> Array:
    """Return the same by rates of counts, which are known after a run, fitted to other rows."""
    from scipy.optimize import nnls

    def terms(some: list[Row]) -> Array:
        made = np.array([list(row["counts"].values()) for row in some], float)
        return made / np.array([[row["seconds"]] for row in some])

    root = np.sqrt(equal_families(others))
    rates, _ = nnls(terms(others) * root[:, None], root)
    return np.asarray(terms(rows) @ rates)


def by_fit(rows: list[Row], others: list[Row]) -> Array:
    """Return predicted seconds by a fit to other rows, relative to those that runs took."""
    return predicted(rows, fit(others))


def left_out(rows: list[Row], predict: Callable[[list[Row], list[Row]], Array] = by_fit) -> Array:
    """Return predicted seconds of each family by all others, relative to those that runs took."""
    found = np.ones(len(rows))
    for family in {row["family"] for row in rows}:
        mine = np.array([row["family"] == family for row in rows])
        found[mine] = predict(
            [row for row in rows if row["family"] == family],
            [row for row in rows if row["family"] != family],
        )
    return found


def ends(ratios: Array) -> tuple[float, float]:
    """Return between which times of the predicted seconds nine of ten runs took."""
    low, high = np.quantile(1 / ratios, [0.05, 0.95])
    return float(low), float(high)


def off(ratios: Array) -> float:
    """Return the median error of predictions."""
    return float(np.median(np.abs(ratios - 1)))


def judged(rows: list[Row]) -> Row:
    """Return how far predictions of a method's runs are off, and how wide their ranges are."""
    families = sorted({row["family"] for row in rows})
    halves, inside, widths = list[float](), list[bool](), list[float]()
    for seed in range(SPLITS):
        drawn = np.random.default_rng(seed).permutation(families)[::2]
        one = [row for row in rows if row["family"] in drawn]
        other = [row for row in rows if row["family"] not in drawn]
        for known, unknown in ((one, other), (other, one)):
            low, high = ends(left_out(known))
            ratios = by_fit(unknown, known)
            halves += ratios.tolist()
            inside += ((low * ratios <= 1) & (high * ratios >= 1)).tolist()
            widths.append(high / low)
    unseen, larger = left_out(rows), np.array(["kind" in row for row in rows])
    low, high = ends(unseen)
    return {
        "method": rows[0]["method"], "runs": len(rows), "families": len(families),
        "halves": off(np.array(halves)), "inside_of_halves": sum(inside) / len(inside),
        "width_of_halves": float(np.median(widths)), "left_out": off(unseen),
        "width": high / low, "larger": off(unseen[larger]), "counted": off(left_out(rows, counted)),
    }  # fmt: skip


def by_size(rows: list[Row]) -> Array:
    """Return seconds of plans that know nothing but sizes, relative to those that runs took."""
    return np.array([
        plan(n_vertices=row["vertices"], n_arcs=row["arcs"], method=row["method"], machine="h200")
        .seconds / row["seconds"]
        for row in rows
    ])  # fmt: skip


def in_budgets(larger: Row, rows: list[Row]) -> list[Row]:
    """Return what kinds of graph took in budgets, relative to the seconds of plans.

    Families are left out one by one; times in core by which plans multiply are their own.
    """
    unseen = dict(
        zip(((row.get("kind"), row["method"]) for row in rows), left_out(rows), strict=True)
    )
    core = {(row.get("kind"), row["method"]): row["seconds"] for row in rows}
    found = []
    for row in larger["results"]:
        key = row["kind"], row["method"]
        if row["policy"] != "auto" or key not in unseen:
            continue
        size = {"vertices": row["vertices"], "arcs": row["arcs"]}
        shape = Shape(**size, method=row["method"], **row["shape"])
        skew = shape.skew * shape.arcs / shape.vertices
        budget = Budget.parse(row["budget_bytes"])
        planned = plan_shape(shape, "auto", budget, "h200", skew=skew)
        times = planned.seconds / planned.seconds_in_core
        found.append({
            "method": row["method"], "budget": row["budget"], "times": times,
            "ratio": unseen[key] * core[key] * times / row["seconds"],
        })  # fmt: skip
    return found


def rounded(value: Any) -> Any:
    """Return numbers, in lists and tables too, with four digits."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.4g}")


def as_toml(model: Row) -> str:
    """Return a fit as the machine's data file holds it."""
    lines = [
        "[measured_runs]",
        f"kernel_width = {model['kernel_width']}",
        f"budget_exponent = {model['budget_exponent']}",
    ]
    for key in ("scale", "graphs"):
        lines += [f"{key} = [", *(f"    {row}," for row in model[key]), "]"]
    for part in ("unsampled", *METHODS):
        of = model[part]
        lines += ["", f"[measured_runs.{part}]", f"low = {of['low']}", f"high = {of['high']}"]
        for each in ("arcs", "steps"):
            if each in of:
                lines += ["", f"[measured_runs.{part}.{each}]"]
                lines += [f"{key} = {value}" for key, value in of[each].items()]
    return "\n".join(lines)


def judge(chosen: argparse.Namespace) -> None:
    """Print a fit to both records, and store how far predictions are off."""
    path = RESULTS / "predictions_h200.json"
    record, larger = (json.loads(each.read_text()) for each in (path, chosen.larger))
    rows = known_rows(record, larger)
    of = {method: [row for row in rows if row["method"] == method] for method in METHODS}
    model = fit(rows) | {"budget_exponent": BUDGET_EXPONENT}
    ranges = {method: ends(left_out(mine)) for method, mine in of.items()}
    for part, (low, high) in (ranges | {"unsampled": ends(by_size(rows))}).items():
        model[part] = model.get(part, {}) | {"low": low, "high": high}
    print(as_toml(rounded(model)))
    record["summary"] = [judged(mine) for mine in of.values()]
    record["budgets"] = []
    for method, mine in of.items():
        planned, (low, high) = in_budgets(larger, mine), ranges[method]
        for budget in dict.fromkeys(row["budget"] for row in planned):
            some = [row for row in planned if row["budget"] == budget]
            ratios = np.array([row["ratio"] for row in some])
            more = np.array([max(row["times"], 1.0) ** BUDGET_EXPONENT for row in some])
            inside = (low * ratios <= more) & (high * ratios * more >= 1)
            record["budgets"].append({
                "method": method, "budget": budget or "in core", "runs": len(some),
                "off": off(ratios), "inside": float(inside.mean()),
                "width": float(np.median(high / low * more**2)),
            })  # fmt: skip
    for row in record["summary"] + record["budgets"]:
        print("#", row)
    save("predictions_h200", record, path)


def main() -> None:
    """Measure on a GPU, or fit and judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("--arcs", type=float, nargs="*", default=[28], help="millions, about")
    measuring.add_argument("--runs", type=int, default=2)
    measuring.add_argument("--limit", type=float, default=540, help="seconds for everything")
    measuring.add_argument("-o", "--out", type=Path, required=True)
    measuring.set_defaults(run=run_all)
    judging = commands.add_parser("judge")
    judging.add_argument("--larger", type=Path, default=RESULTS / "graph_kinds_h200.json")
    judging.set_defaults(run=judge)
    chosen = parser.parse_args()
    chosen.run(chosen)


if __name__ == "__main__":
    main()
