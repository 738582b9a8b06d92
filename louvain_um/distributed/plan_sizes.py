"""What plans of ranks and of devices share: sums, plain data, which numbers to plan, ranges."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Any, Final

from louvain_um.errors import OptionError
from louvain_um.graph.limits import MAX_VERTICES

DEFAULT_KIND: Final = "community_structured"
MAX_ARCS: Final = 1 << 50


class PlanOfOne:
    """A mixin of dataclasses: what one rank or device takes, with `nbytes` and `seconds`."""

    __slots__ = ()

    nbytes: Any
    seconds: Any

    @property
    def total_seconds(self) -> float:
        """Seconds of Louvain."""
        return float(sum(self.seconds.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        own: Any = self
        return {**asdict(own), "bytes": self.nbytes, "total_seconds": self.total_seconds}


def counts_to(most: int) -> list[int]:
    """Return 1, 2, 4, … and `most`."""
    return sorted({1 << k for k in range(most.bit_length()) if 1 << k <= most} | {most})


def refuse_sizes(name: str, count: int, most: int, vertices: int, arcs: int) -> None:
    """Raise for a number of ranks or devices, vertices or arcs outside its range."""
    for option, value, low, high in (
        (name, count, 1, most),
        ("vertices", vertices, 0, MAX_VERTICES),
        ("arcs", arcs, 0, MAX_ARCS),
    ):
        if not low <= value <= high:
            raise OptionError(option, value, f"must lie in {low} … {high:,}")


def kind_among(kinds: Collection[str], kind: str | None) -> str:
    """Return a kind of graph, or the default one."""
    kind = kind or DEFAULT_KIND
    if kind not in kinds:
        raise OptionError("kind", kind, f"must be one of {', '.join(kinds)}")
    return kind
