"""The size of charts for print, and the colours that every chart of a run shares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from zlib import crc32

WIDE: Final = 7.0
TALL: Final = 4.2
"""Width and height of a chart, in inches."""

COLOURS = {
    "graph": "#3b7dd8",
    "hash": "#d98a1f",
    "community": "#3a9d5d",
    "scratch": "#9a6bc9",
    "other": "#8a8f98",
    "load": "#8a8f98",
    "move": "#3b7dd8",
    "aggregate": "#d98a1f",
    "compile": "#c94f4f",
    "refine": "#2aa5a0",
    "fetch": "#9a6bc9",
}
"""Colours of groups and phases."""

PALETTE = ("#3b7dd8", "#d98a1f", "#3a9d5d", "#9a6bc9", "#c94f4f", "#2aa5a0", "#b8a11c", "#d36fa8",
        "#6b7280", "#7c5c3e", "#5566cc", "#88aa33", "#1c2f5c")  # fmt: skip

POLICIES = ("adv1", "adv2", "adv3", "adv4", "adv5", "adv6", "adv7", "adv8", "adv9", "auto", "base",
            "device", "zero_copy")  # fmt: skip
"""Policies, in the order of their colours in `PALETTE`."""

USERS = ("#ff4d1a", "#8f2be0", "#0aa8d8", "#7a1f1f", "#00602f", "#e0218a")
"""Colours of users' own policies: none of `PALETTE`."""

TERMS = ("compute", "launch", "faults", "migration", "write back", "prefetch", "remote sequential",
         "remote random", "remote atomic", "host", "waiting", "remote barrier")  # fmt: skip
"""Terms of cost, in the order of their colours in `PALETTE`."""


def policy_colours(policies: Iterable[str]) -> dict[str, str]:
    """Return a colour for each policy: the package's have theirs."""
    found: dict[str, str] = {}
    free = list(USERS)
    for name in dict.fromkeys(policies):
        if name in POLICIES:
            found[name] = PALETTE[POLICIES.index(name)]
            continue
        free = free or list(USERS)  # more policies than colours
        first = USERS[crc32(name.encode()) % len(USERS)]
        found[name] = free.pop(free.index(first) if first in free else 0)
    return found


def colour(name: str, at: int) -> str:
    """Return the colour of a group, policy, phase or term of cost, or the palette's entry `at`."""
    first = name.split(",")[0].split(" ")[0]
    if first in POLICIES:
        return PALETTE[POLICIES.index(first) % len(PALETTE)]
    if name in TERMS:
        return PALETTE[TERMS.index(name)]
    return COLOURS.get(name) or PALETTE[at % len(PALETTE)]
