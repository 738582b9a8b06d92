"""Behaviour of the simulated driver: NVIDIA's, and alternatives for study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from louvain_um.errors import OptionError
from louvain_um.profiling.simulator.driver.user_functions import known_evictions, known_prefetchers

Eviction = Literal["driver", "lru", "lfu", "second_chance", "tree_pre", "program"]
EVICTIONS: tuple[Eviction, ...] = get_args(Eviction)
VERSIONS = ("580", "595")


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """Settings of the simulated driver; the defaults are NVIDIA's.

    Parameters
    ----------
    version : {"595", "580"}
        Which driver's rules; those modelled here are the same in both.
    eviction : {"driver", "lru", "lfu", "second_chance", "tree_pre", "program"} or str
        Order of eviction: by last migration (NVIDIA's), by last access, by number of accesses,
        by last migration with a second chance for what was touched, or NVIDIA's order with
        sparse neighbourhoods evicted ahead. "program" leaves nothing to evict, as this program
        does: arrays share arenas, and what exceeds the device goes back before others come. Or
        the name of a function given to `louvain_um.profiling.simulator.eviction`.
    hold : tuple of str
        Arrays or groups that are evicted only when nothing else is left.
    prefetcher : bool
        Whether neighbours of faulting pages come along.
    prefetch : str
        Which do: "density", NVIDIA's rule, or the name of a function given to
        `louvain_um.profiling.simulator.prefetcher`.
    access_counters : int
        Accesses over the bus after which a block of 2 MiB migrates to the device, unless it
        prefers the host. 0, the default, is never: NVIDIA's driver counts on coherent systems
        only, where its threshold is 256.
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
        Alternating faults that make a page a thrashing one; throttles before it is pinned.
    thrash_window_seconds, thrash_pin_seconds : float
        Time within which faults count as alternating; how long a page stays pinned.

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
    access_counters: int = 0
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
        if not 0 <= self.access_counters < 2**31:
            raise OptionError("access_counters", self.access_counters, "must be 0 to 2^31 - 1")
        if not 0 <= self.density_percent <= 100:
            raise OptionError("density_percent", self.density_percent, "must be 0 to 100")
        for name in (
            "batch_size", "batches_per_service", "prefetch_passes",
            "thrash_events", "thrash_throttles",
        ):  # fmt: skip
            if getattr(self, name) < 1:
                raise OptionError(name, getattr(self, name), "must be at least 1")
