"""Numbers published by Dinçer (thesis, chapter 4), shown next to those of a sweep.

Machines: PASCAL is a Quadro P4000 with 8 GB, AMPERE an RTX 3060 Ti with 8 GB, both on PCIe 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from louvain_um.profiling.sweep.results import Row, Sweep, gains

MACHINES: Final[dict[str, str]] = {
    "p4000": "PASCAL: 2 × Xeon Silver 4114, 32 GB; Quadro P4000, 8 GB",
    "rtx3060ti": "AMPERE: Xeon E5-2609 v4, 64 GB; RTX 3060 Ti, 8 GB",
}
"""Table 4.1, by profile; no figure of the profiles was measured."""

DATASETS: Final[dict[str, tuple[int, int, bool]]] = {
    "audikw_1": (943_695, 76_708_152, True),
    "soc-LiveJournal1": (4_847_571, 68_475_391, False),
    "Long_Coup_dt6": (1_470_152, 85_618_840, True),
    "dielFilterV3real": (1_102_824, 88_203_196, True),
    "cage15": (5_154_859, 94_044_692, True),
    "rgg_n_2_24_s0": (16_777_216, 265_114_400, False),
    "kron_g500-logn21": (2_097_152, 182_081_864, True),
    "uk-2002": (18_520_486, 292_243_663, False),
    "uk-2005": (39_459_925, 921_345_078, False),
    "kmer_V1r": (214_005_017, 465_410_904, False),
    "kron_24_24": (16_777_216, 773_919_478, False),
    "mawi_20151202033": (226_196_185, 480_047_894, False),
    "sk-2005": (50_636_154, 1_930_292_948, False),
}
"""Table 4.2: vertices, arcs after conversion, whether weighted.

mawi_20151202033 is in Table 4.7 alone: its size is that of the SuiteSparse collection.
"""

GROUPS: Final = ("graph", "hash", "community", "scratch")
"""Graph's CSR, Hash Tables, Community Info., Others."""

PEAK_MB: Final[dict[str, tuple[int, ...]]] = {
    "audikw_1": (617, 43, 30, 890),
    "soc-LiveJournal1": (293, 391, 155, 606),
    "Long_Coup_dt6": (690, 29, 47, 1057),
    "dielFilterV3real": (710, 30, 35, 926),
    "cage15": (772, 99, 164, 941),
    "rgg_n_2_24_s0": (1127, 2, 536, 2188),
    "kron_g500-logn21": (1465, 775, 67, 2022),
    "uk-2002": (1243, 314, 592, 2451),
}
"""Table 4.3: peak memory by group, PASCAL."""

ACCESSES: Final[dict[str, tuple[int, ...]]] = {
    "audikw_1": (677, 68, 514, 499),
    "soc-LiveJournal1": (627, 77, 734, 572),
    "Long_Coup_dt6": (917, 18, 925, 603),
    "dielFilterV3real": (1564, 125, 896, 1212),
    "cage15": (595, 36, 681, 331),
    "rgg_n_2_24_s0": (754, 51, 833, 387),
    "kron_g500-logn21": (99, 73, 89, 61),
    "uk-2002": (1015, 80, 1055, 1366),
}
"""Table 4.4: millions of memory accesses by group, PASCAL."""

IN_CORE_SECONDS: Final[dict[str, float]] = {
    "audikw_1": 0.751, "soc-LiveJournal1": 2.901, "Long_Coup_dt6": 0.979,
    "dielFilterV3real": 0.624, "cage15": 1.517, "rgg_n_2_24_s0": 3.432,
    "kron_g500-logn21": 1.484, "uk-2002": 3.910,
}  # fmt: skip
"""Table 2.1: seconds of Rundemanen with all in device memory."""

ACCESS_SHARE: Final = (0.351, 0.052, 0.334, 0.263)
"""Mean shares of Figure 4.1."""

FAULT_SHARE: Final = (0.533, 0.033, 0.144, 0.290)
"""Mean shares of page faults at 30 % oversubscription, Figure 4.10."""

RATES: Final = (0.0, 10.0, 30.0, 50.0, 70.0)
"""Oversubscription in percent."""

GAINS: Final[dict[str, tuple[float, ...]]] = {
    "adv1": (0.098, 1.642, 1.742, 4.194, 18.934),
    "adv2": (0.470, 7.201, 8.583, 9.274, 17.004),
    "adv3": (0.278, 1.351, 0.783, 1.069, 1.333),
    "adv4": (0.171, 1.323, 0.754, 1.319, 1.629),
    "adv5": (0.312, 5.687, 6.266, 6.854, 3.260),
    "adv6": (0.149, 1.833, 2.518, 4.790, 16.512),
    "adv7": (0.284, 3.778, 5.702, 13.020, 62.516),
    "adv8": (0.131, 2.129, 2.387, 4.478, 5.429),
    "adv9": (0.117, 2.047, 2.290, 5.272, 27.527),
}
"""Table 4.6: mean gain over *base* at `RATES`, both machines."""

NON_FITTING: Final[dict[str, tuple[float, float]]] = {
    "uk-2005": (13.7, 37.0),
    "kmer_V1r": (14.7, 41.0),
    "kron_24_24": (15.9, 45.0),
    "mawi_20151202033": (20.9, 58.0),
    "sk-2005": (34.9, 75.0),
}
"""Table 4.7: peak in GB and percent of oversubscription, AMPERE."""

NON_FITTING_ABOUT: Final = (
    "The thesis: adv2 and adv7 are fastest, adv2 on every one of its graphs that do not fit."
)
"""The thesis's text on Figure 4.23."""

TIMES_ABOUT: Final = (
    "The thesis prints no numbers for these charts. Its text: base grows with oversubscription; "
    "adv3 and adv4 stay near base; adv1 stays level; adv2 is best at 30 % where neither base nor "
    "adv5 is; adv2 or adv7 at 50 %; adv7 at 70 %."
)
"""The thesis's text on Figures 4.20 to 4.22."""


def published_name(graph: str) -> str | None:
    """Return the thesis's name of a graph or of the original of a stand-in."""
    known = sorted({*PEAK_MB, *NON_FITTING}, key=len, reverse=True)
    plain = graph.lower().replace("_", "-")
    for name in known:
        if name.lower().replace("_", "-") in plain:
            return name
    return None


def averaged(sweep: Sweep) -> list[Row]:
    """Return the runs that means are over: of a study, those of graphs that fit the GPUs.

    The others have a single oversubscription each (Table 4.7).
    """
    return [
        row
        for row in sweep.results
        if not sweep.is_study or published_name(row["graph"]) not in NON_FITTING
    ]


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
        off = {name: gain / published_gains[name] for name, gain in known.items()}
        miss = max(off, key=lambda name: max(off[name], 1 / off[name]))
        flipped = [name for name in published if (known[name] > 1) != (published_gains[name] > 1)]
        signs = f"{len(flipped)} of {len(known)} gains on the other side of 1"
        signs += f" ({', '.join(flipped)})" if flipped else ""
        sentences.append(
            f"Table 4.6 at {rate:g} %: fastest here {', '.join(order[:3])}, published "
            f"{', '.join(published[:3])}; rank correlation {_ranks(order, published):.2f}; "
            f"{signs}; median of modelled ÷ published {median(off.values()):.2f}; "
            f"farthest off is {miss}, {known[miss]:.2f} here, {published_gains[miss]:.2f} published"
        )
    return sentences


def _ranks(one: Sequence[str], two: Sequence[str]) -> float:
    """Return Spearman's correlation of two orders of the same names."""
    n = len(one)
    squares = sum((one.index(name) - two.index(name)) ** 2 for name in one)
    return 1 - 6 * squares / (n * (n * n - 1))
