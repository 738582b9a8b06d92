"""What `auto` does: fill the budget with what saves most time per byte, and compare layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from louvain_um.core.array_spec import STAGES, ArraySpec, Stage
from louvain_um.placement.hardware import ALIGNED, BLOCK
from louvain_um.placement.layout import (
    FIRST_STAGES,
    JOINT_SLACK,
    ArenaSpec,
    LayoutFit,
    aligned,
    can_be_split,
    capacity,
    device_bytes,
    device_part,
    fit,
    guarded_bytes,
    input_in_pages,
    is_made_first,
    lasting,
    lay_out,
    placed,
    share_of,
    with_slack,
)
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.migration.pages import LEAST_PAGE, page_bytes
from louvain_um.placement.model.cost import Scales, exposed, exposed_share, overlaps, remote_seconds
from louvain_um.placement.model.forecast import StageForecast, forecast
from louvain_um.placement.model.workload import Workload
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO, POLICY_NAMES, Placement, Policy

Declare = Callable[[bool], tuple[ArraySpec, ...]]
"""Returns the arrays of a run, with low scratch (True) or default scratch."""


def no_more_arrays(low_scratch: bool) -> tuple[ArraySpec, ...]:
    """Return no additional arrays for out-of-core runs."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredRun:
    """The arrays of a run: `compact` with the input in fewer bytes, `at` for so many arcs."""

    arrays: Declare
    out_of_core: Declare = no_more_arrays
    compact: Declare | None = None
    at: Callable[[int], Sequence[ArraySpec]] | None = None
    kept: tuple[float, float, float] | None = None

    def form(self, low_scratch: bool) -> Form:
        """Return the arrays with low scratch or default scratch."""
        return Form(self.arrays(low_scratch), low_scratch=low_scratch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a plan was asked for."""

    declared: DeclaredRun
    policy: Policy
    budget: int | None
    limit: int
    free: int | None = None

    @property
    def budgeted(self) -> bool:
        """Whether it is the budget that limits, not the device."""
        return self.budget is not None and self.budget <= self.limit


@dataclass(frozen=True, slots=True)
class Form:
    """Arrays of a run, declared in one way."""

    arrays: tuple[ArraySpec, ...]
    low_scratch: bool = False
    compact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A policy laid out over declared arrays, with its predicted memory and time."""

    policy: Policy
    form: Form
    layout: tuple[ArenaSpec, ...]
    fitted: LayoutFit
    expected: StageForecast
    like: str
    in_pages: bool = False


def candidate(
    policy: Policy,
    form: Form,
    work: Workload,
    limit: int,
    *,
    joint: bool = False,
    in_pages: bool = False,
    out_of_core: tuple[ArraySpec, ...] = (),
    like: str = "",
) -> Candidate:
    """Lay a policy out and predict it."""
    arrays = form.arrays
    layout = lay_out(arrays, policy, joint=joint, in_pages=in_pages)
    fitted = fit(layout, limit, work.max_degree)
    if in_pages and not fitted.within(limit - wasted_bytes(limit, arrays)):
        layout = lay_out(arrays, policy, joint=joint, in_pages=True, stages=FIRST_STAGES)
        fitted = fit(layout, limit, work.max_degree)
    if in_pages:
        # Later stages, and coarse levels, are placed in what is left, and in place of the input.
        least = with_slack(capacity(_fixed(arrays, policy)))
        fitted = replace(fitted, needed=max(fitted.needed, least), occupied=limit)
    if fitted.out_of_core and out_of_core:
        larger = {array.name for array in out_of_core}
        arrays = (*(array for array in arrays if array.name not in larger), *out_of_core)
        layout = lay_out(arrays, policy, joint=joint)
        fitted = fit(layout, limit, work.max_degree)
    expected = forecast(
        arrays, policy, layout, fitted.out_of_core, work,
        low_scratch=form.low_scratch, limit=limit if in_pages else None,
    )  # fmt: skip
    return Candidate(
        policy=policy,
        form=replace(form, arrays=arrays),
        layout=layout,
        fitted=fitted,
        expected=expected,
        like=like,
        in_pages=in_pages,
    )


def best_of(candidates: Iterable[Candidate], limit: int) -> Candidate | None:
    """Return the fastest candidate that fits, the first of equal ones."""
    feasible = [c for c in candidates if c.fitted.within(limit)]
    return min(feasible, key=lambda c: c.expected.seconds, default=None)


def wasted_bytes(limit: int, arrays: Iterable[ArraySpec]) -> int:
    """Return the bytes that arrays in pages of their own, and the shared arena, waste at most."""
    return min((1 + len(input_in_pages(arrays))) * page_bytes(limit), limit // 8)


def _fixed(arrays: Iterable[ArraySpec], policy: Policy) -> list[ArraySpec]:
    """Return the arrays of known size that must be on the device in every stage they live in."""
    return [
        device_part(array, policy)
        for array in lasting(arrays)
        if not array.holds_input_arcs
        and (not array.estimated or is_made_first(array))
        and placed(array, policy).on_device
    ]


ON_HOST = Placement("host_mapped")

AT = "@"
"""Stands between an array and one of its stages."""

PIECES = 8
"""Arrays alive from loading on move to the host in so many pieces, the last one first: the first
pieces cost less where transfers overlap with work. Other arrays move whole: no other array can use
the memory of a part that stays, but for what is split in pages (`can_be_split`)."""


def beyond(machine: Machine) -> Placement:
    """Return where what does not fit on a device goes."""
    return Placement("peer") if machine.beyond == "peer" else ON_HOST


@dataclass(frozen=True, slots=True)
class Order:
    """Order in which arrays move to the host: least time lost per byte freed first."""

    greedy: bool = True
    small_last: bool = True
    whole: bool = True


ORDERS = tuple(
    Order(greedy, small, whole)
    for small in (True, False)
    for greedy, whole in ((True, True), (False, True), (False, False))
)


def offloaded_within(
    form: Form, work: Workload, limit: int, *, order: Order = Order(), in_pages: bool = False
) -> Candidate:
    """Return the candidate that moves arrays to the host until the rest fits."""
    arrays = form.arrays
    room = limit - (wasted_bytes(limit, arrays) if in_pages else 0)
    known = _by_stage(arrays) if in_pages else list(arrays)
    while True:
        policy = offloading(known, work, room, order, in_pages=in_pages)
        if in_pages:
            policy = replace(policy, arrays=_at_first(policy.arrays))
        found = candidate(policy, form, work, limit, joint=True, in_pages=in_pages)
        over = found.fitted.needed - limit
        if over <= 0 or room <= over:
            return found
        room -= over  # separate arenas are rounded up


def _by_stage(arrays: Iterable[ArraySpec]) -> list[ArraySpec]:
    """Return arrays of known size, the input's arcs once for each stage that reads them."""
    found = list[ArraySpec]()
    for array in lasting(arrays):
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


def _at_first(on_host: Mapping[str, Placement]) -> dict[str, Placement]:
    """Return the placements of arrays when the run begins."""
    found = {name.removesuffix(f"{AT}move"): where for name, where in on_host.items()}
    return {name: where for name, where in found.items() if AT not in name}


def offloading(
    arrays: Sequence[ArraySpec],
    work: Workload,
    limit: int,
    order: Order = Order(),
    *,
    in_pages: bool = False,
) -> Policy:
    """Return a policy that moves pieces of arrays to the host until the rest fits."""
    scales = work.scales(arrays, in_pages=in_pages)
    left = {a.name: _Offloaded(a, work, scales) for a in arrays if not a.device_only and a.nbytes}
    held = dict.fromkeys(STAGES, 0)
    for array in arrays:
        for stage in array.stages:
            held[stage] += aligned(array.nbytes, ALIGNED)
    on_host = dict[str, Placement]()
    while with_slack(max(held.values())) > limit:
        won = {name: _won(one.array, one.piece, held) for name, one in left.items()}
        useful = [one for name, one in left.items() if won[name] > 0]
        if not (useful and order.whole):
            # Several stages may be at the peak, which no single array lowers then.
            most = max(held.values())
            useful = [
                one for one in left.values() if any(held[s] == most for s in one.array.stages)
            ]
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
        # In pages, part of an array takes nothing of stages in which it does not exist.
        part = in_pages and can_be_split(first.array)
        mine = first.array.stages if part else STAGES
        room = limit - with_slack(max(held[stage] for stage in mine))
        where = first.move(room * JOINT_SLACK // (JOINT_SLACK + 1))
        on_host[first.array.name] = where
        for stage in mine if part else ():
            held[stage] += aligned(device_bytes(where, first.array.nbytes), ALIGNED)
        if not first.here:
            del left[first.array.name]
    if in_pages:
        _return_fitting(arrays, on_host, held, limit, work, scales)
    return replace(AUTO, arrays=on_host)


def _return_fitting(
    arrays: Sequence[ArraySpec],
    on_host: dict[str, Placement],
    held: dict[Stage, int],
    limit: int,
    work: Workload,
    scales: Scales,
) -> None:
    """Take whole arrays off the host again that fit after all, those that cost most first."""
    whole = [a for a in arrays if a.name in on_host and not on_host[a.name].on_device]
    cost = {a.name: _Offloaded(a, work, scales).cost for a in whole}
    for array in sorted(whole, key=lambda a: -cost[a.name] / a.nbytes):
        nbytes = aligned(array.nbytes, ALIGNED)
        more = {s: count + (nbytes if s in array.stages else 0) for s, count in held.items()}
        if with_slack(max(more.values())) <= limit:
            held.update(more)
            del on_host[array.name]


class _Offloaded:
    """An array that is moved to the host piece by piece."""

    def __init__(self, array: ArraySpec, work: Workload, scales: Scales) -> None:
        self.array = array
        self.whole = self.here = aligned(array.nbytes, ALIGNED)
        self.small = array.nbytes < BLOCK
        self.sorted_rows = overlaps(array, work.machine)
        pieces = PIECES if array.holds_input_arcs or "load" in array.stages else 1
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
        return (
            exposed(self.work.core, bus, sorted_rows=True)
            if self.sorted_rows
            else sum(bus.values())
        )

    def move(self, room: int) -> Placement:
        """Move the next piece to the host, except for as many whole blocks as `room` holds."""
        self.here -= self.piece
        self.next()
        kept = min(self.here + max(0, room), self.whole - 1) // BLOCK * BLOCK
        if kept <= 0:
            return beyond(self.work.machine)
        return Placement("split", share_of(kept, self.whole))


def _won(array: ArraySpec, nbytes: int, held: Mapping[Stage, int]) -> int:
    """Return the bytes by which the joint arena shrinks without so many of an array."""
    rest = max(held[stage] - (nbytes if stage in array.stages else 0) for stage in STAGES)
    return max(held.values()) - rest


LEAST_PAGES: Final = 8
"""Pages that a device must have for a run in pages: fewer would be too coarse."""

MUCH: Final = 3
"""Much leaves if more than 1 / `MUCH` of the device is lacking. If less is, maybe nothing leaves:
most graphs have smaller levels than estimates expect."""


def unplanned_bytes(arrays: Iterable[ArraySpec]) -> int:
    """Return the bytes by which arcs of levels 1 and 2 may exceed their estimates."""
    known = list(arrays)
    arcs = max((a.size for a in known if a.role == "targets" and a.level == 0), default=0)
    rows = [a for a in known if a.estimated and a.holds_coarse_arcs]
    more = [max(0, arcs - a.size) * a.itemsize for a in rows]
    copied = (arcs * a.itemsize for a, out in zip(rows, more, strict=True) if out)
    return int(sum(more) + max(copied, default=0))


def leaves_often(arrays: Sequence[ArraySpec], compact: Iterable[ArraySpec], limit: int) -> bool:
    """Return whether so much of the input is expected to leave that it is to take fewer bytes."""
    short = with_slack(capacity(arrays)) + wasted_bytes(limit, arrays) - limit
    return short > (limit // MUCH if any(a.by_length for a in compact) else 0)


def choose(
    declared: DeclaredRun, default: Form, work: Workload, limit: int, free: int | None = None
) -> Candidate:
    """Return the candidate with the least predicted time within the limit."""
    first = candidate(AUTO, default, work, limit)
    if first.fitted.within(limit - unplanned_bytes(default.arrays)):
        return first
    low_scratch, compact = declared.form(True), declared.compact
    smallest = Form(compact(True), low_scratch=True, compact=True) if compact else None
    in_pages = any(a.estimated for a in default.arrays) and limit >= LEAST_PAGES * LEAST_PAGE
    still = list[Candidate]()
    if exposed_share(work.machine) < 1:
        still = [
            offloaded_within(form, work, limit, order=order)
            for form in (default, low_scratch)
            for order in ORDERS
        ]
    in_core = [low_scratch]
    if compact and smallest:
        in_core = [Form(compact(False), compact=True), low_scratch, smallest]
    if in_pages:
        few = smallest.arrays if smallest else ()
        last = compact and not still and leaves_often(low_scratch.arrays, few, limit)
        in_core.insert(1 if last else 0, default)
    for form in in_core:
        joint = form.low_scratch or in_pages
        found = candidate(AUTO, form, work, limit, joint=joint, in_pages=in_pages)
        if found.fitted.within(limit - (wasted_bytes(limit, form.arrays) if in_pages else 0)):
            return best_of([found, *still], limit) or found
    fewest = smallest or low_scratch
    offloaded = [offloaded_within(fewest, work, limit, order=o, in_pages=in_pages) for o in ORDERS]
    best = best_of([*offloaded, *still], limit)
    if in_pages and best:
        return best
    if work.machine.beyond == "peer":
        return best or offloaded[0]  # the package's policies are about the host
    known = [
        candidate(
            replace(find_policy(name), name=AUTO.name), form, work, limit,
            out_of_core=declared.out_of_core(form.low_scratch), like=name,
        )
        for name in POLICY_NAMES
        if name != AUTO.name
        for form in (low_scratch, default)
    ]  # fmt: skip
    if free is not None:
        known = [one for one in known if guarded_bytes(one.layout) <= free]
    return best_of([*offloaded, *known], limit) or offloaded[0]
