"""What `auto` does: fill the budget with what saves most time per byte, split the last array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from louvain_um.arrays import STAGES, Declared, Stage
from louvain_um.placement.cost import Scales, arrival_seconds, remote_seconds
from louvain_um.placement.forecast import Forecast, Work, forecast
from louvain_um.placement.layout import ALIGNED, JOINT_SLACK, Fit, aligned, fit, lay_out
from louvain_um.placement.policy import AUTO, POLICY_NAMES, Placement, Policy, find_policy
from louvain_um.placement.spec import BLOCK, ArenaSpec

HOSTED = Placement("host_mapped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A policy laid out over the arrays as they are declared, and what it would take."""

    policy: Policy
    arrays: tuple[Declared, ...]
    tight: bool
    packed: bool
    layout: tuple[ArenaSpec, ...]
    fitted: Fit
    expected: Forecast


def candidate(
    policy: Policy,
    arrays: tuple[Declared, ...],
    work: Work,
    limit: int,
    *,
    tight: bool,
    packed: bool = False,
    joint: bool = False,
    paging: tuple[Declared, ...] = (),
) -> Candidate:
    """Lay a policy out and predict it; `paging` is needed besides where arcs come and go."""
    layout = lay_out(arrays, policy, joint=joint)
    fitted = fit(layout, limit, work.widest)
    if fitted.paged and paging:
        arrays += paging
        layout = lay_out(arrays, policy, joint=joint)
        fitted = fit(layout, limit, work.widest)
    return Candidate(
        policy=policy,
        arrays=arrays,
        tight=tight,
        packed=packed,
        layout=layout,
        fitted=fitted,
        expected=forecast(arrays, policy, layout, fitted.paged, work, tight=tight),
    )


def best_of(candidates: Iterable[Candidate], limit: int) -> Candidate | None:
    """Return the fastest candidate that fits; the first of equals."""
    feasible = [c for c in candidates if c.fitted.within(limit)]
    return min(feasible, key=lambda c: c.expected.seconds, default=None)


def no_paging(tight: bool) -> tuple[Declared, ...]:
    """Return nothing: what is brought in blocks takes nothing besides."""
    return ()


def choose(
    roomy: tuple[Declared, ...],
    declare: Callable[[bool], tuple[Declared, ...]],
    work: Work,
    limit: int,
    paging: Callable[[bool], tuple[Declared, ...]] = no_paging,
    pack: Callable[[bool], tuple[Declared, ...]] | None = None,
) -> Candidate:
    """Return what the model holds best within the limit; what needs least if nothing fits.

    Where everything fits, that is plain device memory, with arcs packed (`pack`) rather than
    scratch made small, and both if they must be. Otherwise it is the best of two: arrays taken
    off the device in the order of time lost per byte won, the last one split; and every policy
    that comes with the package.
    """
    first = candidate(AUTO, roomy, work, limit, tight=False)
    if first.fitted.within(limit):
        return first
    tight = declare(True)
    packed = pack(True) if pack else ()
    in_core = [(tight, True, False)]
    if pack:
        in_core = [(pack(False), False, True), *in_core, (packed, True, True)]
    for arrays, small, less in in_core:
        found = candidate(AUTO, arrays, work, limit, tight=small, packed=less, joint=small)
        if found.fitted.within(limit):
            return found
    own = [
        hosted_within(packed or tight, work, limit, packed=bool(packed), greedy=greedy)
        for greedy in (True, False)
    ]
    names = (name for name in POLICY_NAMES if name != AUTO.name)
    known = [
        candidate(
            replace(find_policy(name), name=AUTO.name),
            arrays,
            work,
            limit,
            tight=small,
            paging=paging(small),
        )
        for name in names
        for arrays, small in ((tight, True), (roomy, False))
    ]
    return best_of([*own, *known], limit) or own[0]


def hosted_within(
    arrays: tuple[Declared, ...],
    work: Work,
    limit: int,
    *,
    packed: bool = False,
    greedy: bool = True,
) -> Candidate:
    """Return the candidate whose arrays leave the device until the rest fits."""
    room = limit
    while True:
        policy = hosting(arrays, work, room, greedy=greedy)
        found = candidate(policy, arrays, work, limit, tight=True, packed=packed, joint=True)
        over = found.fitted.needed - limit
        if over <= 0 or room <= over:
            return found
        room -= over  # arenas of their own are rounded up


def hosting(arrays: Sequence[Declared], work: Work, limit: int, *, greedy: bool = True) -> Policy:
    """Return a policy that takes arrays off the device until the rest fits.

    The order does not depend on the limit, so that a larger one never leaves less on the device:
    that of time lost per byte won at the time if `greedy`, else per byte of the array, which an
    array that is at the peak alone later may win.
    """
    scales = work.scales(arrays)
    left = [array for array in arrays if not array.device_only and array.nbytes]
    # What is small wins next to nothing and is often hot: only if all else is not enough.
    small = {array.name for array in left if array.nbytes < BLOCK}
    lost = {array.name: _lost(array, work, scales) for array in left}
    held = dict.fromkeys(STAGES, 0)
    for array in arrays:
        for stage in array.stages:
            held[stage] += aligned(array.nbytes, ALIGNED)
    hosted = dict[str, Placement]()
    while _with_slack(max(held.values())) > limit:
        won = {array.name: _won(array, held) for array in left}
        useful = [array for array in left if won[array.name] > 0]
        if not useful:
            # Stages that need the same each keep the others' arrays from winning anything.
            useful = [array for array in left if _at_peak(array, held)]
            won = {array.name: 0 for array in left}
        if not useful:
            break
        wins = {a.name: (won[a.name] if greedy else 0) or a.nbytes for a in useful}
        first = min(useful, key=lambda a: (a.name in small, lost[a.name] / wins[a.name]))
        left.remove(first)
        for stage in first.stages:
            held[stage] -= aligned(first.nbytes, ALIGNED)
        hosted[first.name] = _split(first, limit - _with_slack(max(held.values())))
    return replace(AUTO, arrays=hosted)


def _lost(array: Declared, work: Work, scales: Scales) -> float:
    """Return the seconds that an array costs on the host."""
    bus = remote_seconds(array, HOSTED, work.machine, work.mean_degree, scales)
    fresh = "load" not in array.stages
    made = arrival_seconds(array.nbytes, HOSTED, work.machine, given=False) if fresh else 0.0
    return sum(bus.values()) + made


def _won(array: Declared, held: Mapping[Stage, int]) -> int:
    """Return the bytes by which the joint arena shrinks without an array."""
    nbytes = aligned(array.nbytes, ALIGNED)
    rest = max(held[stage] - (nbytes if stage in array.stages else 0) for stage in STAGES)
    return max(held.values()) - rest


def _at_peak(array: Declared, held: Mapping[Stage, int]) -> bool:
    """Whether an array is alive when the joint arena is fullest."""
    most = max(held.values())
    return any(held[stage] == most for stage in array.stages)


def _with_slack(nbytes: int) -> int:
    """Return the capacity of a joint arena."""
    return nbytes + nbytes // JOINT_SLACK


def _split(array: Declared, room: int) -> Placement:
    """Return a placement that leaves as many whole blocks of an array on the device as fit."""
    whole = aligned(array.nbytes, ALIGNED)
    kept = min(max(0, room), whole - 1) // BLOCK * BLOCK
    if kept <= 0:
        return HOSTED
    # Half a block more, so that rounding the product down gives the blocks meant.
    return Placement("split", min(1.0, (kept + BLOCK / 2) / whole))
