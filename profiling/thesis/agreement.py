"""How replayed gains agree with those that the thesis published (Table 4.6)."""

from __future__ import annotations

from collections.abc import Sequence

from louvain_um.profiling.sweep.results import Row, gains
from louvain_um.profiling.thesis.published import GAINS, RATES


def against_thesis(rows: Sequence[Row]) -> list[str]:
    """Return how replayed gains agree with the published ones (Table 4.6), misses named."""
    replayed = gains([row for row in rows if row["evidence"] == "modelled"])
    sentences = []
    for number, rate in enumerate(RATES):
        published_gains = {name: values[number] for name, values in GAINS.items()}
        known = {
            name: replayed[name][rate] for name in published_gains if rate in replayed.get(name, {})
        }
        if len(known) < len(published_gains):
            continue
        order = sorted(known, key=lambda name: -known[name])
        published = sorted(published_gains, key=lambda name: -published_gains[name])
        miss = max(
            known,
            key=lambda name: max(
                known[name] / published_gains[name], published_gains[name] / known[name]
            ),
        )
        sentences.append(
            f"Table 4.6 at {rate:g} %: fastest here {', '.join(order[:3])}, published "
            f"{', '.join(published[:3])}; rank correlation {_ranks(order, published):.2f}; "
            f"farthest off is {miss}, {known[miss]:.2f} here, {published_gains[miss]:.2f} published"
        )
    return sentences


def _ranks(one: Sequence[str], two: Sequence[str]) -> float:
    """Return Spearman's correlation of two orders of the same names."""
    n = len(one)
    squares = sum((one.index(name) - two.index(name)) ** 2 for name in one)
    return 1 - 6 * squares / (n * (n * n - 1))
