"""Every kernel and the types it is compiled for: the one list that runs and CI share."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

FIRST: Final = ("Unweighted, u32", "u32, u32", "Unweighted, u64", "u32, u64", "u64, u64")
"""Weight type of the input's arcs, and type of sums."""

TARGETS24: Final = "Targets24, u32"
"""The same of unweighted arcs whose targets take 24 bits (`packing.py`)."""

INPUT: Final = (*FIRST, TARGETS24)
"""The same for the input, whether or not it is packed."""

PAIRS: Final = (*INPUT, "Weights8, u32", "Weights8, u64")
"""The same for any level: a coarse level's arcs are narrow, or of the type of sums."""

SUMS: Final = ("u32", "u64")
"""Type of sums alone."""

PLAIN: Final = ("",)
"""No template."""

CATALOGUE: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = MappingProxyType(
    {
        "move": {"move": PAIRS, "add_degrees": INPUT},
        "refine": {"refine": PAIRS},
        "vertex_blocks": {
            **dict.fromkeys(
                (
                    "begin_moving",
                    "begin_sweep",
                    "move_block",
                    "end_move_round",
                    "begin_refining",
                    "weigh_block",
                    "refine_block",
                    "end_refine_round",
                ),
                FIRST,
            ),
            "touch_pages": PLAIN,
        },
        "aggregate": {
            **dict.fromkeys(
                (
                    "aggregate_small",
                    "number_labels",
                    "group_members",
                    "sum_members",
                    "lay_out",
                    "sum_arcs",
                ),
                PAIRS,
            ),
            "sum_level": INPUT,
        },
        "relabel": {
            "sum_communities": PAIRS,
            **dict.fromkeys(
                (
                    "relabel_communities",
                    "split_communities",
                    "rank_communities",
                    "key_communities",
                    "number_communities",
                    "follow",
                    "survey",
                ),
                PLAIN,
            ),
        },
        "generate": dict.fromkeys(
            (
                "draw_rmat",
                "expand_stubs",
                "pair_outside",
                "leftover",
                "pair_inside",
                "count_stencil",
                "fill_stencil",
                "count_ends",
                "scatter_ends",
                "row_keys",
                "weigh_arcs",
            ),
            PLAIN,
        ),
    }
)
"""Source (without .cu) → kernel → template arguments.

Kernels of one source with the same arguments are compiled together, when one of them is first
asked for.
"""


def expression(kernel: str, types: str) -> str:
    """Return the C++ name of an instantiation."""
    return f"{kernel}<{types}>" if types else kernel


def together(source: str, types: str) -> tuple[str, ...]:
    """Return the C++ names of all of a source's kernels with these template arguments."""
    kernels = CATALOGUE[source]
    return tuple(expression(k, types) for k, known in kernels.items() if types in known)


def everything(source: str) -> tuple[str, ...]:
    """Return the C++ names of all instantiations of a source."""
    return tuple(expression(k, t) for k, known in CATALOGUE[source].items() for t in known)
