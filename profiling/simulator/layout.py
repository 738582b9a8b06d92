"""Where arrays lie in the simulated address space, and what the driver was advised about them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import OptionError
from louvain_um.profiling.simulator.constants import (
    ACCESSED_BY,
    BASE_ADDRESS,
    BLOCK_PAGES,
    DEVICE,
    HELD,
    PAGE_BYTES,
    PINNED,
    PREFERS_GPU,
    PREFERS_HOST,
    READ_MOSTLY,
)
from louvain_um.profiling.simulator.trace import Array

#: Advice by name: the driver's own kinds, and the names that placements give them.
ADVICE: dict[str, int] = {
    "none": 0,
    "managed": 0,
    "preferred_host": PREFERS_HOST,
    "accessed_by": ACCESSED_BY,
    "host_mapped": PREFERS_HOST | ACCESSED_BY,
    "preferred_gpu": PREFERS_GPU,
    "prefetched": PREFERS_GPU,
    "read_mostly": READ_MOSTLY,
    "pinned": PINNED,
    "device": DEVICE,
}

#: A placement: a name of `ADVICE`, "split(f)", or ranges given as (end in pages, name).
Placement = str | Sequence[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Range:
    """Pages of one array under one advice; pages count through the whole address space."""

    array: int
    first: int
    end: int
    advice: int
    prefetched: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """First page of every array, the advised ranges, and the blocks that they cut.

    `blocks` has a row for each block: first page, pages, array, advice.
    """

    starts: NDArray[np.int64]
    pages: int
    ranges: tuple[Range, ...]
    blocks: NDArray[np.int64]

    def address(self, array: int) -> int:
        """Return the address at which an array begins."""
        return BASE_ADDRESS + int(self.starts[array]) * PAGE_BYTES


def lay_out(
    arrays: Sequence[Array], placements: Mapping[str, Placement], hold: Sequence[str] = ()
) -> Layout:
    """Return the layout of arrays under placements.

    Each array begins on a 2 MiB boundary. Blocks end where a 2 MiB frame, an advised range or
    the array ends.

    Parameters
    ----------
    arrays : sequence of Array
        The arrays.
    placements : mapping of str to placement
        By name of an array or of a group, the array's own first; others have no advice.
    hold : sequence of str
        Arrays or groups that are evicted last.

    Raises
    ------
    OptionError
        A placement or a name is unknown, or ranges do not rise to the array's end.
    """
    known = {array.name for array in arrays} | {array.group for array in arrays}
    for name in (*placements, *hold):
        if name not in known:
            raise OptionError(f"no array or group is called {name!r}; known: {', '.join(known)}")
    starts = np.zeros(len(arrays), np.int64)
    ranges: list[Range] = []
    page = 0
    for number, array in enumerate(arrays):
        starts[number] = page
        held = HELD if array.name in hold or array.group in hold else 0
        placement = placements.get(array.name, placements.get(array.group, "none"))
        begin = 0
        for end, name in _spell_out(array, placement):
            if name not in ADVICE:
                raise OptionError(f"placement {name!r} is unknown; known: {', '.join(ADVICE)}")
            part = Range(number, page + begin, page + end, ADVICE[name] | held,
                         name == "prefetched")  # fmt: skip
            ranges.append(part)
            begin = end
        page += -(-array.pages // BLOCK_PAGES) * BLOCK_PAGES
    rows = []
    for part in ranges:
        first = part.first
        while first < part.end:
            end = min(part.end, (first // BLOCK_PAGES + 1) * BLOCK_PAGES)
            rows.append((first, end - first, part.array, part.advice))
            first = end
    return Layout(starts, page, tuple(ranges), np.array(rows, np.int64).reshape(-1, 4))


def _spell_out(array: Array, placement: Placement) -> list[tuple[int, str]]:
    """Return a placement as (end in pages of the array, name of advice)."""
    if isinstance(placement, str):
        split = re.fullmatch(r"split\(([0-9.]+)\)", placement)
        if split is None:
            return [(array.pages, placement)]
        share = float(split[1])
        if not 0 <= share <= 1:
            raise OptionError(f"placement {placement!r}: the share must lie between 0 and 1")
        cut = int(share * array.pages) // BLOCK_PAGES * BLOCK_PAGES
        cut = array.pages if share == 1 else cut
        return [part for part in ((cut, "device"), (array.pages, "host_mapped")) if part[0]]
    parts = [(int(end), name) for end, name in placement]
    ends = [0, *(end for end, _ in parts)]
    if ends[-1] != array.pages or any(a >= b for a, b in pairwise(ends)):
        raise OptionError(
            f"placement of {array.name!r}: ranges must rise to its {array.pages} pages"
        )
    return parts
