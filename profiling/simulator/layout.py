"""Addresses of arrays in the simulated address space, and the advice on them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import OptionError
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO, Policy
from louvain_um.placement.policy.policy import Placement as Placed
from louvain_um.profiling.simulator.driver import constants as c
from louvain_um.profiling.simulator.trace import Array, Step, lives_of

#: Advice by name: the driver's own kinds, and the names that placements give them. Memory of
#: `malloc` stays where it is on coherent machines, which map it through the host's page tables
#: (ATS), until counters move it; on others it migrates as managed memory does (HMM).
ADVICE: dict[str, int] = {
    "none": 0,
    "managed": 0,
    "malloc": 0,
    "preferred_host": c.PREFERS_HOST,
    "accessed_by": c.ACCESSED_BY,
    "host_mapped": c.PREFERS_HOST | c.ACCESSED_BY,
    "preferred_gpu": c.PREFERS_GPU,
    "prefetched": c.PREFERS_GPU,
    "read_mostly": c.READ_MOSTLY,
    "pinned": c.PINNED,
    "peer": c.PINNED | c.PEER,
    "device": c.DEVICE,
}

OF_ONE_GPU = ("device", "preferred_gpu", "prefetched", "accessed_by", "host_mapped")
"""Placements that may name a GPU by its number, as in "preferred_gpu:1". Without a number they mean
the first GPU, or all GPUs where they give access."""

#: A placement: a name of `ADVICE`, "split(f)", or ranges given as (end in pages, name).
Placement = str | Sequence[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class AdvisedRange:
    """Pages of one array, or arena, under one advice; numbered through the address space."""

    array: int
    first: int
    end: int
    advice: int
    prefetched: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """First page of every array, the advised ranges, and the blocks that they cut."""

    starts: NDArray[np.int64]
    pages: int
    ranges: tuple[AdvisedRange, ...]
    blocks: NDArray[np.int64]
    pooled: bool = False
    pools: frozenset[int] = frozenset()
    """Arrays of managed pools, whose pages stay when the arrays are freed."""

    def parts(self, array: int, pages: int) -> Iterator[AdvisedRange]:
        """Yield the ranges of an array of `pages` pages by advice."""
        begin = int(self.starts[array])
        at = bisect_right(self.ranges, begin, key=lambda part: part.end)
        for part in self.ranges[at:]:
            first, end = max(part.first, begin), min(part.end, begin + pages)
            if first >= end:
                break
            yield AdvisedRange(array, first, end, part.advice, part.prefetched)

    @property
    def devices(self) -> int:
        """Number of GPUs that advice names, those before the last included."""
        return max((part.advice >> c.TARGET for part in self.ranges), default=0) or 1

    def seen_by(self, gpu: int, *, linked: bool) -> Layout:
        """Return the layout as one of several GPUs sees it, which are linked or not."""
        blocks = self.blocks.copy()
        blocks[:, 3] = [_seen_by(gpu, advice, linked=linked) for advice in blocks[:, 3].tolist()]
        ranges = tuple(
            replace(part, advice=_seen_by(gpu, part.advice, linked=linked)) for part in self.ranges
        )
        return replace(self, blocks=blocks, ranges=ranges)

    def address(self, array: int) -> int:
        """Return the address at which an array begins."""
        return c.BASE_ADDRESS + int(self.starts[array]) * c.PAGE_BYTES


def _seen_by(gpu: int, advice: int, *, linked: bool) -> int:
    """Return advice as one of several GPUs sees it."""
    named = advice >> c.TARGET
    if named and gpu != named - 1:
        advice &= ~c.ACCESSED_BY
    if gpu == max(named - 1, 0):
        return advice
    if advice & c.DEVICE:
        return (advice & ~c.DEVICE) | c.PINNED | c.PEER
    if advice & c.PREFERS_GPU:
        return (advice & ~c.PREFERS_GPU) | c.PREFERS_OTHER | (c.REACHED if linked else 0)
    return advice


def _named(given: str) -> tuple[str, int]:
    """Return a placement's name, and the GPU that it names as a bit field of advice."""
    name, colon, number = given.partition(":")
    if not colon:
        return name, 0
    if name not in OF_ONE_GPU or not re.fullmatch(r"[0-7]", number):
        raise OptionError(
            remedy=f"placement {given!r}: only {', '.join(OF_ONE_GPU)} name a GPU, from 0 to 7, as "
            "in device:1"
        )
    return name, (int(number) + 1) << c.TARGET


def placements_of(arrays: Sequence[Array], policy: str | Path | Policy) -> dict[str, Placement]:
    """Return where a policy places each array, by name."""
    found = find_policy(policy)
    if found.name == AUTO.name:
        raise OptionError(
            "policy",
            found.name,
            "call louvain_um.profiling.sweep.replay.run(trace, 'auto', machine, capacity)",
            problem="auto has no placements of its own",
        )
    return {
        array.name: str(found.placement_in(array.name, array.group, array.role)) for array in arrays
    }


def lay_out(
    arrays: Sequence[Array],
    placements: Mapping[str, Placement],
    hold: Sequence[str] = (),
    steps: Sequence[Step] = (),
    *,
    pooled: bool = False,
    far: str = "host_mapped",
    malloc: str = "managed",
) -> Layout:
    """Return the layout of arrays under placements; with `pooled`, all of them share arenas."""
    # `far` is where the rest of splits is, `malloc` what such memory is to the machine.
    known = {array.name for array in arrays} | {array.group for array in arrays}
    for name in (*placements, *hold):
        if name not in known:
            raise OptionError(
                remedy=f"no array or group is called {name!r}; known: {', '.join(sorted(known))}"
            )
    starts = np.zeros(len(arrays), np.int64)
    ranges: list[AdvisedRange] = []
    page = 0
    lives: list[Lives] = [[] for _ in arrays]
    for life in lives_of(steps, len(arrays)):
        lives[life.array].append((life.begin, life.end))
    pools: set[int] = set()
    for members, placement, held in _arenas(arrays, placements, hold, shared=pooled):
        size, whole = arrays[members[0]].pages, arrays[members[0]]
        if not pooled and _in_pool(whole, placement):
            pools.update(members)
        if len(members) > 1:
            pages = [arrays[number].pages for number in members]
            at = pack(pages, [lives[number] for number in members])
            starts[members] = at
            size = max(first + count for first, count in zip(at, pages, strict=True))
            whole = replace(whole, nbytes=size * c.PAGE_BYTES)
        starts[members] += page
        begin = 0
        for end, given in _spell_out(whole, placement, far):
            name, gpu = _named(malloc if given == "malloc" else given)
            if name not in ADVICE:
                raise OptionError(
                    remedy=f"placement {name!r} is unknown; known: {', '.join(ADVICE)}"
                )
            part = AdvisedRange(members[0], page + begin, page + end, ADVICE[name] | held | gpu,
                         name == "prefetched")  # fmt: skip
            ranges.append(part)
            begin = end
        page += -(-size // c.BLOCK_PAGES) * c.BLOCK_PAGES
    rows = []
    for part in ranges:
        first = part.first
        while first < part.end:
            end = min(part.end, (first // c.BLOCK_PAGES + 1) * c.BLOCK_PAGES)
            rows.append((first, end - first, part.array, part.advice))
            first = end
    blocks = np.array(rows, np.int64).reshape(-1, 4)
    return Layout(starts, page, tuple(ranges), blocks, pooled, frozenset(pools))


def _arenas(
    arrays: Sequence[Array], placements: Mapping[str, Placement], hold: Sequence[str], *,
    shared: bool,
) -> list[tuple[list[int], Placement, int]]:  # fmt: skip
    """Return which arrays share pages, by number, their placement and whether they are held."""
    found: dict[tuple[Any, ...], tuple[list[int], Placement, int]] = {}
    for number, array in enumerate(arrays):
        placement = placements.get(array.name, placements.get(array.group, "none"))
        held = c.HELD if array.name in hold or array.group in hold else 0
        key: tuple[Any, ...] = (number,)
        if shared and isinstance(placement, str):
            key = (array.group, placement, held)
        elif _in_pool(array, placement):
            key = ("pool", array.pool, placement, held)
        found.setdefault(key, ([], placement, held))[0].append(number)
    return list(found.values())


def _in_pool(array: Array, placement: Placement) -> bool:
    """Return whether an array is in a managed pool: placed elsewhere, it is in none."""
    if array.pool is None or not isinstance(placement, str):
        return False
    return not ADVICE.get(placement.partition(":")[0], c.DEVICE) & (c.DEVICE | c.PINNED)


def _spell_out(array: Array, placement: Placement, far: str) -> list[tuple[int, str]]:
    """Return a placement as (end in pages of the array, name of advice)."""
    if isinstance(placement, str):
        if not placement.startswith("split"):
            return [(array.pages, placement)]
        share = Placed.parse(placement).fraction
        cut = int(share * array.pages) // c.BLOCK_PAGES * c.BLOCK_PAGES
        cut = array.pages if share == 1 else cut
        return [part for part in ((cut, "device"), (array.pages, far)) if part[0]]
    try:
        parts = [(int(end), str(name)) for end, name in placement]
    except (TypeError, ValueError):
        raise OptionError(
            remedy=f"placement of {array.name!r} must be a name, or ranges such as "
            f"[({array.pages}, 'device')], not {placement!r}"
        ) from None
    ends = [0, *(end for end, _ in parts)]
    if ends[-1] != array.pages or any(a >= b for a, b in pairwise(ends)):
        raise OptionError(
            remedy=f"placement of {array.name!r}: ranges must increase to its {array.pages} pages"
        )
    return parts


Lives = list[tuple[int, int]]
"""Ranges of steps in which an array is alive."""


def pack(pages: Sequence[int], lives: Sequence[Lives]) -> list[int]:
    """Return the page of an arena at which each of some arrays begins."""
    starts = [0] * len(pages)
    placed: list[int] = []
    order = sorted(range(len(pages)), key=lambda number: lives[number][0] if lives[number] else ())
    for number in order:
        taken = sorted(
            (starts[other], starts[other] + pages[other])
            for other in placed
            if _together(lives[number], lives[other])
        )
        at = 0
        for first, end in taken:
            if first - at >= pages[number]:
                break
            at = max(at, end)
        starts[number] = at
        placed.append(number)
    return starts


def _together(first: Lives, second: Lives) -> bool:
    """Return whether two arrays are alive at the same time."""
    return any(a < d and c < b for a, b in first for c, d in second)
