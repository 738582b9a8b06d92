"""Arenas of a plan: from declared arrays and a policy, and the device memory that they take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from louvain_um.core.array_spec import STAGES, ArraySpec, Stage
from louvain_um.core.ledger import GROUPS, Group
from louvain_um.placement.hardware import ALIGNED, BLOCK
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import (
    AUTO,
    ELSEWHERE,
    KINDS,
    OUT_OF_CORE_KINDS,
    Placement,
    Policy,
)

MANAGED: Final = frozenset(KINDS) - {"device", "pinned", "peer"}
"""Kinds of managed memory."""

SLACK: Final = 64 << 10
"""Bytes on top of a plan's capacity: arrays begin at multiples of `ALIGNED`, plans count bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaSpec:
    """One arena of a plan's layout."""

    name: str
    group: Group | None
    capacity: int
    placement: Placement
    members: tuple[str, ...] | None = None
    out_of_core: bool = False
    lenient: bool = False
    in_pages: bool = False
    kept: bool = False
    on_demand: bool = False


def cut(capacity: int, fraction: float) -> int:
    """Return how many bytes of a split arena are the device's: whole blocks, rounded down."""
    return capacity if fraction >= 1 else int(capacity * fraction) // BLOCK * BLOCK


def share_of(kept: int, nbytes: int) -> float:
    """Return the fraction of a split that leaves so many bytes, whole blocks, on the device."""
    # Half of the next block more, or of what is left: rounding the product down gives `kept`.
    return (kept + min(BLOCK, nbytes - kept) / 2) / nbytes


def device_bytes(placement: Placement, capacity: int) -> int:
    """Return how many bytes of an arena occupy the device when all of it is in use."""
    if placement.kind in ELSEWHERE:
        return 0
    return cut(capacity, placement.fraction) if placement.kind == "split" else capacity


def size_of(spec: ArenaSpec) -> int:
    """Return the bytes of memory that an arena takes; managed ones are whole blocks."""
    nbytes = spec.capacity + SLACK
    return nbytes if spec.placement.kind == "device" else -(-nbytes // BLOCK) * BLOCK


def guarded_bytes(layout: Iterable[ArenaSpec]) -> int:
    """Return the bytes that must be free on the device for managed memory that must be."""
    specs = list(layout)
    loose = [
        s for s in specs
        if s.placement.kind == "split" or (s.lenient and s.placement.kind == "host_mapped")
    ]  # fmt: skip
    held = [s for s in specs if s not in loose and s.placement.kind not in ("pinned", "peer")]
    if all(spec.placement.kind == "device" for spec in held):
        return 0
    return sum(map(size_of, held)) + sum(device_bytes(s.placement, s.capacity) for s in loose)


DEVICE: Final = Placement("device")

LEAST_BLOCKS: Final = 2
"""Least blocks on the device together: one is processed while the next is copied."""

HELD_BLOCKS: Final = 4
"""Blocks on the device together, if they fit."""

WIDEST_ITEM: Final = 8
"""Most bytes per arc, in one array."""


@dataclass(frozen=True, slots=True)
class LayoutFit:
    """How a layout fits: what occupies the device, and what out-of-core arenas keep there."""

    needed: int
    occupied: int
    out_of_core: Mapping[str, int]

    def within(self, limit: int) -> bool:
        """Whether the layout fits."""
        return self.needed <= limit


def with_slack(nbytes: int) -> int:
    """Return the capacity of a joint arena for arrays of so many bytes."""
    return nbytes + nbytes // JOINT_SLACK


def capacity(arrays: Iterable[ArraySpec], stages: Iterable[Stage] = STAGES) -> int:
    """Return the most bytes that arrays take at any one of some stages, each aligned."""
    held = dict.fromkeys(STAGES, 0)
    for array in arrays:
        nbytes = aligned(array.nbytes, ALIGNED)
        for stage in array.stages:
            held[stage] += nbytes
    return max(held[stage] for stage in stages)


def aligned(nbytes: int, to: int) -> int:
    """Return bytes, rounded up to a multiple."""
    return -(-nbytes // to) * to


def device_part(array: ArraySpec, policy: Policy) -> ArraySpec:
    """Return an array as long as the part of it that a policy leaves on the device."""
    here = device_bytes(placed(array, policy), array.nbytes)
    return array if here >= array.nbytes else replace(array, size=int(here // array.itemsize))


def can_be_split(array: ArraySpec) -> bool:
    """Whether an array of a run in pages may take pages of both sides when it is made."""
    others = array.holds_input_arcs or array.estimated
    return not (others or "load" in array.stages or "fetch" in array.stages)


def placed(array: ArraySpec, policy: Policy) -> Placement:
    """Return where an array goes under a policy."""
    if array.device_only:
        return DEVICE
    return policy.placement_in(array.name, array.group, array.role)


FIRST_STAGES: Final[tuple[Stage, ...]] = ("load", "move")
"""Stages that the shared arena of a run in pages is large enough for, at least: then the input's
arcs are read more often than later."""

OFFSETS_FROM: Final = 1 / 8
"""Bytes of offsets, relative to those of arcs, from which they have pages of their own."""

JOINT_SLACK: Final = 64
"""Spare share of a joint arena, 1 / 64: some gaps between arrays stay unused."""


def lay_out(
    arrays: Sequence[ArraySpec],
    policy: Policy,
    *,
    joint: bool = False,
    in_pages: bool = False,
    stages: Sequence[Stage] = STAGES,
) -> tuple[ArenaSpec, ...]:
    """Return the arenas of a policy."""
    specs, together = list[ArenaSpec](), list[ArraySpec]()
    paged = {array.name for array in input_in_pages(arrays)}
    for group in GROUPS:
        usual = policy.placements[group]
        rest, separate = list[ArraySpec](), list[ArraySpec]()
        for array in arrays:
            if array.group != group or not array.nbytes:
                continue
            placement = placed(array, policy)
            here = is_made_first(array) and placement.on_device == 1
            if in_pages and array.estimated and not here:
                continue
            if in_pages and array.device_only and len(array.stages) == len(STAGES):
                # In the shared arena, it would keep a page from ever serving others.
                specs.append(_spec(array.name, group, placement, [array], named=True))
            elif in_pages and joint and placement.kind == "split" and can_be_split(array):
                spec = _spec(array.name, group, placement, [array], named=True)
                specs.append(replace(spec, on_demand=True))
                together.append(device_part(array, policy))
            elif in_pages and array.name in paged:
                spec = _spec(array.name, group, placement, [array], named=True)
                specs.append(replace(spec, in_pages=True, kept=not array.holds_input_arcs))
            elif placement.kind in OUT_OF_CORE_KINDS and array.holds_input_arcs:
                # The largest arrays, read by vertex: they can be moved in blocks.
                spec = _spec(array.name, group, placement, [array], named=True)
                specs.append(replace(spec, out_of_core=True))
            elif placement == usual:
                rest.append(array)
            elif placement == DEVICE:
                separate.append(array)
            else:
                specs.append(_spec(array.name, group, placement, [array], named=True))
        if joint and usual == DEVICE:
            together += rest
            continue
        if separate:
            specs.append(_spec(f"{group}.device", group, DEVICE, separate, named=True))
        if rest:
            specs.append(_spec(group, group, usual, rest, named=False))
    if together:
        nbytes = with_slack(capacity(together, stages))
        specs.append(ArenaSpec(name="device", group=None, capacity=nbytes, placement=DEVICE))
    lenient = policy.name == AUTO.name
    return tuple(replace(spec, lenient=lenient) for spec in specs)


def input_in_pages(arrays: Iterable[ArraySpec]) -> list[ArraySpec]:
    """Return the input's arrays that have pages of their own, if any have."""
    known = list(arrays)
    arcs = [array for array in known if array.holds_input_arcs]
    begins = [array for array in known if array.role == "offsets" and array.level == 0]
    worth = OFFSETS_FROM * sum(array.nbytes for array in arcs)
    return [*(array for array in begins if array.nbytes >= worth), *arcs]


def lasting(arrays: Iterable[ArraySpec]) -> list[ArraySpec]:
    """Return paged arrays, each with the stages in which it may not leave the device."""
    known = list(arrays)
    begins = {array.name for array in input_in_pages(known) if not array.holds_input_arcs}
    return [
        replace(
            array,
            stages=tuple(
                stage
                for stage in array.stages
                if not (stage not in FIRST_STAGES if array.name in begins else leaves(array, stage))
            ),
        )
        for array in known
    ]


def leaves(array: ArraySpec, stage: Stage) -> bool:
    """Whether an array that another stage works with may wait on the host in this one."""
    uses = {use: count for (when, use), count in array.accesses.items() if when == stage}
    elsewhere = any(when != stage for when, _ in array.accesses)
    few = sum(uses.values()) <= array.size and "atomic" not in uses
    return bool(uses) and elsewhere and few and array.level in (0, None)


def is_made_first(array: ArraySpec) -> bool:
    """Whether an array of a coarse level exists while the input's arcs are still read."""
    return bool(array.level) and "aggregate" in array.stages and not array.holds_coarse_arcs


def _spec(
    name: str, group: Group, placement: Placement, arrays: Sequence[ArraySpec], *, named: bool
) -> ArenaSpec:
    members = tuple(array.name for array in arrays) if named else None
    return ArenaSpec(
        name=name, group=group, capacity=capacity(arrays), placement=placement, members=members
    )


def fit(layout: Sequence[ArenaSpec], limit: int, max_degree: int = 0) -> LayoutFit:
    """Return how a layout fits into so many bytes of the device."""
    out_of_core = {spec.name: spec.capacity for spec in layout if spec.out_of_core}
    separate = [s for s in layout if not (s.out_of_core or s.on_demand)]
    others = sum(device_bytes(s.placement, s.capacity) for s in separate)
    whole = sum(out_of_core.values())
    if others + whole <= limit:
        return LayoutFit(others + whole, others + whole, {})
    least = {name: least_bytes(nbytes, max_degree) for name, nbytes in out_of_core.items()}
    needed = others + sum(least.values())
    spare = max(0, limit - needed)
    share = {
        name: min(nbytes, least[name] + int(spare * (nbytes / whole)) // BLOCK * BLOCK)
        for name, nbytes in out_of_core.items()
    }
    return LayoutFit(needed, others + sum(share.values()), share)


def least_bytes(nbytes: int, max_degree: int) -> int:
    """Return the least bytes of an out-of-core arena that must be on the device at a time."""
    row = aligned(WIDEST_ITEM * max_degree, BLOCK) + BLOCK
    return min(nbytes, LEAST_BLOCKS * max(BLOCK, row if max_degree else 0))


def needed_by_group(
    layout: Sequence[ArenaSpec], fitted: LayoutFit, max_degree: int = 0
) -> dict[Group, int]:
    """Return the bytes that each group cannot do without on the device."""
    found = dict.fromkeys(GROUPS, 0)
    for spec in (s for s in layout if not s.on_demand):
        least = device_bytes(spec.placement, spec.capacity)
        if spec.name in fitted.out_of_core:
            least = least_bytes(spec.capacity, max_degree)
        for group in GROUPS if spec.group is None else (spec.group,):
            found[group] += least
    return found


def device_bytes_in_core(
    arrays: Sequence[ArraySpec], *, separate: bool = False, joint: bool = False
) -> int:
    """Return the bytes of the device that arrays take when all of them are there."""
    policy = find_policy("base") if separate else AUTO
    return sum(spec.capacity for spec in lay_out(arrays, policy, joint=joint))


def group_placement(
    arrays: Sequence[ArraySpec], policy: Policy, group: Group, limit: int | None
) -> Placement:
    """Return where a group goes; within a limit, in pages, as much of it as fits in any stage."""
    mine = [a for a in arrays if a.group == group and a.nbytes and not a.device_only]
    found = {placed(array, policy) for array in mine}
    if limit is not None and any(array.holds_input_arcs for array in mine):
        share = min(_fitting_share(arrays, policy, group, stage, limit) for stage in STAGES)
        return Placement("split", share) if share < 1 else DEVICE
    if len(found) <= 1:
        return found.pop() if found else policy.placements[group]
    there = sum(int(placed(a, policy).on_device * a.nbytes) for a in mine)
    return Placement("split", there / max(1, sum(a.nbytes for a in mine)))


def _fitting_share(
    arrays: Sequence[ArraySpec], policy: Policy, group: Group, stage: Stage, limit: int
) -> float:
    """Return the share of a group that fits the device in a stage, with all else there."""
    mine = others = there = 0
    for array in arrays:
        if stage in array.stages:
            here = int(placed(array, policy).on_device * array.nbytes)
            if array.group == group:
                mine, there = mine + array.nbytes, there + here
            else:
                others += here
    return min(there, max(0, limit - others)) / mine if mine else 1.0


def most_arcs(at: Callable[[int], Sequence[ArraySpec]], limit: int) -> int:
    """Return the most arcs with which arrays, as `at` declares them, fit in core."""

    def fits(arcs: int) -> bool:
        return device_bytes_in_core(at(arcs), joint=True) <= limit

    if not fits(1):
        return 0
    low, high = 1, 2
    while fits(high):
        low, high = high, 2 * high
    while high - low > max(1, low >> 12):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
