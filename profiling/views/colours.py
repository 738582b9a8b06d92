"""Colours: groups, phases, policies and terms of cost look the same in every chart."""

from __future__ import annotations

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

TERMS = ("compute", "launch", "faults", "migration", "write back", "prefetch", "remote sequential",
         "remote random", "remote atomic", "host", "waiting", "remote barrier")  # fmt: skip
"""Terms of cost, in the order of their colours in `PALETTE`."""


def colour(name: str, at: int) -> str:
    """Return the colour of a group, policy, phase or term of cost, or the palette's entry `at`."""
    first = name.split(",")[0].split(" ")[0]
    if first in POLICIES:
        return PALETTE[POLICIES.index(first) % len(PALETTE)]
    if name in TERMS:
        return PALETTE[TERMS.index(name)]
    return COLOURS.get(name) or PALETTE[at % len(PALETTE)]
