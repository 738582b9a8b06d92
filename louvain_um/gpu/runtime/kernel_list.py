"""Every kernel and the types it is compiled for: the one list for runs and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

INPUT32: Final = ("Unweighted, u32", "u32, u32", "Unweighted, u64", "u32, u64", "u64, u64")
"""Types of weights and of sums, for inputs whose targets take 32 bits."""

PACKED: Final = "Packed, u32"
"""The same for unweighted inputs with packed targets in sorted rows (`packed.cuh`)."""

PACKED_OFFSETS32: Final = "PackedOffsets32, u32"
"""The same in rows that keep their order, with offsets of 32 bits."""

PACKED_WEIGHTS16: Final = ("PackedWeights16, u32", "PackedWeights16, u64")
"""The same for inputs with packed targets in sorted rows and weights of 16 bits."""

INPUT: Final = (*INPUT32, PACKED, *PACKED_WEIGHTS16, PACKED_OFFSETS32)
"""The same for any input."""

WEIGHTS8_TARGETS24: Final = ("Weights8Targets24, u32", "Weights8Targets24, u64")
"""The same for coarse levels in pages whose weights take a byte and whose targets take 24 bits."""

SHORT_WEIGHTS: Final = tuple(f"{w}, {s}" for w in ("Weights8", "Weights16") for s in ("u32", "u64"))
"""The same for coarse levels whose weights take 8 or 16 bits."""

ANY_LEVEL: Final = (*INPUT, *SHORT_WEIGHTS, *WEIGHTS8_TARGETS24)
"""The same for any level: a coarse level's weights are short or have the type of sums."""

EXTENDED: Final = tuple(f"{weights}, u64, Extended" for weights in ("Unweighted", "u32", "u64"))
"""The same for the extended rule (`extended_rule.cuh`), on any level."""

ANY_WEIGHTS: Final = ("Unweighted", "u32", "u64")
"""Types of weights that algorithms take."""

ROWS: Final = ("RowView", "HostRows", "LinkedRows")
"""Rows that algorithms take: any, those in host memory, and those in linked blocks."""

WEIGHTS_AND_ROWS: Final = tuple(f"{weights}, {rows}" for weights in ANY_WEIGHTS for rows in ROWS)

ANYWHERE: Final = ("RowView", "LinkedRows")
"""The same without a kind for host memory."""

WEIGHTS_ANYWHERE: Final = tuple(f"{w}, {rows}" for w in ANY_WEIGHTS for rows in ANYWHERE)

SPANS: Final = tuple(f"Spans<{weights}>, u64" for weights in ANY_WEIGHTS)
"""The same for moving on a graph that changes (`spans.cuh`)."""

LISTED: Final = "Listed, u64"
"""The same for level 0 in linked blocks (`listed.cuh`)."""

AGGREGATION: Final = (
    "aggregate_small", "number_labels", "group_members", "sum_members", "sample_rows", "lay_out",
    "sum_arcs",
)  # fmt: skip
"""Kernels that make the next level."""

NO_TEMPLATE: Final = ("",)
"""For functions that are not templates."""

HEAPS: Final = tuple(f"Ouro{queues}{what}" for queues in ("S", "VA", "VL") for what in "PC")
"""Variants of Ouroboros (`ouroboros.cuh`)."""

CATALOGUE: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = MappingProxyType(
    {
        "move": {"move": (*ANY_LEVEL, *EXTENDED, *SPANS), "add_degrees": INPUT},
        "refine": {"refine": (*ANY_LEVEL, *EXTENDED)},
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
                INPUT32,
            ),
            "touch_pages": NO_TEMPLATE,
        },
        "ranks": {
            **dict.fromkeys(
                (
                    "begin_shared",
                    "queue_local",
                    "move_round",
                    "apply_round",
                    "merge_active",
                    "weigh_local",
                    "refine_round",
                    "join_round",
                ),
                INPUT32,
            ),
            "shift_offsets": NO_TEMPLATE,
        },
        "aggregate": {**dict.fromkeys(AGGREGATION, ANY_LEVEL), "sum_level": INPUT},
        "listed_move": dict.fromkeys(("move", "add_degrees"), (LISTED,)),
        "listed_aggregate": dict.fromkeys((*AGGREGATION, "sum_level"), (LISTED,)),
        "relabel": {
            "sum_communities": ANY_LEVEL,
            **dict.fromkeys(
                (
                    "relabel_communities",
                    "split_communities",
                    "weigh_communities",
                    "count_together",
                    "strongest_arcs",
                    "drop_weak",
                    "add_masses",
                    "size_communities",
                    "key_communities",
                    "number_communities",
                    "follow",
                    "survey_degrees",
                    "sample_wedges",
                    "sample_structure",
                ),
                NO_TEMPLATE,
            ),
        },
        "bfs": {"bfs": ROWS, "pull_level": NO_TEMPLATE},
        "components": {"components": ANYWHERE},
        "pagerank": {"weigh_rows": WEIGHTS_AND_ROWS, "iterate": WEIGHTS_AND_ROWS},
        "spanning_forest": {"spanning_forest": WEIGHTS_ANYWHERE},
        "spmv": {"multiply": WEIGHTS_AND_ROWS},
        "sssp": {"sssp": WEIGHTS_ANYWHERE},
        "triangles": {"triangles": ANYWHERE},
        "operators": {
            "visit_arcs": tuple(
                f"{weights}, {rows}, Functor"
                for weights in ANY_WEIGHTS
                for rows in (*ANYWHERE, "ListedRows")
            ),
            "sum_arcs": tuple(
                f"{weights}, {rows}, Functor" for weights in ANY_WEIGHTS for rows in ANYWHERE
            ),
            "list_blocks": NO_TEMPLATE,
            "keep_items": ("Functor",),
            "visit_common": tuple(f"{rows}, Functor" for rows in ANYWHERE),
        },
        "batches": {
            **dict.fromkeys(("key_edges", "sort_keys"), NO_TEMPLATE),
            **dict.fromkeys(("net_batch", "end_batch"), ANY_WEIGHTS),
        },
        "merge": {
            **dict.fromkeys(("find_arcs", "merge_rows", "edit_pages", "rebuild_rows"), ANY_WEIGHTS),
            "lay_out_rows": NO_TEMPLATE,
        },
        "linked": {
            **dict.fromkeys(("give_ids", "take_ids", "list_rows", "find_mentions"), NO_TEMPLATE),
            **dict.fromkeys(
                (
                    "count_blocks",
                    "edit_linked",
                    "edit_arcs",
                    "find_listed",
                    "gather_linked",
                    "order_linked",
                    "fill_linked",
                ),
                ANY_WEIGHTS,
            ),
        },
        "queued": dict.fromkeys(("take_pages", "free_pages", "place_rows"), HEAPS),
        "follow": {
            **dict.fromkeys(
                (
                    "mark_changes",
                    "split_flagged",
                    "key_differing",
                    "list_groups",
                    "release_touched",
                    "flag_left",
                ),
                NO_TEMPLATE,
            ),
            "assign_names": ANY_WEIGHTS,
        },
        "ouroboros": {
            **dict.fromkeys(("clear_heap", "begin_heap", "move_heap", "survey_heap"), NO_TEMPLATE),
            **dict.fromkeys(("malloc_each", "free_each"), HEAPS),
        },
        "build": dict.fromkeys(
            (
                "take_ids",
                "take_keys",
                "find_ids",
                "look_at_integers",
                "look_at_reals",
                "scale_reals",
                "take_integers",
                "narrow",
                "count_ends",
                "list_keys",
                "row_offsets",
                "scatter_ends",
                "row_keys",
                "label_keys",
                "keep_arcs",
                "sum_runs",
                "keep_weighted",
                "look_at_rows",
                "count_lines",
                "parse_lines",
            ),
            NO_TEMPLATE,
        ),
        "generate": dict.fromkeys(
            (
                "draw_rmat",
                "expand_stubs",
                "pair_outside",
                "leftover",
                "pair_inside",
                "count_stencil",
                "fill_stencil",
                "weigh_arcs",
                "draw_keys",
            ),
            NO_TEMPLATE,
        ),
    }
)
"""Source (without .cu) → kernel → template arguments.

Kernels of one source with the same arguments are compiled on the first use of one: those that take
long by themselves, the others together.
"""

ALONE: Final = ("aggregate_small", "sum_arcs")
"""Kernels that take long to compile, of sources that have others."""

SOURCES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"louvain": ("move", "aggregate"), "leiden": ("move", "refine", "aggregate", "relabel")}
)
"""What the levels of a method take, from what takes longest to compile; Louvain needs the sums of
`relabel` where it starts in given communities only."""


def expression(kernel: str, types: str) -> str:
    """Return the C++ name of an instantiation."""
    return f"{kernel}<{types}>" if types else kernel


def together(source: str, types: str) -> tuple[str, ...]:
    """Return the C++ names of all of a source's kernels with these template arguments."""
    kernels = CATALOGUE[source]
    return tuple(expression(k, types) for k, known in kernels.items() if types in known)


def units(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return C++ names of kernels of a source in the groups that are compiled at a time."""
    alone = [name for name in names if name.partition("<")[0] in ALONE]
    rest = tuple(name for name in names if name not in alone)
    return [each for each in (rest, *((name,) for name in alone)) if each]


def usual(method: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return what a run takes that reads a graph without weights, as most do: source and C++ names.

    What takes longest to compile comes first.
    """
    types = SHORT_WEIGHTS[0], INPUT32[0], INPUT32[1]
    templates = [(source, each) for source in SOURCES[method] for each in types]
    listed = [*templates, ("relabel", ""), ("build", "")]
    later = unneeded(types[1])
    return [
        (source, names)
        for source, each in listed
        for names in units(together(source, each))
        if names[0] not in later
    ]


def unneeded(types: str) -> tuple[str, ...]:
    """Return the C++ names of what no level with many arcs takes."""
    return (expression("aggregate_small", types),)


def types_of(source: str) -> tuple[str, ...]:
    """Return all template arguments of a source's kernels."""
    return tuple(dict.fromkeys(t for known in CATALOGUE[source].values() for t in known))


def everything(source: str) -> tuple[str, ...]:
    """Return the C++ names of all instantiations of a source."""
    return tuple(expression(k, t) for k, known in CATALOGUE[source].items() for t in known)
