"""Where the arrays of a Placer get their memory: what any backend does, and the host's alone.

Where there is no GPU arrays are NumPy's, so that the same code runs on a laptop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import OptionError, PlacementError
from louvain_um.placement.policy.policy import Placement
from louvain_um.placement.program.program import ONLY, Phase, Program, ProgramArray, check_name

State = Literal["declared", "live", "outside", "closed"]


@dataclass(eq=False)
class Slot:
    """An array of a Placer."""

    spec: ProgramArray
    source: Any = None
    array: Any = None
    placement: Placement | None = None
    memory: Any = None
    state: State = "declared"

    def check(self) -> None:
        """Refuse to use the array while it has no memory."""
        if self.state == "live":
            return
        name = self.spec.name
        phases = ", ".join(self.spec.phases or ())
        raise PlacementError(
            {
                "declared": f"array {name!r} has no memory yet; call solve() of its Placer first",
                "outside": f"array {name!r} lives only in phase {phases}; use it there, or declare "
                "it for this phase, too",
                "closed": f"array {name!r} is gone: its Placer was closed; use it inside the block",
            }[self.state]
        )


class Backend(Protocol):
    """Where the arrays of a Placer get their memory: a device, or the host alone."""

    managed: bool
    name: str

    def room(self) -> int | None:
        """Return the bytes of the device that may be taken; None if there is no device."""

    def new(self, slot: Slot) -> Any:
        """Return the user's array, which has no memory yet."""

    def prepare(self, slots: list[Slot]) -> None:
        """Learn what is to be allocated together."""

    def give(self, slot: Slot) -> None:
        """Allocate a slot's memory where it is placed, and write its source there."""

    def fill(self, slot: Slot, source: Any) -> None:
        """Write values where a live array lives, or where it begins if there are fewer."""

    def fetch(self, slot: Slot) -> NDArray[Any]:
        """Return a copy of a live array in ordinary host memory."""

    def move(self, slot: Slot, placement: Placement) -> None:
        """Bring a live array elsewhere; its values stay."""

    def take(self, slot: Slot) -> None:
        """Free a slot's memory."""

    def address(self, slot: Slot) -> int:
        """Return where a live array begins."""

    def wait(self) -> None:
        """Wait for all kernels."""


class HostArray(np.ndarray[Any, Any]):
    """An array in host memory; views of it and what is calculated with it are plain arrays."""

    slot: Slot

    @property
    def host(self) -> Any:
        """The array itself, as a plain one of NumPy."""
        return plain(self)

    def get(self) -> Any:
        """Return a copy, as CuPy's arrays do."""
        return plain(self).copy()

    def __getitem__(self, key: Any) -> Any:
        return plain(self)[plain(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        plain(self)[plain(key)] = value

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: Any, *inputs: Any, **options: Any
    ) -> Any:  # fmt: skip
        given = options.get("out")
        if given is not None:
            options["out"] = tuple(map(plain, given))
        found = getattr(ufunc, method)(*map(plain, inputs), **options)
        return given[0] if given is not None and len(given) == 1 else found

    def __array_function__(
        self, func: Any, types: Any, args: Any, kwargs: Any
    ) -> Any:  # fmt: skip
        args = tuple(_plain_inside(each) for each in args)
        return func(*args, **{name: _plain_inside(each) for name, each in kwargs.items()})

    def __repr__(self) -> str:
        return repr(plain(self))

    __str__ = __repr__


def plain(array: Any) -> Any:
    """Return a plain array over the same memory; refuse an array without memory."""
    if not isinstance(array, HostArray):
        return array
    slot = getattr(array, "slot", None)
    if slot is not None:
        slot.check()
    return array.view(np.ndarray)


def _plain_inside(value: Any) -> Any:
    """Return an argument of a function of NumPy, with plain arrays in it."""
    if isinstance(value, list | tuple):
        return type(value)(_plain_inside(each) for each in value)
    return plain(value)


class HostBackend:
    """Ordinary host memory; placements have no meaning there."""

    managed = True
    name = "cpu"

    def room(self) -> int | None:
        """Return None: there is no device."""
        return None

    def new(self, slot: Slot) -> HostArray:
        """Return the user's array; the system gives its pages when they are touched."""
        array = np.ndarray.__new__(HostArray, slot.spec.shape, slot.spec.dtype)
        array.slot = slot
        return array

    def prepare(self, slots: list[Slot]) -> None:
        """Do nothing."""

    def give(self, slot: Slot) -> None:
        """Write a slot's source."""
        slot.state = "live"
        if slot.source is not None:
            self.fill(slot, slot.source)

    def fill(self, slot: Slot, source: Any) -> None:
        """Write values."""
        target = plain(slot.array)
        (target[: len(source)] if is_part(slot, source) else target)[...] = source

    def fetch(self, slot: Slot) -> Any:
        """Return a copy."""
        return plain(slot.array).copy()

    def move(self, slot: Slot, placement: Placement) -> None:
        """Note the placement."""

    def take(self, slot: Slot) -> None:
        """Do nothing: the memory goes with the array."""

    def address(self, slot: Slot) -> int:
        """Return where an array begins."""
        return int(slot.array.ctypes.data)

    def wait(self) -> None:
        """Do nothing: there are no kernels."""


def is_part(slot: Slot, source: Any) -> bool:
    """Whether values are those of the beginning of an array with one dimension."""
    shape, whole = np.shape(source), np.shape(slot.array)
    return len(shape) == 1 == len(whole) and 1 != shape[0] < whole[0]


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
            raise OptionError("name", spec.name, "must be new: an array of this name exists")
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
