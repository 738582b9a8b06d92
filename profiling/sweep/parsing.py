"""Parses the policies and oversubscriptions of a sweep from text."""

from __future__ import annotations

from louvain_um.errors import OptionError
from louvain_um.placement.policy.find import find_policy
from louvain_um.placement.policy.policy import AUTO, Policy


def parse_rates(text: str) -> tuple[float, ...]:
    """Return oversubscriptions in percent, as in "0,10,30".

    Raises
    ------
    OptionError
        Not a list of numbers of at least 0 and below 100; or one between 0 and 1 without a percent
        sign, which is rather a fraction.

    Examples
    --------
    >>> from louvain_um.profiling.sweep.parsing import parse_rates
    >>> parse_rates("0, 12.5,70%")
    (0.0, 12.5, 70.0)
    """
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


def parse_policies(text: str) -> tuple[str, ...]:
    """Return names of policies, as in "base,adv2"; "all" stands for the thesis's ten and auto.

    Raises
    ------
    OptionError
        There is no such policy, or two of them have one name.
    """
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
