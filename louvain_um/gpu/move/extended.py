"""The extended rule on the device: arrays and arguments; `cpu.rule` is the counterpart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from louvain_um.core import rules
from louvain_um.core.numbering import sum_of_squares
from louvain_um.core.objective import Problem, Sums, masses_of
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.move.arguments import MOVE_RULE, REFINE_RULE
from louvain_um.gpu.relabel import relabel
from louvain_um.gpu.runtime.launch import Struct, pointers
from louvain_um.graph.graph import Graph
from louvain_um.placement.memory.run_memory import RunMemory


def extended_layout(base: np.dtype[Any], **fields: Any) -> np.dtype[Any]:
    """Return the layout of a structure derived from another, which has no padding to reuse."""
    kinds = {name: np.dtype(kind) for name, (kind, *_) in (base.fields or {}).items()}
    places = {name: at for name, (_, at, *_) in (base.fields or {}).items()}
    end = base.itemsize
    for name, kind in fields.items():
        kinds[name], places[name] = np.dtype(kind), end
        end += kinds[name].itemsize
    return np.dtype(
        {
            "names": list(kinds),
            "formats": list(kinds.values()),
            "offsets": list(places.values()),
            "itemsize": end,
        }
    )


EXTENDED_MOVE_RULE: Final = extended_layout(
    MOVE_RULE,
    **pointers(
        "second", "second_totals", "members", "member_totals", "fixed", "pinned", "gains",
        "incoming", "champions",
    ),
    second_rate=np.float64, most_gain=np.float64, max_size=np.uint64,
)  # fmt: skip
"""`ExtendedMoveRule` of extended_rule.cuh."""

EXTENDED_REFINE_RULE: Final = extended_layout(
    REFINE_RULE, **pointers("second", "second_totals", "sub_seconds"), second_rate=np.float64
)
"""`ExtendedRefineRule` of extended_refine.cuh."""

MASSES: Final = ("second", "members", "fixed")
"""Arrays of a level that aggregation sums besides degrees."""


def types_of(level: GpuLevel) -> str:
    """Return the template arguments of kernels by the extended rule."""
    return f"{level.types}, Extended"


def load_masses(memory: RunMemory, graph: Graph, problem: Problem, level: GpuLevel) -> None:
    """Give level 0 the masses of the objective, and what constraints need."""
    n = level.vertices
    masses, second = masses_of(graph, problem.objective.name)
    memory.fill("degrees.0", masses.view(np.uint64))
    held: dict[str, Any] = {"second": second}
    held["members"] = None if problem.max_size is None else np.ones(n, np.int64)
    held["fixed"] = None if problem.fixed is None else problem.fixed.astype(np.int64)
    for name, array in held.items():
        if array is not None:
            setattr(level, name, memory.empty(f"{name}.0.0", "community", n, np.uint64))
            memory.fill(f"{name}.0.0", array.view(np.uint64))
    if problem.start is not None:
        level.start = memory.empty("start.0.0", "community", n, np.uint32, short_lived=True)
        memory.fill("start.0.0", problem.start)


def sum_masses(memory: RunMemory, level: GpuLevel, coarse: GpuLevel) -> None:
    """Give the next level its masses."""
    for name in MASSES:
        array = getattr(level, name)
        if array is not None:
            tag = f"{coarse.cycle}.{coarse.number}"
            sums = memory.empty(f"{name}.{tag}", "community", coarse.vertices, np.uint64)
            sums.fill(0)
            relabel.run("add_masses", level.vertices, array, level.numbers, sums)
            setattr(coarse, name, sums)


def free_masses(memory: RunMemory, level: GpuLevel) -> None:
    """Free a coarse level's masses."""
    for name in MASSES:
        if getattr(level, name) is not None:
            memory.free(f"{name}.{level.cycle}.{level.number}")
            setattr(level, name, None)


def extended_sums(level: GpuLevel, sums: Sums) -> Sums:
    """Return the sums of a level's communities, weights read as signed, with second masses."""
    inside = sums.inside - (1 << 64 if sums.inside >= 1 << 63 else 0)
    if level.second is None:
        return replace(sums, inside=inside)
    second = level.second.get().view(np.int64)
    if level.start is not None:
        totals = np.zeros_like(second)
        np.add.at(totals, level.start.get(), second)
        second = totals
    return replace(sums, inside=inside, second_squares=sum_of_squares(second))


class ExtendedMove:
    """Arrays of the extended rule while vertices move; `rule` is what the kernel takes."""

    def __init__(self, memory: RunMemory, problem: Problem, level: GpuLevel, plain: Struct) -> None:
        n, objective = level.vertices, problem.objective
        self.memory = memory
        self.names: list[str] = []

        def array(name: str, dtype: Any, used: Any) -> Any:
            if used is None:
                return None
            self.names.append(name)
            return memory.empty(name, "scratch", n, dtype)

        level.second_totals = None
        if level.second is not None:
            level.second_totals = memory.empty("second_totals", "community", n, np.uint64)
        values = {name: plain.value(name) for name in MOVE_RULE.names or ()}
        values |= {"rate": objective.rate, "total": float(objective.total)}
        self.rule = Struct(
            EXTENDED_MOVE_RULE,
            **values,
            second=level.second,
            second_totals=level.second_totals,
            members=level.members,
            member_totals=array("member_totals", np.uint64, level.members),
            fixed=level.fixed,
            pinned=array("pinned", np.uint8, level.fixed),
            gains=array("gains", np.int64, level.members),
            incoming=array("incoming", np.uint64, level.members),
            champions=array("champions", np.uint32, level.members),
            second_rate=objective.second_rate,
            most_gain=rules.most_gain(n),
            max_size=problem.max_size or 0,
        )

    def free(self) -> None:
        """Free the arrays, but those that refinement reads."""
        self.memory.free(*self.names)


def refine_arrays(
    memory: RunMemory, problem: Problem, level: GpuLevel, plain: Struct
) -> tuple[Struct, list[str]]:
    """Return the extended rule of refinement, and the names of its arrays to free."""
    names = [] if level.second is None else ["refined_seconds"]
    sub_seconds = None
    if names:
        sub_seconds = memory.empty(names[0], "community", level.vertices, np.uint64)
    values = {name: plain.value(name) for name in REFINE_RULE.names or ()}
    values["rate"] = problem.objective.rate
    rule = Struct(
        EXTENDED_REFINE_RULE,
        **values,
        second=level.second,
        second_totals=level.second_totals,
        sub_seconds=sub_seconds,
        second_rate=problem.objective.second_rate,
    )
    return rule, names


def free_second_totals(memory: RunMemory, level: GpuLevel) -> None:
    """Free second totals, which refinement needs no more."""
    if level.second_totals is not None:
        memory.free("second_totals")
        level.second_totals = None
