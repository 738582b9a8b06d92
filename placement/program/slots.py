"""One array of a Placer: what was declared, where it lives, and whether it may be used now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

from louvain_um.errors import PlacementError
from louvain_um.placement.policy.policy import Placement
from louvain_um.placement.program.program import ProgramArray

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


class Store(Protocol):
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
        """Write values where a live array lives."""

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
