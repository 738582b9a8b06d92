"""A policy laid out over declared arrays: what it takes of the device, and how long it takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from louvain_um.core.array_spec import ArraySpec
from louvain_um.placement.arena_spec import ArenaSpec
from louvain_um.placement.layout import (
    FIRST_STAGES,
    Fit,
    capacity,
    device_part,
    fit,
    input_in_pages,
    is_made_first,
    lasting,
    lay_out,
    placed,
    with_slack,
)
from louvain_um.placement.migration.pages import page_bytes
from louvain_um.placement.model.forecast import Forecast, forecast
from louvain_um.placement.model.workload import Workload
from louvain_um.placement.policy.policy import Policy


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
    """Lay a policy out and predict it."""
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


def best_of(candidates: Iterable[Candidate], limit: int) -> Candidate | None:
    """Return the fastest candidate that fits; the first of equals."""
    feasible = [c for c in candidates if c.fitted.within(limit)]
    return min(feasible, key=lambda c: c.expected.seconds, default=None)


def no_more_arrays(low_scratch: bool) -> tuple[ArraySpec, ...]:
    """Return no additional arrays for out-of-core runs."""
    return ()


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
