"""Charts of many detections: over resolutions, and over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louvain_um.drawing.colours import colour
from louvain_um.drawing.plots import INK, figure_axes


def plot_profile(
    steps: Sequence[tuple[float, float, int]], points: Sequence[tuple[float, float]], ax: Any
) -> Any:
    """Draw communities (left axis) and stability (right axis) over the resolution."""
    if ax is None:
        ax = figure_axes()
    other = ax.twinx()
    ordered = sorted(points)
    other.plot(*zip(*ordered, strict=True), "o-", color=colour(1), markersize=3, linewidth=0.8,
               alpha=0.7)  # fmt: skip
    other.set_ylim(-0.02, 1.05)
    other.set_ylabel("agreement of seeds (adjusted Rand index)", color=colour(1))
    for low, high, communities in steps:
        ax.plot([low, high], [communities] * 2, color=colour(0), linewidth=3,
                solid_capstyle="butt")  # fmt: skip
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    if max(step[2] for step in steps) > 30 * max(1, min(step[2] for step in steps)):
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("resolution", color=INK)
    ax.set_ylabel("communities", color=colour(0))
    ax.set_zorder(other.get_zorder() + 1)
    ax.patch.set_visible(False)
    ax.spines["top"].set_visible(False)
    other.spines["top"].set_visible(False)
    return ax


def plot_certainty(certainty: NDArray[np.float64], stability: float, ax: Any) -> Any:
    """Draw how many vertices are how sure of their community."""
    if ax is None:
        ax = figure_axes()
    ax.hist(certainty, bins=np.linspace(0, 1, 21), color=colour(0), edgecolor="white")
    ax.axvline(0.5, color=colour(1), linewidth=1)
    ax.set_xlim(0, 1)
    ax.set_xlabel("share of its community that a vertex is with, in an average run", color=INK)
    ax.set_ylabel("vertices", color=INK)
    ax.set_title(f"stability {stability:.3f}", color=INK, fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
