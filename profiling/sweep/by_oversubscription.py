"""Oversubscriptions as text, neighbouring ones as one range; rows grouped by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def format_rates(rates: Sequence[float]) -> str:
    """Return neighbouring oversubscriptions as text."""
    first, last = _figure(rates[0]), _figure(rates[-1])
    return f"{first} %" if len(rates) == 1 else f"{first} to {last} %"


def _figure(rate: float) -> str:
    """Return an oversubscription to two decimals: one of a budget in bytes has many."""
    rounded = round(rate, 2)
    return f"{rounded:g}" if 0 < rounded < 100 else f"{rate:.9g}"


def format_rate_ranges(rates: Iterable[float], every: Iterable[float]) -> str:
    """Return oversubscriptions as text."""
    order = sorted(set(every))
    groups: list[list[float]] = []
    for rate in sorted(set(rates)):
        if groups and order.index(rate) == order.index(groups[-1][-1]) + 1:
            groups[-1].append(rate)
        else:
            groups.append([rate])
    return " and ".join(map(format_rates, groups))


def merge_equal(
    rows: Sequence[Mapping[str, Any]], of: Callable[[list[Mapping[str, Any]]], T]
) -> list[tuple[str, T]]:
    """Apply a function to the rows of each oversubscription; merge those with equal results."""
    order = sorted({row["oversubscription"] for row in rows})
    groups: list[tuple[T, list[float]]] = []
    for rate in order:
        value = of([row for row in rows if row["oversubscription"] == rate])
        same = next((at for known, at in groups if known == value), None)
        if same is None:
            groups.append((value, [rate]))
        else:
            same.append(rate)
    return [(format_rate_ranges(at, order), value) for value, at in groups]
