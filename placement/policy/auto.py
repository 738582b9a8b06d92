"""What `auto` does: fill the budget with what saves most time per byte, split the last array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from louvain_um.core.array_spec import ArraySpec
from louvain_um.placement.arena_spec import guarded_bytes
from louvain_um.placement.layout import capacity, with_slack
from louvain_um.placement.migration.pages import LEAST_PAGE
from louvain_um.placement.model.cost import exposed_share
from louvain_um.placement.model.workload import Workload
from louvain_um.placement.policy.candidate import (
    Candidate,
    best_of,
    candidate,
    no_more_arrays,
    wasted_bytes,
)
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.hosting import ORDERS, hosted_within
from louvain_um.placement.policy.policy import AUTO, POLICY_NAMES

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
    default: tuple[ArraySpec, ...],
    declare: Callable[[bool], tuple[ArraySpec, ...]],
    work: Workload,
    limit: int,
    out_of_core: Callable[[bool], tuple[ArraySpec, ...]] = no_more_arrays,
    compact: Callable[[bool], tuple[ArraySpec, ...]] | None = None,
    free: int | None = None,
) -> Candidate:
    """Return the candidate with the least predicted time within the limit."""
    first = candidate(AUTO, default, work, limit, low_scratch=False)
    if first.fitted.within(limit - unplanned_bytes(default)):
        return first
    low_scratch = declare(True)
    smallest = compact(True) if compact else ()
    in_pages = any(a.estimated for a in default) and limit >= LEAST_PAGES * LEAST_PAGE
    still = list[Candidate]()
    if exposed_share(work.machine) < 1:
        forms = ((default, False), (low_scratch, True))
        still = [
            hosted_within(arrays, work, limit, low_scratch=small, order=order)
            for arrays, small in forms
            for order in ORDERS
        ]
    in_core = [(low_scratch, True, False)]
    if compact:
        in_core = [(compact(False), False, True), *in_core, (smallest, True, True)]
    if in_pages:
        last = compact and not still and leaves_often(low_scratch, smallest, limit)
        in_core.insert(1 if last else 0, (default, False, False))
    for arrays, small, less in in_core:
        joint = small or in_pages
        found = candidate(
            AUTO, arrays, work, limit,
            low_scratch=small, compact=less, joint=joint, in_pages=in_pages,
        )  # fmt: skip
        if found.fitted.within(limit - (wasted_bytes(limit, arrays) if in_pages else 0)):
            return best_of([found, *still], limit) or found
    fewest = smallest or low_scratch
    own = [
        hosted_within(fewest, work, limit, compact=bool(smallest), order=order, in_pages=in_pages)
        for order in ORDERS
    ]
    best = best_of([*own, *still], limit)
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
