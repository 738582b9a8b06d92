"""Parses the policies and oversubscriptions of a sweep from text."""

from __future__ import annotations

from louvain_um.errors import OptionError
from louvain_um.options import Budget
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO, Policy
from louvain_um.placement.units import size


def parse_rates(text: str) -> tuple[float, ...]:
    """Return oversubscriptions in percent, as in "0,10,30"."""
    parts = [part.strip() for part in text.split(",")]
    try:
        rates = tuple(float(part.rstrip("%")) for part in parts)
    except ValueError:
        rates = ()
    if not rates or not all(0 <= rate < 100 for rate in rates):
        raise OptionError(
            "oversubscription",
            text,
            "must be a list of percentages from 0 to below 100, like 0,10,30",
        )
    for part, rate in zip(parts, rates, strict=True):
        if 0 < rate < 1 and not part.endswith("%"):
            raise OptionError(
                "oversubscription",
                part,
                f"write {100 * rate:g} for {100 * rate:g} %, or {rate:g}% if that is meant",
                problem=f"oversubscription is in percent, and {part} is less than one percent",
            )
    return tuple(dict.fromkeys(rates))


def parse_sizes(
    rates: str | None, budgets: str | None, default: str
) -> tuple[float, ...] | tuple[Budget, ...]:
    """Return oversubscriptions, or the budgets that are given instead."""
    if budgets is None:
        return parse_rates(default if rates is None else rates)
    if rates is not None:
        raise OptionError(remedy="pass --oversubscription or --device-budget, not both")
    found = tuple(dict.fromkeys(Budget.parse(part.strip()) for part in budgets.split(",")))
    if any(budget.fraction is not None and budget.fraction > 1 for budget in found):
        raise OptionError("device_budget", budgets, "must be sizes or shares of at most 100%")
    return found


def rates_of(
    sizes: tuple[float, ...] | tuple[Budget, ...], peak: int | None = None
) -> tuple[float, ...]:
    """Return oversubscriptions in percent; bytes become a share of the peak in core."""
    rates = []
    for given in sizes:
        if not isinstance(given, Budget):
            rates.append(given)
        elif given.fraction is not None:
            rates.append(round(100 * (1 - given.fraction), 9))
        elif peak is None:
            raise OptionError(
                "device_budget", size(given.nbytes or 0), "must be a share here, such as 70%"
            )
        else:
            # Half a byte more, as a share of the peak is rounded down to bytes.
            rates.append(max(0.0, 100 * (1 - ((given.nbytes or 0) + 0.5) / peak)))
    return tuple(dict.fromkeys(rates))


def parse_policies(text: str) -> tuple[str, ...]:
    """Return names of policies, as in "base,adv2"; "all" stands for the thesis's ten and auto."""
    every = ("base", *(f"adv{i}" for i in range(1, 10)), AUTO.name)
    names = [name.strip() for name in text.split(",") if name.strip()]
    policies = tuple(
        dict.fromkeys(n for name in names for n in (every if name == "all" else (name,)))
    )
    known: dict[str, tuple[str, Policy]] = {}
    for name in policies or ("",):
        policy = find_policy(name)
        first, same = known.setdefault(policy.name, (name, policy))
        if policy != same:
            raise OptionError(
                remedy=f"{first} and {name} are both called {policy.name}; rename one"
            )
    return tuple(name for name, _ in known.values())
