"""Pages of the host that stay when a run ends, for the next one.

Making a page of the host takes the driver as long as reading it many times: of a graph that does
not fit, that is most of what loading takes. So the pages of the last run stay page-locked, mapped
where the pool had them, until a run needs others or the process ends.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Final

from louvain_um.placement.memory import cuda_calls
from louvain_um.placement.memory.host import available
from louvain_um.placement.memory.paging.mappings import Page

KEPT_SHARE: float = 0.125
"""Share of the host's free memory that stays page-locked between runs, at most."""


@dataclass(frozen=True, slots=True)
class KeptPages:
    """Pages of the host, and the addresses that were reserved for them and for more."""

    device: int
    size: int
    address: int
    nbytes: int
    pages: list[Page]


KEPT: Final = list[KeptPages]()
"""Those of the last run."""

_LOCK: Final = threading.Lock()


def kept_bytes() -> int:
    """Return the bytes of host memory that stayed page-locked, and are free for a run."""
    return sum(kept.size * len(kept.pages) for kept in KEPT)


def take_kept(device: int, size: int, count: int) -> KeptPages | None:
    """Return pages that stayed, with addresses for `count`, or None; others are released."""
    found = None
    for kept in _exchanged():
        suits = (kept.device, kept.size) == (device, size) and kept.nbytes >= count * size
        if suits and found is None:
            found = kept
        else:
            release(kept)
    return found


def keep(made: KeptPages) -> None:
    """Let pages that nothing uses stay, as far as they may; release all others."""
    most = int(KEPT_SHARE * ((available() or 0) + made.size * len(made.pages))) // made.size
    _give_back(made.pages[most:], made.size)
    kept = replace(made, pages=made.pages[:most])
    if not kept.pages:
        release(kept)
        return
    for other in _exchanged(kept):
        release(other)


def release_kept() -> None:
    """Release all that stayed."""
    for kept in _exchanged():
        release(kept)


def release(kept: KeptPages) -> None:
    """Give pages and their addresses back to the system."""
    _give_back(kept.pages, kept.size)
    cuda_calls.driver_call("cuMemAddressFree", kept.address, kept.nbytes)


def _give_back(pages: list[Page], size: int) -> None:
    for page in pages:
        cuda_calls.driver_call("cuMemUnmap", page.address, size)
        cuda_calls.driver_call("cuMemRelease", page.handle)


def _exchanged(*new: KeptPages) -> list[KeptPages]:
    """Return what stayed, which others stay instead of."""
    with _LOCK:
        old, KEPT[:] = [*KEPT], new
        return old
