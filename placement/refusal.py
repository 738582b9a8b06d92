"""The error of a policy that cannot run within the budget."""

from __future__ import annotations

from collections.abc import Callable

from louvain_um.core.array_spec import ArraySpec
from louvain_um.core.ledger import GROUPS
from louvain_um.errors import MemoryBudgetError
from louvain_um.placement.layout import capacity, needed_by_group, placed
from louvain_um.placement.policy.candidate import Candidate
from louvain_um.placement.policy.policy import AUTO
from louvain_um.placement.units import size


def refusal(
    found: Candidate, limit: int, max_degree: int, auto: Callable[[], Candidate], *, budgeted: bool
) -> MemoryBudgetError:
    """Return the error of a candidate that needs more than the limit."""

    def here(array: ArraySpec) -> bool:
        return placed(array, found.policy).on_device == 1

    needed = found.fitted.needed
    groups = needed_by_group(found.layout, found.fitted, max_degree)
    if any(spec.group is None for spec in found.layout):
        groups = {g: capacity(a for a in found.arrays if a.group == g and here(a)) for g in GROUPS}
    group = max(groups, key=lambda g: groups[g])
    apart = {spec.name for spec in found.layout if spec.out_of_core}
    there = [(a.name, a.nbytes) for a in found.arrays if here(a) and a.name not in apart]
    # To the next MiB, so that the budget named is enough.
    least = -(-needed >> 20)
    said = (
        f"that is the least for {found.policy.name}, {size(groups[group])} of it for group "
        f"{group}; "
    )
    said += f"raise the budget to {least}MiB" if budgeted else f"use a device with {least}MiB free"
    if found.policy.name != AUTO.name and auto().fitted.within(limit):
        said += " or let memory='auto' choose"
    return MemoryBudgetError(needed, limit, there, said)
