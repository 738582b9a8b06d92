"""What a user of a Placer declares: arrays, and the phases that they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from louvain_um.errors import OptionError
from louvain_um.placement.program.accesses import check_name
from louvain_um.placement.program.backends import Slot
from louvain_um.placement.program.program import ONLY, Phase, Program, ProgramArray


class Declarations:
    """Arrays by name, in the order of their declaration."""

    def __init__(self, name: str, phases: Sequence[Phase | str] = ()) -> None:
        self.name = name
        if isinstance(phases, str):
            raise OptionError("phases", phases, "must be a list, like ['run']")
        self.phases = tuple(p if isinstance(p, Phase) else Phase(name=p) for p in phases)
        self.slots: dict[str, Slot] = {}
        self.operations: dict[str, float] = {}
        self._only: str | None = None

    def add(self, spec: ProgramArray, source: Any = None) -> Slot:
        """Add an array."""
        if spec.name in self.slots:
            raise OptionError("name", spec.name, "must be another: there is such an array already")
        if source is not None:
            _check_source(spec, source)
        slot = self.slots[spec.name] = Slot(spec, source)
        return slot

    @property
    def program(self) -> Program:
        """What was declared so far."""
        arrays = [slot.spec for slot in self.slots.values()]
        phases = self.phases or tuple(Phase(name=name) for name in self._named) or (ONLY,)
        known = self.operations
        return Program(
            name=self.name,
            arrays=arrays,
            phases=[replace(p, operations=known.get(p.name, p.operations)) for p in phases],
        )

    def phase(self, name: str) -> str:
        """Return the phase of a name; if none was declared."""
        program = self.program
        if self.phases or self._named:
            return program.phase(name).name
        if self._only is None:
            check_name("phase", name)
            self._only = name
        if name != self._only:
            raise OptionError(
                "phase", name, f"use {self._only!r} again, or declare phases=[…] with the Placer",
                problem=f"no phase {str(name)[:40]!r} was declared, and {self._only!r} has run",
            )  # fmt: skip
        return program.phases[0].name

    @property
    def _named(self) -> list[str]:
        """Phases that arrays name, in order."""
        found = list[str]()
        for slot in self.slots.values():
            found += slot.spec.phases or ()
            for accesses in (slot.spec.reads, slot.spec.writes):
                found += accesses if isinstance(accesses, Mapping) else ()
        return list(dict.fromkeys(found))


def _check_source(spec: ProgramArray, source: Any) -> None:
    held = getattr(source, "dtype", np.dtype(object))
    if getattr(held, "kind", None) in ("O", "S", "U") and held != spec.dtype:
        raise OptionError("source", source, f"of array {spec.name} must be an array of numbers")
    try:
        fits = np.broadcast_shapes(source.shape, spec.shape) == spec.shape
    except ValueError:
        fits = False
    if not fits:
        raise OptionError(
            "source", tuple(source.shape), f"of array {spec.name} must fit shape {spec.shape}"
        )
