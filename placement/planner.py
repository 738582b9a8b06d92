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
    """Decide where every array of a run will live, and predict what that costs.

    Parameters
    ----------
    declare : callable
        ``declare(low_scratch)`` returns the arrays of the run; with True, scratch is as small as it
        works with.
    policy : str or Policy
        What `find_policy` takes; "auto" leaves the choice to the model.
    machine : Machine
    budget : Budget, int or str, optional
        Bytes of the device to use, as a number, like "8GiB", or like "70%" of what the run takes
        in core. Resolved to bytes here, and nowhere else.
    kind : {"mesh", "community_structured", "power_law", "unknown"}, optional
        Kind of graph; by default derived from `skew`.
    skew : float, optional
        Σ degree² ÷ Σ degree, of the unweighted graph; decides the kind of graph.
    visited : float, optional
        Arcs that moving visits on level 0, by arcs of the graph; by default those of the kind
        of graph.
    method : {"louvain", "leiden"}, optional
        By default derived from the arrays.
    source : {"host", "device"}
        Where the graph is when the run begins.
    free : int, optional
        Bytes that the device has free; by default what the machine has, less a context's.
    max_degree : int, optional
        Most arcs of a vertex: a block holds whole rows.
    at : callable, optional
        ``at(arcs)`` returns the arrays, with low scratch, of a graph of the same shape with so
        many arcs; by default sizes are taken to grow in proportion.
    out_of_core : callable, optional
        ``out_of_core(low_scratch)`` returns the additional arrays of an out-of-core run.
    compact : callable, optional
        ``compact(low_scratch)`` returns the arrays with the input in fewer bytes, if it can be;
        "auto" uses them where the others do not fit.
    managed : bool
        Whether the device has managed memory that both sides may touch at any time.
    kept : (float, float, float), optional
        Share of the input's arcs that level 1 keeps, low, expected and high, if anything is known.

    Returns
    -------
    Plan

    Raises
    ------
    OptionError
        There is no such policy or kind, it places nothing here or on a peer that is not named, the
        budget is none, or the machine has too little memory for a context.
    MemoryBudgetError
        The policy needs more of the device than there is; the error names the least it needs and
        the group that needs most of it.

    Examples
    --------
    >>> from louvain_um.core.array_spec import ArraySpec
    >>> from louvain_um.placement.planner import make_plan
    >>> from louvain_um.placement.machine.profiles import H200
    >>> arcs = ArraySpec(name="arcs", role="targets", level=0, group="graph", itemsize=4,
    ...                  size=1 << 26, stages=("load", "move"),
    ...                  accesses={("move", "stream"): 5 << 26})
    >>> plan = make_plan(lambda low_scratch: (arcs,), "auto", H200, "50%")
    >>> str(plan.placements["graph"]), plan.device_bytes >> 20
    ('split(0.4961)', 126)
    """
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
