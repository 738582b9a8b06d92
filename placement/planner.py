"""Decide where every byte of a run will live, and what that will cost, before any exists."""

from __future__ import annotations

from dataclasses import replace

from louvain_um.core.ledger import GROUPS
from louvain_um.errors import OptionError
from louvain_um.options import Budget
from louvain_um.placement.layout import device_bytes_in_core, placed
from louvain_um.placement.machine.machine import Machine
from louvain_um.placement.model.workload import Facts, work_for
from louvain_um.placement.plan import Plan, plan_for
from louvain_um.placement.policy.auto import Declared, Request
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import Policy


def make_plan(
    declared: Declared,
    policy: str | Policy,
    machine: Machine,
    budget: Budget | int | str | None = None,
    facts: Facts | None = None,
    *,
    free: int | None = None,
    managed: bool = True,
) -> Plan:
    """Decide where every array of a run will live, and predict what that costs."""
    chosen = find_policy(policy)
    _refuse_of_others(chosen)
    default = declared.form(False)
    machine.refuse_peer(placed(array, chosen) for array in default.arrays)
    asked = Budget.parse(budget)
    fraction = asked.fraction is not None
    allowed = asked.resolve(device_bytes_in_core(default.arrays, separate=True) if fraction else 0)
    there = machine.bytes_for_runs if free is None else free
    request = Request(
        declared=declared,
        policy=chosen,
        budget=allowed,
        limit=there if allowed is None else min(allowed, there),
        free=there if managed else 0,
    )
    return plan_for(request, work_for(default.arrays, machine, facts or Facts()), default)


def _refuse_of_others(policy: Policy) -> None:
    """Raise `OptionError` if a policy places arrays of other programs alone."""
    names = [*policy.groups, *policy.roles]
    if names and policy == replace(policy, placements={}, arrays={}):
        raise OptionError(
            remedy=f"policy {policy.name} places nothing of Louvain or Leiden: its groups and "
            f"roles ({', '.join(names)}) are of other programs; say where one of "
            f"{', '.join(GROUPS)} lives, or use memory='device'"
        )


__all__ = ["Declared", "Facts", "Plan", "make_plan"]
