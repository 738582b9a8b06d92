"""Bytes that kernels read over the bus where they are: counted from arcs visited and placements.

Arcs and labels are counted as the kernels count them; of other arrays in host memory, what their
declarations say of level 0, in proportion to the arcs visited. Of an array that is split, the host
is taken to serve its share of the reads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from louvain_um.core.array_spec import STAGES, ArraySpec, Stage
from louvain_um.core.hierarchy import MoveStats
from louvain_um.core.ledger import Group
from louvain_um.core.rules import CYCLES
from louvain_um.events import Event, Observer, Phase
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.memory.array_specs import VISITED
from louvain_um.placement.memory.run_memory import RunMemory

COUNTED: Final = ("targets", "weights", "labels", "refined")
"""Roles that are counted, not declared."""


def declared_reads(arrays: Sequence[ArraySpec]) -> dict[Stage, list[tuple[str, Group, float]]]:
    """Return, by stage, the arrays that kernels do not count, and the bytes that they read."""
    found = {stage: list[tuple[str, Group, float]]() for stage in STAGES}
    for array in arrays:
        if array.role in COUNTED or array.level not in (0, None) or array.estimated:
            continue
        for stage in STAGES:
            count = sum(n for (where, _), n in array.accesses.items() if where == stage)
            if count:
                found[stage].append((array.name, array.group, count * array.itemsize))
    return found


class InPlace:
    """Counts the bytes of a run, and announces them."""

    def __init__(
        self, memory: RunMemory, observer: Observer, arrays: Sequence[ArraySpec], method: str
    ) -> None:
        self.memory = memory
        self.observer = observer
        self.declared = declared_reads(arrays)
        self.cycles = CYCLES["leiden" if method == "leiden" else "louvain"]
        self.nbytes: defaultdict[tuple[str, Phase, int], int] = defaultdict(int)
        self.planned = not memory.arenas.all_on_device

    @property
    def possible(self) -> bool:
        """Whether any array may lie in host memory."""
        return self.planned or bool(self.memory.overflowed)

    def shares(self, level: GpuLevel) -> dict[str, float]:
        """Return the share of each array of a level's rows that is on the host."""
        if not self.possible:
            return {}
        names = [f"{name}.{level.tag}" for name in ("targets", "weights")]
        return {name: self.memory.host_share(name) for name in names}

    def move(self, level: GpuLevel, moved: MoveStats) -> None:
        """Count a move phase."""
        if not self.possible:
            return
        seen, again = moved.arcs_visited, level.read_again
        self._rows(level, "move", seen + again, seen)
        self._read(f"labels.{level.cycle}.{level.number}", "move", level, 4 * (seen + again))
        if level.number == 0:
            self._declared(level, "move", seen / max(VISITED * level.arcs, 1))

    def refine(self, level: GpuLevel) -> None:
        """Count a refinement: each row is weighed, and decided for while its vertex is alone."""
        if not self.possible:
            return
        self._rows(level, "refine", 2 * level.arcs, 2 * level.arcs)
        for stem in ("labels", "refined"):
            name = f"{stem}.{level.cycle}.{level.number}"
            self._read(name, "refine", level, 8 * level.arcs)
        if level.number == 0:
            self._declared(level, "refine", 1 / self.cycles)

    def aggregate(self, level: GpuLevel, coarse: GpuLevel, before: dict[str, float]) -> None:
        """Count an aggregation, after it; `before` are the shares of rows on the host before it."""
        if not self.possible:
            return
        for name, share in self.shares(level).items():
            between = (before.get(name, 0.0) + share) / 2
            self._add(name, "aggregate", level, int(self._width(level, name) * level.arcs), between)
        stem = (
            "refined" if f"refined.{level.cycle}.{level.number}" in self.memory.live else "labels"
        )
        name = f"{stem}.{level.cycle}.{level.number}"
        self._read(name, "aggregate", level, 4 * level.arcs)
        if coarse.start is not None and coarse.start_sums is None:
            self._rows(coarse, "aggregate", coarse.arcs, coarse.arcs)  # its quality
        if level.number == 0:
            self._declared(level, "aggregate", 1 / self.cycles)

    def _rows(self, level: GpuLevel, phase: Phase, targets: int, weights: int) -> None:
        for name, arcs in ((f"targets.{level.tag}", targets), (f"weights.{level.tag}", weights)):
            self._read(name, phase, level, int(self._width(level, name) * arcs))

    def _width(self, level: GpuLevel, name: str) -> float:
        if name.startswith("targets"):
            return level.target_bytes
        return 0 if level.weights is None else int(level.weights.dtype.itemsize)

    def _declared(self, level: GpuLevel, stage: Stage, share: float) -> None:
        """Count arrays that kernels do not count, as declared for level 0."""
        for name, group, nbytes in self.declared[stage]:
            there = self.memory.placed_on_host(name, group)
            self._add(name, stage, level, int(share * nbytes), there)

    def _read(self, name: str, phase: Any, level: GpuLevel, nbytes: int) -> None:
        self._add(name, phase, level, nbytes, self.memory.host_share(name))

    def _add(self, name: str, phase: Any, level: GpuLevel, nbytes: int, share: float) -> None:
        there = int(share * nbytes)
        if not there:
            return
        self.nbytes[name, phase, level.number] += there
        self.observer(
            Event(kind="in_place", phase=phase, level=level.number, name=name, nbytes=there)
        )

    def summary(self) -> list[dict[str, Any]]:
        """Return the bytes by array, phase and level, most first."""
        rows = sorted(self.nbytes.items(), key=lambda row: -row[1])
        return [
            {"array": name, "phase": phase, "level": level, "bytes": nbytes}
            for (name, phase, level), nbytes in rows
        ]
