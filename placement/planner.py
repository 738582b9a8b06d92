"""Decide where every byte of a run will live, and what that will cost, before any exists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from louvain_um.core.array_spec import ArraySpec
from louvain_um.core.ledger import GROUPS
from louvain_um.errors import OptionError
from louvain_um.options import Budget
from louvain_um.placement.decision import Declare, Request
from louvain_um.placement.layout import device_bytes_in_core, placed
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.model.workload import Source, work_for
from louvain_um.placement.plan import Plan, plan_for
from louvain_um.placement.policy.candidate import no_more_arrays
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import Policy


def make_plan(
    declare: Declare,
    policy: str | Policy,
    machine: Machine,
    budget: Budget | int | str | None = None,
    *,
    kind: str | None = None,
    skew: float | None = None,
    visited: float | None = None,
    method: str | None = None,
    source: Source = "host",
    free: int | None = None,
    max_degree: int | None = None,
    at: Callable[[int], Sequence[ArraySpec]] | None = None,
    out_of_core: Declare = no_more_arrays,
    compact: Declare | None = None,
    managed: bool = True,
    kept: tuple[float, float, float] | None = None,
) -> Plan:
    """Decide where every array of a run will live, and predict what that costs."""
    chosen = find_policy(policy)
    _refuse_of_others(chosen)
    default = declare(False)
    machine.refuse_peer(placed(array, chosen) for array in default)
    asked = Budget.parse(budget)
    whole = device_bytes_in_core(default, apart=True) if asked.fraction is not None else 0
    allowed = asked.resolve(whole)
    there = machine.bytes_for_runs if free is None else free
    request = Request(
        declare=declare,
        policy=chosen,
        budget=allowed,
        limit=there if allowed is None else min(allowed, there),
        at=at,
        out_of_core=out_of_core,
        compact=compact,
        free=there if managed else 0,
        kept=kept,
    )
    work = work_for(
        default,
        machine,
        kind=kind,
        skew=skew,
        visited=visited,
        method=method,
        source=source,
        max_degree=max_degree or 0,
    )
    return plan_for(request, work, default)


def _refuse_of_others(policy: Policy) -> None:
    """Raise `OptionError` if a policy places arrays of other programs alone."""
    names = [*policy.groups, *policy.roles]
    if names and policy == replace(policy, placements={}, arrays={}):
        raise OptionError(
            remedy=f"policy {policy.name} places nothing of Louvain or Leiden: its groups and "
            f"roles ({', '.join(names)}) are of other programs; say where one of "
            f"{', '.join(GROUPS)} lives, or use memory='device'"
        )


__all__ = ["Plan", "Request", "device_bytes_in_core", "make_plan"]
