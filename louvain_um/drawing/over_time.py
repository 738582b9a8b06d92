"""Charts of communities that change over time, by Matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from louvain_um.drawing.plots import OTHERS, PALETTE
from louvain_um.errors import LouvainUmError

if TYPE_CHECKING:
    import pandas as pd

NAMED: Final = len(PALETTE)
"""Communities with a colour of their own: those that were largest at any time."""

GAP: Final = 0.012
"""Space between two communities of a column, relative to its height."""

GREY: Final = "#7d8590"
"""Of axes and text: legible on light and on dark paper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stays:
    """When each vertex was in which community: one row per stay, from one batch to another.

    Parameters
    ----------
    vertices, ids : int64[s]
        Vertex, numbered by first appearance, and the community's id.
    begins, ends : int64[s]
        First batch, and the first one no more; batches are numbered from 0.
    batches : int
        Number of batches.
    """

    vertices: NDArray[np.int64]
    ids: NDArray[np.int64]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    batches: int

    @classmethod
    def of(cls, changes: pd.DataFrame, times: NDArray[Any]) -> Self:
        """Return the stays that rows of `time, vertex, community` list."""
        import pandas as pd

        vertices = pd.factorize(changes["vertex"])[0].astype(np.int64)
        first = {time: batch for batch, time in reversed([*enumerate(times.tolist())])}
        batches = changes["time"].map(first)
        if batches.isna().any():
            time = changes["time"][batches.isna()].iloc[0]
            raise LouvainUmError(
                f"communities change at the time {time}, which the history lacks; follow the "
                "stream again"
            )
        begins = batches.to_numpy(np.int64)
        order = np.lexsort((begins, vertices))
        vertices, begins = vertices[order], begins[order]
        ids = changes["community"].to_numpy(np.int64)[order]
        ends = np.full(len(begins), len(times), np.int64)
        same = vertices[1:] == vertices[:-1]
        ends[:-1][same] = begins[1:][same]
        lasting = (ends > begins) & (ids >= 0)
        return cls(
            vertices=vertices[lasting],
            ids=ids[lasting],
            begins=begins[lasting],
            ends=ends[lasting],
            batches=len(times),
        )

    def sizes(self, community: int) -> NDArray[np.int64]:
        """Return a community's members after each batch, int64[batches]."""
        members = self.ids == community
        steps = np.zeros(self.batches + 1, np.int64)
        np.add.at(steps, self.begins[members], 1)
        np.add.at(steps, self.ends[members], -1)
        return np.cumsum(steps)[:-1]

    def at(self, batch: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return vertices and their communities after a batch, ascending by vertex."""
        there = (self.begins <= batch) & (batch < self.ends)
        return self.vertices[there], self.ids[there]

    def largest(self, count: int, samples: NDArray[np.int64]) -> list[int]:
        """Return the communities with the largest share of the vertices at any of some batches."""
        # Vertices that are alone do not count.
        most: dict[int, float] = {}
        for batch in samples.tolist():
            ids, sizes = np.unique(self.at(batch)[1], return_counts=True)
            ids, sizes = ids[sizes > 1], sizes[sizes > 1]
            for community, size in zip(ids.tolist(), sizes.tolist(), strict=True):
                share = size / float(sizes.sum())
                most[community] = max(most.get(community, 0.0), share)
        return sorted(most, key=lambda key: (-most[key], key))[:count]


def samples_of(batches: int, count: int) -> NDArray[np.int64]:
    """Return evenly spread batches, the first and the last among them."""
    return np.unique(np.linspace(0, batches - 1, min(batches, count)).round().astype(np.int64))


def draw_flows(ax: Any, stays: Stays, times: list[str], columns: int = 10) -> None:
    """Draw an alluvial chart: a bar per community and sampled batch, ribbons for its members."""
    # Only communities of two members and more are drawn; those without a colour of their own stand
    # together, grey.
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    samples = samples_of(stays.batches, columns)
    named = stays.largest(NAMED, samples)
    rank = {community: place for place, community in enumerate(named)}
    states, heights = [], []
    for batch in samples.tolist():
        vertices, ids = stays.at(batch)
        communities, inverse, sizes = np.unique(ids, return_inverse=True, return_counts=True)
        places = np.array([rank.get(int(community), NAMED) for community in communities], np.int64)
        keep = sizes[inverse] > 1
        states.append((vertices[keep], places[inverse][keep]))
        heights.append(np.bincount(states[-1][1], minlength=NAMED + 1))
    top = max(1, max(int(each.sum()) for each in heights))
    width = 0.16
    bottoms = []
    for x, each in enumerate(heights):
        bottom = np.concatenate([[0.0], np.cumsum(each + GAP * top * (each > 0))])[:-1]
        bottoms.append(bottom)
        for place in np.flatnonzero(each).tolist():
            corner = (x - width / 2, bottom[place])
            ax.add_patch(Rectangle(corner, width, each[place], color=_colour(place), lw=0))
    for x in range(len(samples) - 1):
        left, right = states[x], states[x + 1]
        _, first, second = np.intersect1d(left[0], right[0], return_indices=True)
        pairs, counts = np.unique(
            np.stack([left[1][first], right[1][second]]), axis=1, return_counts=True
        )
        used = [bottoms[x].copy(), bottoms[x + 1].copy()]
        for (a, b), size in zip(pairs.T.tolist(), counts.tolist(), strict=True):
            x0, x1 = x + width / 2, x + 1 - width / 2
            y0, y1 = used[0][a], used[1][b]
            used[0][a] += size
            used[1][b] += size
            middle = (x0 + x1) / 2
            corners = [
                (x0, y0), (middle, y0), (middle, y1), (x1, y1),
                (x1, y1 + size), (middle, y1 + size), (middle, y0 + size), (x0, y0 + size),
            ]  # fmt: skip
            codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3]
            ribbon = PathPatch(Path(corners, codes), color=_colour(a), alpha=0.35, lw=0)
            ax.add_patch(ribbon)
    ax.set_xlim(-0.3, len(samples) - 0.7)
    ax.set_ylim(0, top * (1 + GAP * (NAMED + 1)))
    ax.set_xticks(range(len(samples)), [times[batch] for batch in samples.tolist()])
    plain(ax, "vertices in communities of two and more")


def draw_sizes(ax: Any, stays: Stays, times: list[str]) -> None:
    """Draw the sizes of the largest communities over time, each labelled at its peak."""
    named = stays.largest(8, samples_of(stays.batches, 10))
    curves = [np.where(of < 2, np.nan, of) for of in map(stays.sizes, named)]
    wide = 0.06 * stays.batches
    high = 0.08 * max((np.nanmax(sizes) for sizes in curves), default=0.0)
    peaks = list[tuple[int, float]]()
    for place, (community, sizes) in enumerate(zip(named, curves, strict=True)):
        ax.plot(sizes, color=_colour(place), lw=1.6)
        peak = int(np.nanargmax(sizes))
        # Below the line where an adjacent peak has the place above.
        taken = any(abs(x - peak) < wide and abs(y - sizes[peak]) < high for x, y in peaks)
        peaks.append((peak, sizes[peak]))
        ax.annotate(
            f"{community}", (peak, sizes[peak]), xytext=(0, -11 if taken else 3),
            textcoords="offset points",
            color=_colour(place), ha="center", fontsize=8,
        )  # fmt: skip
    ax.set_ylim(bottom=0)
    _ticks(ax, times)
    plain(ax, "members")


def draw_quality(ax: Any, history: pd.DataFrame, times: list[str]) -> None:
    """Draw modularity over time, with renewals and audits."""
    quality = history["modularity"].to_numpy(float)
    ax.plot(quality, color=PALETTE[0], lw=1.6)
    renewed = np.flatnonzero(history["renewed"].to_numpy(bool))
    if len(renewed) <= 200:
        ax.plot(renewed, quality[renewed], "|", color=GREY, ms=7, label="renewal")
    lead = history["audit_lead"].to_numpy(float)
    audits = np.flatnonzero(~np.isnan(lead))
    ax.plot(audits, quality[audits], "o", color=PALETTE[1], ms=4, label="audit")
    if len(audits) or 0 < len(renewed) <= 200:
        ax.legend(frameon=False, fontsize=8, labelcolor=GREY, loc="best")
    _ticks(ax, times)
    plain(ax, "modularity")


def draw_leads(ax: Any, history: pd.DataFrame, times: list[str]) -> None:
    """Draw by how much each audit led: above 0, starting over would have been better."""
    lead = 100 * history["audit_lead"].to_numpy(float)
    audits = np.flatnonzero(~np.isnan(lead))
    colours = [PALETTE[1] if value > 0 else PALETTE[0] for value in lead[audits]]
    ax.vlines(audits, 0, lead[audits], colors=colours, lw=2)
    ax.scatter(audits, lead[audits], s=16, color=colours, zorder=3)
    ax.axhline(0, color=GREY, lw=0.8)
    ax.set_xlim(-0.5, len(history) - 0.5)
    _ticks(ax, times)
    plain(ax, "lead of a run from nothing, %")


def _colour(place: int) -> str:
    return PALETTE[place] if place < NAMED else OTHERS


def _ticks(ax: Any, times: list[str]) -> None:
    at = samples_of(len(times), 8)
    ax.set_xticks(at, [times[batch] for batch in at.tolist()])


def plain(ax: Any, what: str) -> None:
    """Give axes that stand on light and on dark paper."""
    ax.set_ylabel(what, color=GREY, fontsize=9)
    ax.tick_params(which="both", colors=GREY, labelsize=8)
    for name, spine in ax.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(GREY)
    ax.patch.set_alpha(0)
