"""Seconds that are expected of the zoo's runs when level 1 is there, from records alone.

    python benchmarks/zoo_predictions.py zoo_h200.json

Plans are made anew from the `shape` of each graph. How many runs take a time in the range before
them; and how many what is expected then, to within a quarter: with the rates of the package; with
rates fitted to half of the kinds, on the others; and on each kind with rates fitted to all others.
A fit begins with the package's rates and leaves them only where that pays: twenty kinds tell little
of so many rates.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from louvain_um.gpu.memory.shape import Shape
from louvain_um.options import Budget
from louvain_um.placement.model.remaining import Found, Rates, Remaining
from louvain_um.placement.model.time_range import TimeRange
from louvain_um.placement.plan import Plan
from louvain_um.planning import plan_shape

NEAR = 0.25
STEPS = (0.6, 0.8, 0.95, 1.05, 1.25, 1.6)
ROUNDS = 8
OUTLIER = 0.5
"""Logarithm of an error from which it counts no more: a fit is not to follow single kinds."""

RUNS_A_KIND = 10

LEAVES = 3.0
"""What a fit gives for leaving a rate by a factor of e, in errors of that size."""


@dataclass(frozen=True)
class Run:
    """A recorded run, its range before, and what was known of it when level 1 was there."""

    kind: str
    fitted: bool
    seconds: float
    range: TimeRange
    known: Remaining

    def error(self, rates: Rates) -> float:
        """Return the logarithm of expected by measured seconds."""
        return math.log(replace(self.known, rates=rates).seconds / self.seconds)


def planned(row: dict[str, Any]) -> Plan:
    """Return the plan of a recorded run."""
    size = {"vertices": row["vertices"], "arcs": row["arcs"], "method": row["method"]}
    shape = Shape(**size, **row["shape"])
    skew = shape.skew * shape.arcs / max(shape.vertices, 1)
    return plan_shape(shape, "auto", Budget.parse(row["budget_bytes"]), "h200", skew=skew)


def level_1(row: dict[str, Any]) -> Found | None:
    """Return what was known of a recorded run when level 1 was there; None if it never was."""
    first = [level for level in row.get("levels", ()) if level[0] == 0]
    if len(first) < 2:
        return None
    (_, _, arcs, seconds, _, visited, communities), (_, vertices, kept, *_) = first[:2]
    return Found(
        seconds=seconds,
        visited=visited / arcs,
        arcs=kept,
        vertices=vertices,
        communities=communities,
        isolated=row["shape"]["isolated"],
        skew=row["shape"]["skew"],
        max_degree=row["shape"]["max_degree"],
    )


def runs(rows: list[dict[str, Any]]) -> list[Run]:
    """Return the runs of `auto` that made level 1."""
    found = []
    for row in rows:
        if row["policy"] == "auto" and (known := level_1(row)):
            plan = planned(row)
            facts = row["kind"], row["fitted"], row["seconds"]
            found.append(Run(*facts, plan.seconds_range, plan.remaining(known)))
    return found


def near(found: list[Run], rates: Rates) -> int:
    """Return how many runs were expected to within a quarter."""
    return sum(abs(math.exp(run.error(rates)) - 1) <= NEAR for run in found)


def fit(found: list[Run]) -> Rates:
    """Return rates with a small mean error, one after the other varied; each kind counts alike."""
    weight = {run.kind: 0 for run in found}
    for run in found:
        weight[run.kind] += 1

    names = [field.name for field in fields(Rates)]
    begin = rates = Rates()

    def loss(rates: Rates) -> float:
        left = sum(math.log(getattr(rates, name) / getattr(begin, name)) ** 2 for name in names)
        errors = (min(abs(run.error(rates)), OUTLIER) / weight[run.kind] for run in found)
        return LEAVES * left / RUNS_A_KIND + sum(errors)

    for _ in range(ROUNDS):
        before = rates
        for name in names:
            tried = [replace(rates, **{name: step * getattr(rates, name)}) for step in STEPS]
            rates = min([rates, *tried], key=loss)
        if rates == before:
            break
    return rates


def main() -> None:
    """Print how many runs were expected."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    files = parser.parse_args().files
    found = runs([row for file in files for row in json.loads(file.read_text())["results"]])
    half = [run for run in found if run.fitted]
    others = [run for run in found if not run.fitted]
    held, apart = ([run for run in of if run.seconds in run.range] for of in (found, others))
    print(f"in the range before: {len(held)} of {len(found)}, others {len(apart)} of {len(others)}")
    print(f"as the package has them: {near(found, Rates())} of {len(found)}, {Rates()}")
    print(f"  kinds fitted to {near(half, Rates())} of {len(half)}", end=", ")
    print(f"others {near(others, Rates())} of {len(others)}")
    rates = fit(half)
    print(f"fitted to half: {near(others, rates)} of {len(others)} others, {rates}")
    total = 0
    for kind in sorted({run.kind for run in found}):
        left = [run for run in found if run.kind == kind]
        hits = near(left, fit([run for run in found if run.kind != kind]))
        total += hits
        print(f"  without {kind}: {hits} of {len(left)}", flush=True)
    print(f"leave one kind out: {total} of {len(found)}")


if __name__ == "__main__":
    main()
