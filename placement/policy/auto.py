"""What `auto` does: fill the budget with what saves most time per byte, split the last array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from louvain_um.core.array_spec import STAGES, ArraySpec, Stage
from louvain_um.placement.arena_spec import BLOCK, ArenaSpec, guarded_bytes
from louvain_um.placement.layout import (
    ALIGNED,
    FIRST_STAGES,
    JOINT_SLACK,
    Fit,
    aligned,
    capacity,
    fit,
    input_in_pages,
    is_made_first,
    lay_out,
    placed,
)
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.memory.paging.pages import LEAST_PAGE, page_bytes
from louvain_um.placement.model.cost import exposed
from louvain_um.placement.model.forecast import Forecast, Workload, forecast
from louvain_um.placement.model.remote_access import Scales, has_targets24, remote_seconds
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO, POLICY_NAMES, Placement, Policy

HOSTED = Placement("host_mapped")


def beyond(machine: Machine) -> Placement:
    """Return where what does not fit on a device goes."""
    return Placement("peer") if machine.beyond == "peer" else HOSTED


LEAST_PAGES: Final = 8
"""Pages that a device must have for a run in pages: fewer would be too coarse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A policy laid out over declared arrays, with its predicted memory and time."""

    policy: Policy
    arrays: tuple[ArraySpec, ...]
    low_scratch: bool
    compact: bool
    layout: tuple[ArenaSpec, ...]
    fitted: Fit
    expected: Forecast
    like: str
    in_pages: bool = False


def candidate(
    policy: Policy,
    arrays: tuple[ArraySpec, ...],
    work: Workload,
    limit: int,
    *,
    low_scratch: bool,
    compact: bool = False,
    joint: bool = False,
    in_pages: bool = False,
    out_of_core: tuple[ArraySpec, ...] = (),
    like: str = "",
) -> Candidate:
    """Lay a policy out and predict it.

    `out_of_core` lists the additional or larger arrays of an out-of-core run; `like` names the
    policy of which it is a copy.
    """
    layout = lay_out(arrays, policy, joint=joint, in_pages=in_pages)
    fitted = fit(layout, limit, work.max_degree)
    if in_pages and not fitted.within(limit):
        layout = lay_out(arrays, policy, joint=joint, in_pages=True, stages=FIRST_STAGES)
        fitted = fit(layout, limit, work.max_degree)
    if in_pages:
        # Later stages, and coarse levels, are placed in what is left, and in place of the input.
        least = _with_slack(capacity(_fixed(arrays, policy)))
        fitted = replace(fitted, needed=max(fitted.needed, least), occupied=limit)
    if fitted.out_of_core and out_of_core:
        larger = {array.name for array in out_of_core}
        arrays = (*(array for array in arrays if array.name not in larger), *out_of_core)
        layout = lay_out(arrays, policy, joint=joint)
        fitted = fit(layout, limit, work.max_degree)
    return Candidate(
        policy=policy,
        arrays=arrays,
        low_scratch=low_scratch,
        compact=compact,
        layout=layout,
        fitted=fitted,
        expected=forecast(
            arrays,
            policy,
            layout,
            fitted.out_of_core,
            work,
            low_scratch=low_scratch,
            limit=limit if in_pages else None,
        ),
        like=like,
        in_pages=in_pages,
    )


def wasted_bytes(limit: int, arrays: Iterable[ArraySpec]) -> int:
    """Return the bytes that arrays in pages of their own, and the shared arena, waste at most."""
    return min((1 + len(input_in_pages(arrays))) * page_bytes(limit), limit // 8)


def unplanned_bytes(arrays: Iterable[ArraySpec]) -> int:
    """Return the bytes by which arcs of levels 1 and 2 may exceed their estimates.

    No level has more arcs than the input. Those that outgrow their place are copied, so that there
    are two of the larger array meanwhile.
    """
    known = list(arrays)
    arcs = max((a.size for a in known if a.role == "targets" and a.level == 0), default=0)
    rows = [a for a in known if a.estimated and a.holds_coarse_arcs]
    more = [max(0, arcs - a.size) * a.itemsize for a in rows]
    return sum(more) + max(
        (arcs * a.itemsize for a, out in zip(rows, more, strict=True) if out), default=0
    )


def _fixed(arrays: Iterable[ArraySpec], policy: Policy) -> list[ArraySpec]:
    """Return the arrays of known size that must be on the device in every stage they live in."""
    return [
        array
        for array in arrays
        if not array.holds_input_arcs
        and (not array.estimated or is_made_first(array))
        and placed(array, policy).on_device
    ]


def best_of(candidates: Iterable[Candidate], limit: int) -> Candidate | None:
    """Return the fastest candidate that fits; the first of equals."""
    feasible = [c for c in candidates if c.fitted.within(limit)]
    return min(feasible, key=lambda c: c.expected.seconds, default=None)


def no_more_arrays(low_scratch: bool) -> tuple[ArraySpec, ...]:
    """Return no additional arrays for out-of-core runs."""
    return ()


def choose(
    default: tuple[ArraySpec, ...],
    declare: Callable[[bool], tuple[ArraySpec, ...]],
    work: Workload,
    limit: int,
    out_of_core: Callable[[bool], tuple[ArraySpec, ...]] = no_more_arrays,
    compact: Callable[[bool], tuple[ArraySpec, ...]] | None = None,
    free: int | None = None,
) -> Candidate:
    """Return the candidate with the least predicted time within the limit.

    If everything fits, that is plain device memory: with the input in fewer bytes (`compact`) if
    needed, else with low scratch, else with both. Otherwise it is the best of: arrays moved to the
    host in each of `ORDERS`, the last one split; and every policy of the package whose managed
    memory does not exceed the free device memory. If nothing fits, return the one that needs
    least.

    Arrays whose sizes are estimates do not decide: if there are any, and not everything fits, the
    others are placed, in pages, and these when their sizes are known. Policies of the package are
    then tried only if that does not fit.
    """
    first = candidate(AUTO, default, work, limit, low_scratch=False)
    if first.fitted.within(limit - unplanned_bytes(default)):
        return first
    low_scratch = declare(True)
    smallest = compact(True) if compact else ()
    in_pages = any(a.estimated for a in default) and limit >= LEAST_PAGES * LEAST_PAGE
    in_core = [(low_scratch, True, False)]
    if compact:
        in_core = [(compact(False), False, True), *in_core, (smallest, True, True)]
    if in_pages:
        in_core = [(default, False, False), *in_core]
    for arrays, small, less in in_core:
        joint = small or in_pages
        found = candidate(
            AUTO, arrays, work, limit,
            low_scratch=small, compact=less, joint=joint, in_pages=in_pages,
        )  # fmt: skip
        if found.fitted.within(limit - (wasted_bytes(limit, arrays) if in_pages else 0)):
            return found
    fewest = smallest or low_scratch
    own = [
        hosted_within(fewest, work, limit, compact=bool(smallest), order=order, in_pages=in_pages)
        for order in ORDERS
    ]
    best = best_of(own, limit)
    if in_pages and best:
        return best
    if work.machine.beyond == "peer":
        return best or own[0]  # the package's policies are about the host
    names = (name for name in POLICY_NAMES if name != AUTO.name)
    known = [
        candidate(
            replace(find_policy(name), name=AUTO.name),
            arrays,
            work,
            limit,
            low_scratch=small,
            out_of_core=out_of_core(small),
            like=name,
        )
        for name in names
        for arrays, small in ((low_scratch, True), (default, False))
    ]
    if free is not None:
        known = [one for one in known if guarded_bytes(one.layout) <= free]
    return best_of([*own, *known], limit) or own[0]


@dataclass(frozen=True, slots=True)
class Order:
    """Order in which arrays move to the host: least time lost per byte freed first.

    Parameters
    ----------
    greedy : bool
        Count the bytes by which the peak shrinks now; else the bytes of the piece, because the
        peak may shrink by these once other arrays have moved.
    small_last : bool
        Move arrays below one block last: they free little memory and are often hot.
    """

    greedy: bool = True
    small_last: bool = True


ORDERS = tuple(Order(greedy, small) for small in (True, False) for greedy in (True, False))


def hosted_within(
    arrays: tuple[ArraySpec, ...],
    work: Workload,
    limit: int,
    *,
    compact: bool = False,
    order: Order = Order(),
    in_pages: bool = False,
) -> Candidate:
    """Return the candidate that moves arrays to the host until the rest fits."""
    room = limit - (wasted_bytes(limit, arrays) if in_pages else 0)
    known = _by_stage(arrays) if in_pages else list(arrays)
    while True:
        policy = hosting(known, work, room, order, in_pages=in_pages)
        if in_pages:
            policy = replace(policy, arrays=_at_first(policy.arrays))
        found = candidate(
            policy, arrays, work, limit,
            low_scratch=True, compact=compact, joint=True, in_pages=in_pages,
        )  # fmt: skip
        over = found.fitted.needed - limit
        if over <= 0 or room <= over:
            return found
        room -= over  # separate arenas are rounded up


def _by_stage(arrays: Iterable[ArraySpec]) -> list[ArraySpec]:
    """Return arrays of known size, the input's arcs once for each stage that reads them.

    They may be on the device in one stage and on the host in another.
    """
    found = list[ArraySpec]()
    for array in arrays:
        if array.holds_input_arcs:
            for stage in ("move", "refine", "aggregate"):
                uses = {key: count for key, count in array.accesses.items() if key[0] == stage}
                stages: tuple[Stage, ...] = ("load", "move")
                if stage != "move":
                    stages = ("refine",) if stage == "refine" else ("aggregate",)
                name = f"{array.name}{AT}{stage}"
                found.append(replace(array, name=name, stages=stages, accesses=uses))
        elif not array.estimated or is_made_first(array):
            found.append(array)
    return found


def _at_first(hosted: Mapping[str, Placement]) -> dict[str, Placement]:
    """Return the placements of arrays when the run begins."""
    found = {name.removesuffix(f"{AT}move"): where for name, where in hosted.items()}
    return {name: where for name, where in found.items() if AT not in name}


AT = "@"
"""Stands between an array and one of its stages."""

PIECES = 8
"""Arrays alive in all stages move to the host in so many pieces, the last one first: the first
pieces cost less where transfers overlap with work. Other arrays move whole: no other array can use
the memory of a part that stays."""


def hosting(
    arrays: Sequence[ArraySpec],
    work: Workload,
    limit: int,
    order: Order = Order(),
    *,
    in_pages: bool = False,
) -> Policy:
    """Return a policy that moves pieces of arrays to the host until the rest fits.

    The order does not depend on the limit, so a larger limit never keeps less on the device. In
    pages, where a run fills what is left itself, whole arrays that fit after all come back.
    """
    scales = work.scales(arrays)
    left = {a.name: _Hosting(a, work, scales) for a in arrays if not a.device_only and a.nbytes}
    held = dict.fromkeys(STAGES, 0)
    for array in arrays:
        for stage in array.stages:
            held[stage] += aligned(array.nbytes, ALIGNED)
    hosted = dict[str, Placement]()
    while _with_slack(max(held.values())) > limit:
        won = {name: _won(one.array, one.piece, held) for name, one in left.items()}
        useful = [one for name, one in left.items() if won[name] > 0]
        if not useful:
            # Several stages are at the peak: no single array lowers it.
            useful = [one for one in left.values() if _at_peak(one.array, held)]
            won = dict.fromkeys(won, 0)
        if not useful:
            break
        wins = {
            name: (nbytes if order.greedy else 0) or left[name].piece
            for name, nbytes in won.items()
        }
        first = min(
            useful,
            key=lambda one: (one.small and order.small_last, one.loss / wins[one.array.name]),
        )
        for stage in first.array.stages:
            held[stage] -= first.piece
        hosted[first.array.name] = first.move(limit - _with_slack(max(held.values())))
        if not first.here:
            del left[first.array.name]
    if in_pages:
        _bring_back(arrays, hosted, held, limit, work, scales)
    return replace(AUTO, arrays=hosted)


def _bring_back(
    arrays: Sequence[ArraySpec],
    hosted: dict[str, Placement],
    held: dict[Stage, int],
    limit: int,
    work: Workload,
    scales: Scales,
) -> None:
    """Take whole arrays off the host again that fit after all, those that cost most first."""
    whole = [a for a in arrays if a.name in hosted and not hosted[a.name].on_device]
    cost = {a.name: _Hosting(a, work, scales).cost for a in whole}
    for array in sorted(whole, key=lambda a: -cost[a.name] / a.nbytes):
        nbytes = aligned(array.nbytes, ALIGNED)
        more = {s: count + (nbytes if s in array.stages else 0) for s, count in held.items()}
        if _with_slack(max(more.values())) <= limit:
            held.update(more)
            del hosted[array.name]


class _Hosting:
    """An array that is moved to the host piece by piece.

    Parameters
    ----------
    array : ArraySpec
    work : Workload
    scales : Scales

    Attributes
    ----------
    here, piece : int
        Bytes that are on the device, and those of the next piece to move.
    loss : float
        Seconds that moving this piece costs.
    """

    def __init__(self, array: ArraySpec, work: Workload, scales: Scales) -> None:
        self.array = array
        self.whole = self.here = aligned(array.nbytes, ALIGNED)
        self.small = array.nbytes < BLOCK
        self.targets24 = has_targets24(array)
        pieces = PIECES if array.holds_input_arcs or set(array.stages) == set(STAGES) else 1
        self.most = max(aligned(self.whole // pieces, BLOCK), BLOCK)
        self.work, self.scales = work, scales
        self.next()

    def next(self) -> None:
        """Set the bytes of the next piece, and the seconds that moving it costs."""
        self.piece = min(self.most, self.here)
        self.loss = self._lost(self.here - self.piece) - self._lost(self.here)

    @property
    def cost(self) -> float:
        """Seconds that the whole array costs on the host."""
        return self._lost(0)

    def _lost(self, here: int) -> float:
        """Return the seconds that the array costs with so many bytes still on the device."""
        if here == self.whole:
            return 0.0
        away = beyond(self.work.machine)
        placement = Placement("split", here / self.whole) if here else away
        degree, machine = self.work.mean_degree, self.work.machine
        found = remote_seconds(self.array, placement, machine, degree, self.scales)
        bus = {stage: self.work.bus_scale * seconds for stage, seconds in found.items()}
        return exposed(self.work.core, bus, targets24=True) if self.targets24 else sum(bus.values())

    def move(self, room: int) -> Placement:
        """Move the next piece to the host, except for as many whole blocks as `room` holds."""
        self.here -= self.piece
        self.next()
        kept = min(self.here + max(0, room), self.whole - 1) // BLOCK * BLOCK
        if kept <= 0:
            return beyond(self.work.machine)
        # Half a block more, so that rounding the product down gives `kept`.
        return Placement("split", min(1.0, (kept + BLOCK / 2) / self.whole))


def _won(array: ArraySpec, nbytes: int, held: Mapping[Stage, int]) -> int:
    """Return the bytes by which the joint arena shrinks without so many of an array."""
    rest = max(held[stage] - (nbytes if stage in array.stages else 0) for stage in STAGES)
    return max(held.values()) - rest


def _at_peak(array: ArraySpec, held: Mapping[Stage, int]) -> bool:
    """Whether an array is alive when the joint arena is fullest."""
    most = max(held.values())
    return any(held[stage] == most for stage in array.stages)


def _with_slack(nbytes: int) -> int:
    """Return the capacity of a joint arena."""
    return nbytes + nbytes // JOINT_SLACK
