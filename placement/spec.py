"""What a plan says of one arena: how large it is, and where its bytes live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from louvain_um.errors import OptionError
from louvain_um.ledger import Group

Kind = Literal["device", "managed", "prefetched", "host_mapped", "read_mostly", "pinned", "split"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

MANAGED: Final = frozenset(KINDS) - {"device", "pinned"}
"""Kinds of managed memory."""

BLOCK: Final = 2 << 20
"""Bytes of the driver's blocks: advice that ends inside one splits it."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where bytes live and who may touch them.

    Parameters
    ----------
    kind : str
        "device": plain device memory. "managed": no advice, paged on demand. "prefetched":
        preferred on the device and brought there. "host_mapped": preferred on the host, read
        by the device over the bus. "read_mostly": copies on both sides. "pinned": page-locked
        host memory. "split": the first `fraction` prefetched, the rest host_mapped.
    fraction : float
        Only for "split": 0 … 1.

    Raises
    ------
    OptionError
        No such kind, or a fraction outside its range.
    """

    kind: Kind
    fraction: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise OptionError(f"placement must be one of {', '.join(KINDS)}, not {self.kind!r}")
        if not 0 <= self.fraction <= 1:
            raise OptionError(f"split needs a fraction of 0 … 1, not {self.fraction!r}")

    def __str__(self) -> str:
        return f"split({self.fraction:.3g})" if self.kind == "split" else self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaSpec:
    """One arena of a plan's layout.

    Parameters
    ----------
    name : str
    group : {"graph", "hash", "community", "scratch"}
    capacity : int
        Bytes that its arrays take at most at any one time.
    placement : Placement
    members : tuple of str, optional
        Names of the arrays in it; None for all of the group that no other arena names.
    """

    name: str
    group: Group
    capacity: int
    placement: Placement
    members: tuple[str, ...] | None = None


def cut(capacity: int, fraction: float) -> int:
    """Return how many bytes of a split arena are the device's: whole blocks, rounded down.

    Examples
    --------
    >>> from louvain_um.placement.spec import cut
    >>> cut(7 << 20, 0.5) >> 20, cut(7 << 20, 1.0) >> 20
    (2, 8)
    """
    return whole_blocks(capacity) if fraction >= 1 else int(capacity * fraction) // BLOCK * BLOCK


def whole_blocks(nbytes: int) -> int:
    """Return bytes rounded up to the driver's blocks."""
    return -(-nbytes // BLOCK) * BLOCK


def device_bytes(placement: Placement, capacity: int) -> int:
    """Return how many bytes of an arena occupy the device when all of it is in use.

    Examples
    --------
    >>> from louvain_um.placement.spec import Placement, device_bytes
    >>> device_bytes(Placement("host_mapped"), 100 << 20)
    0
    """
    if placement.kind in ("host_mapped", "pinned"):
        return 0
    if placement.kind == "split":
        return cut(capacity, placement.fraction)
    return capacity if placement.kind == "device" else whole_blocks(capacity)
