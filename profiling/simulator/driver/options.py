"""Behaviour of the simulated driver: NVIDIA's, and alternatives for study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from louvain_um.errors import OptionError
from louvain_um.profiling.simulator.driver.thrashing import MOST_MOVES, MOST_NAPS
from louvain_um.profiling.simulator.driver.user_functions import known_evictions, known_prefetchers

Eviction = Literal["driver", "lru", "lfu", "second_chance", "tree_pre", "program"]
COUNTER_THRESHOLD = 256
"""Accesses over the bus of which coherent systems notify the driver."""

EVICTIONS: tuple[Eviction, ...] = get_args(Eviction)
VERSIONS = ("580", "595")


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """Settings of the simulated driver; the defaults are NVIDIA's.

    Parameters
    ----------
    version : {"595", "580"}
        Which driver's rules: since 590, the time within which migrations count as thrashing
        adapts.
    eviction : {"driver", "lru", "lfu", "second_chance", "tree_pre", "program"} or str
        Order of eviction: by last migration (NVIDIA's), by last access, by number of accesses,
        by last migration with a second chance for what was touched, or NVIDIA's order with
        sparse neighbourhoods evicted in advance. "program" leaves nothing to evict, as this program
        does: arrays share arenas, and what exceeds the device goes back before others come. Or
        the name of a function given to `louvain_um.profiling.simulator.eviction`.
    hold : tuple of str
        Arrays or groups that are evicted only when nothing else is left.
    prefetcher : bool
        Whether neighbours of faulting pages come along.
    prefetch : str
        Which do: "density", NVIDIA's rule, or the name of a function given to
        `louvain_um.profiling.simulator.prefetcher`.
    access_counters : int, optional
        Accesses over the bus to a block of 2 MiB after which its regions of 64 KiB that were
        accessed migrate to the device, and with them what density adds; 0 is never. By default
        256 on coherent machines and 0 on others, as in NVIDIA's driver, which also ignores the
        counters where the host has pages of 4 KiB.
    density_percent : int
        A subtree is filled when more than this share of it is resident or asked for.
    batch_size : int
        Faults fetched at a time.
    batches_per_service : int
        Batches after which the driver returns to wait for the next interrupt.
    prefetch_passes : int
        Walks of an explicit prefetch over its range; 2 moves what does not fit twice.
    thrashing : bool
        Whether pages that host and GPU take from each other are throttled and pinned.
    thrash_events, thrash_throttles : int
        Migrations in a row that make a page a thrashing one; naps before it is pinned.
    thrash_window_seconds, thrash_pin_seconds : float
        Time within which migrations count, which is that of a nap, too; how long a page stays
        pinned.

    Raises
    ------
    OptionError
        A setting is outside its range.
    """

    version: str = "595"
    eviction: Eviction | str = "driver"
    hold: tuple[str, ...] = ()
    prefetcher: bool = True
    prefetch: str = "density"
    access_counters: int | None = None
    density_percent: int = 51
    batch_size: int = 256
    batches_per_service: int = 20
    prefetch_passes: int = 2
    thrashing: bool = True
    thrash_events: int = 3
    thrash_throttles: int = 10
    thrash_window_seconds: float = 500e-6
    thrash_pin_seconds: float = 150e-3

    def __post_init__(self) -> None:
        if self.version not in VERSIONS:
            raise OptionError("version", self.version, f"must be one of {', '.join(VERSIONS)}")
        for name, known in (
            ("eviction", (*EVICTIONS, *known_evictions())),
            ("prefetch", ("density", *known_prefetchers())),
        ):
            if getattr(self, name) not in known:
                raise OptionError(name, getattr(self, name), f"must be one of {', '.join(known)}")
        if self.access_counters is not None and not 0 <= self.access_counters < 2**31:
            raise OptionError("access_counters", self.access_counters, "must be 0 to 2^31 - 1")
        if not 0 <= self.density_percent <= 100:
            raise OptionError("density_percent", self.density_percent, "must be 0 to 100")
        for name in (
            "batch_size", "batches_per_service", "prefetch_passes",
            "thrash_events", "thrash_throttles",
        ):  # fmt: skip
            if getattr(self, name) < 1:
                raise OptionError(name, getattr(self, name), "must be at least 1")
        if self.thrash_events > MOST_MOVES:
            raise OptionError("thrash_events", self.thrash_events, f"must be 1 to {MOST_MOVES}")
        if self.thrash_throttles > MOST_NAPS:
            raise OptionError(
                "thrash_throttles", self.thrash_throttles, f"must be 1 to {MOST_NAPS}"
            )
