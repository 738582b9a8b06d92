"""What `auto` does: fill the budget with what saves most time per byte, split the last array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from louvain_um.core.array_spec import ArraySpec
from louvain_um.placement.layout import capacity, guarded_bytes, with_slack
from louvain_um.placement.migration.pages import LEAST_PAGE
from louvain_um.placement.model.cost import exposed_share
from louvain_um.placement.model.workload import Workload
from louvain_um.placement.policy.candidates import (
    ORDERS,
    Candidate,
    Declared,
    Form,
    best_of,
    candidate,
    offloaded_within,
    wasted_bytes,
)
from louvain_um.placement.policy.find import find_policy
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
    declared: Declared, default: Form, work: Workload, limit: int, free: int | None = None
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
    own = [offloaded_within(fewest, work, limit, order=o, in_pages=in_pages) for o in ORDERS]
    best = best_of([*own, *still], limit)
    if in_pages and best:
        return best
    if work.machine.beyond == "peer":
        return best or own[0]  # the package's policies are about the host
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
    return best_of([*own, *known], limit) or own[0]
