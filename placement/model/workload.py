"""The work that declared arrays stand for: a graph, its kind, and the machine that it runs on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from louvain_um.core.array_spec import ArraySpec, Stage
from louvain_um.core.rules import CYCLES
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.model.graph_kinds import (
    GraphKind,
    kind_of,
    named_kind,
    seconds_in_core,
    sweeps,
)
from louvain_um.placement.model.remote_access import Scales

Source = Literal["host", "device"]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The inputs of every prediction."""

    vertices: int
    arcs: int
    machine: Machine
    kind: GraphKind
    method: str
    visited: float
    source: Source = "host"
    max_degree: int = 0
    core_scale: float = 1.0
    bus_scale: float = 1.0

    @cached_property
    def core(self) -> dict[Stage, float]:
        """Seconds of each stage with everything in device memory, loading apart."""
        found = seconds_in_core(
            self.kind, self.vertices, self.arcs, self.machine, self.method, self.visited
        )
        return {stage: self.core_scale * seconds for stage, seconds in found.items()}

    @property
    def mean_degree(self) -> float:
        """Arcs per vertex."""
        return self.arcs / max(self.vertices, 1)

    @property
    def passes(self) -> float:
        """How often all arcs of level 0 are moved to the device, if they are out of core."""
        return sum(sweeps(self.kind, self.method).values())

    def scales(
        self, arrays: Sequence[ArraySpec], *, coming: float = 0.0, low_scratch: bool = False
    ) -> Scales:
        """Return by how much accesses differ from what arrays declare; see `Scales`."""
        adding = self.kind.methods[self.method].cycles / CYCLES[self.method]
        return Scales(
            moving=self.moving(arrays),
            rows=self.kind.reread,
            hubs=self.kind.hubs,
            refines=self.method == "leiden",
            adding=adding,
            coming=coming,
            low_scratch=low_scratch,
        )

    def moving(self, arrays: Sequence[ArraySpec]) -> float:
        """Return by how much the accesses that arrays declare for moving differ from `visited`."""
        for array in arrays:
            # The community at the other end of an arc is looked at once for each visit.
            declared = array.accesses.get(("move", "gather"), 0.0)
            if array.role == "labels" and array.level == 0 and declared:
                return self.visited * self.arcs / declared
        return 1.0


def work_for(
    arrays: Sequence[ArraySpec],
    machine: Machine,
    *,
    kind: str | None = None,
    skew: float | None = None,
    visited: float | None = None,
    method: str | None = None,
    source: Source = "host",
    max_degree: int = 0,
) -> Workload:
    """Return the work that declared arrays stand for; only Leiden declares parts."""
    level0 = {array.role: array.size for array in arrays if array.level == 0}
    vertices, arcs = max(level0.get("offsets", 1) - 1, 0), level0.get("targets", 0)
    relative = skew * vertices / arcs if skew is not None and arcs and vertices else None
    found = kind_of(relative) if kind is None else named_kind(kind)
    return Workload(
        vertices=vertices,
        arcs=arcs,
        machine=machine,
        kind=found,
        method=method or ("leiden" if "refined" in level0 else "louvain"),
        visited=found.visited if visited is None else visited,
        source=source,
        max_degree=max_degree,
    )
