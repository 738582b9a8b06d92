"""Charts of communities by Matplotlib."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.atomic_files import replacing
from louvain_um.drawing.layout import Drawing, draw_communities, draw_vertices, drawable, hub_names
from louvain_um.errors import LouvainUmError, OptionError, among, needed
from louvain_um.graph.graph import Graph
from louvain_um.options import ObjectiveName, Options
from louvain_um.results.display import count, cut, score, shown
from louvain_um.results.partition import Result
from louvain_um.results.quality import modularity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Kind = Literal["graph", "communities", "sizes", "dendrogram"]
KINDS: Final = ("graph", "communities", "sizes", "dendrogram")

MOST_LEAVES: Final = 1000
"""Leaves of a dendrogram at most: vertices, or else the communities of its finest partition."""

MOST_READ: Final = 150
"""Communities of a dendrogram at most, and leaves that have names."""

MOST_NAMED: Final = 60
"""Names written next to circles, the largest circles first."""

MOST_LEVEL: Final = 8
"""Names side by side in a dendrogram; more are written upright."""

SMALL: Final = 150
"""Vertices up to which a notebook shows each; more take seconds to place."""

SHOWN_ARCS: Final = 5_000_000
"""Arcs up to which a notebook shows a picture: more take a second to add up."""

INK, FAINT = "#333b46", "#9aa3ad"
ALONE: Final = threading.Lock()
"""Is held while what Matplotlib has once in a process changes: settings, and pyplot's figures."""

MISSING: Final = "charts and drawings need Matplotlib"


def kind_for(graph: Graph) -> Kind:
    """Return what to draw of a graph by default: its vertices if they can be seen."""
    return "graph" if drawable(graph) else "communities"


def check_axes(ax: Any) -> None:
    """Raise an OptionError unless a chart can be drawn there; None stands for a new figure."""
    if ax is not None and not hasattr(ax, "add_collection"):
        raise OptionError("ax", ax, "must be axes of Matplotlib")


def plot(result: Result, graph: Graph, kind: str | None, ax: Any, seed: int) -> Any:
    """Draw a result; `Communities.plot` documents the arguments."""
    if not among(kind, None, "auto", *KINDS):
        raise OptionError("kind", kind, f"must be one of {', '.join(KINDS)}, auto")
    check_axes(ax)
    Options(seed=seed)  # checks it
    chosen = kind_for(graph) if kind in (None, "auto") else kind
    if ax is None:
        ax = figure_axes(flat=chosen in ("sizes", "dendrogram"))
    draw: dict[str, Callable[[], None]] = {
        "graph": lambda: _draw(ax, draw_vertices(graph, result, seed)),
        "communities": lambda: _draw(ax, draw_communities(graph, result, seed)),
        "sizes": lambda: _sizes(ax, result.sizes),
        "dendrogram": lambda: _dendrogram(ax, result, graph),
    }
    draw[chosen]()
    many = count(result.n_communities, "community", "communities")
    ax.set_title(f"{many}, modularity {score(result.modularity)}", color=INK, fontsize=11)
    return ax


def figure(kind: str, width: float = 9.0) -> tuple[Any, Any]:
    """Return a figure that no window shows, and its axes."""
    height = 0.55 * width if kind in ("sizes", "dendrogram") else 0.8 * width
    return new_figure(width, height, "formats,charts")


def new_figure(width: float, height: float, extras: str = "charts") -> tuple[Figure, Axes]:
    """Return a figure of so many inches, which no window shows, and its axes."""
    made = needed("matplotlib.figure", MISSING, extras).Figure
    found = made(figsize=(width, height), layout="constrained")
    return found, found.add_subplot()


def save_figure(figure: Any, path: Path, *, force: bool, dpi: int = 150, **how: Any) -> None:
    """Write a figure; the same figure gives the same bytes."""
    kind = path.suffix.lower()[1:] or "png"
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    # In memory first: Matplotlib hides the system's error if the disk is full.
    drawing = _file_of(figure, "louvain-um", format=kind, dpi=dpi, metadata=undated, **how)
    with replacing(path, force=force) as part:
        part.write_bytes(drawing)


def _file_of(figure: Any, salt: str, **how: Any) -> bytes:
    """Return the bytes of a figure's file."""
    from matplotlib import rc_context

    drawing = io.BytesIO()
    # Journals refuse PDF with fonts of Type 3; SVG keeps text.
    with (
        ALONE,
        rc_context({"svg.hashsalt": salt, "svg.fonttype": "none", "pdf.fonttype": 42}),
    ):
        figure.savefig(drawing, **how)
    return drawing.getvalue()


def figure_axes(*, flat: bool = True) -> Any:
    """Return the axes of a new figure that pyplot manages, which notebooks show."""
    plt = needed("matplotlib.pyplot", MISSING, "formats,charts")
    with ALONE:
        return plt.subplots(figsize=(8, 4.5 if flat else 6.4), layout="constrained")[1]


UNDER_NAMES: Final = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.4}
"""What keeps names readable over lines; they stay text in SVG files."""


def _draw(ax: Any, drawing: Drawing) -> None:
    """Draw circles and lines."""
    from matplotlib.collections import EllipseCollection, LineCollection

    at, ends = drawing.positions, drawing.ends
    joined = drawing.communities[ends[:, 0]]
    inside = joined == drawing.communities[ends[:, 1]]
    colours = [colour(c) if same else FAINT for c, same in zip(joined, inside, strict=True)]
    alpha = float(np.clip(0.7 - len(ends) / 20_000, 0.2, 0.7))
    ax.add_collection(
        LineCollection(
            list(at[ends]), linewidths=drawing.widths, colors=colours, alpha=alpha, zorder=1
        )
    )
    ax.add_collection(
        EllipseCollection(
            2 * drawing.radii,
            2 * drawing.radii,
            np.zeros(len(at)),
            units="xy",
            offsets=at,
            offset_transform=ax.transData,
            facecolors=[colour(c) for c in drawing.communities.tolist()],
            edgecolors="white",
            linewidths=0.6,
            zorder=2,
        )
    )
    for place in named(drawing, 9.0 / ax.figure.get_figwidth()):
        x, y = at[place]
        large = drawing.radii[place] > 0.03 and len(drawing.names[place]) < 4
        ax.text(
            x,
            y if large else y + drawing.radii[place] + 0.008,
            cut(drawing.names[place]),
            ha="center",
            va="center" if large else "bottom",
            fontsize=8 if large else 7,
            color="white" if large else INK,
            zorder=3,
            parse_math=False,
            bbox=None if large else UNDER_NAMES,
        )
    if len(at):
        low, high = (at - drawing.radii[:, None]).min(0), (at + drawing.radii[:, None]).max(0)
        ax.set_xlim(low[0] - 0.05, high[0] + 0.05)
        ax.set_ylim(low[1] - 0.05, high[1] + 0.08)
    if drawing.left_out:
        ax.text(0, 0, drawing.left_out, transform=ax.transAxes, fontsize=8, color=FAINT)
    ax.set_aspect("equal")
    ax.set_axis_off()


def named(drawing: Drawing, letter: float = 1.0) -> list[int]:
    """Return the circles to name: the largest first, where names do not cover each other.

    `letter` is the size of letters, relative to a figure of 9 inches.
    """
    boxes = np.empty((0, 4))
    chosen = []
    for place in np.argsort(-drawing.radii, kind="stable").tolist():
        name = cut(drawing.names[place])
        half = 0.011 * letter * len(name)
        if not name:
            continue
        x, y = drawing.positions[place]
        low = y + drawing.radii[place]
        box = np.array([x - half, low, x + half, low + 0.045 * letter])
        if np.any((boxes[:, :2] < box[2:]).all(1) & (box[:2] < boxes[:, 2:]).all(1)):
            continue
        boxes = np.vstack((boxes, box))
        chosen.append(place)
        if len(chosen) == MOST_NAMED:
            break
    return chosen


def _sizes(ax: Any, sizes: NDArray[np.int64]) -> None:
    """Draw a histogram of sizes, in bins of equal width of the logarithm if they vary much."""
    if len(sizes) == 0:
        ax.set_axis_off()
        return
    low, high = int(sizes.min()), int(sizes.max())
    if high > 30 * low:
        bins = np.unique(np.round(np.geomspace(low, high + 1, 24)))
        ax.set_xscale("log")
    else:
        step = max(1, int(np.ceil((high - low + 1) / 24)))
        bins = np.asarray(np.arange(low, high + step + 1, step) - 0.5, np.float64)
        ax.xaxis.set_major_locator(_whole_numbers())
    ax.hist(sizes, bins=bins, color=colour(0), edgecolor="white", linewidth=0.6)
    ax.set_xlabel("members of a community", color=INK)
    ax.set_ylabel("communities", color=INK)
    ax.yaxis.set_major_locator(_whole_numbers())
    ax.spines[["top", "right"]].set_visible(False)


def _whole_numbers() -> Any:
    """Return what places ticks at whole numbers, on whichever axis a caller passes."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins="auto", steps=[1, 2, 2.5, 5, 10], integer=True)


def _dendrogram(ax: Any, result: Result, graph: Graph) -> None:
    """Draw the hierarchy as a tree: parts join at the objective's value of what they form."""
    # Vertices or the finest communities that can be seen are below, communities on top.
    if result.n_communities > MOST_READ:
        raise LouvainUmError(
            f"{result.n_communities:,} communities are too many for a dendrogram (at most "
            f"{MOST_READ}); draw kind='communities' or kind='sizes'"
        )
    levels = [labels.astype(np.int64) for labels in result.hierarchy()]
    if result.n_vertices <= MOST_LEAVES:
        levels = [np.arange(result.n_vertices), *levels]
    levels = [labels for labels in levels if labels.max(initial=-1) < MOST_LEAVES]
    if len(levels) == 1 and result.n_vertices > MOST_LEAVES:
        raise LouvainUmError(
            f"the hierarchy has no partition of at most {MOST_LEAVES:,} parts below its "
            "communities; draw kind='communities', or the dendrogram of one community's subgraph"
        )
    heights = _heights(graph, result, levels)
    order = np.lexsort(levels)  # by the coarsest partition first
    last = levels[-1]
    thin = min(1.1, 300 / max(1, int(levels[0].max(initial=0))))
    leaves = levels[0][order]
    _, first = np.unique(leaves, return_index=True)
    ranks = np.empty(len(first), np.int64)
    ranks[leaves[np.sort(first)]] = np.arange(len(first))
    across: NDArray[Any] = ranks.astype(np.float64)
    for (low, high), (finer, coarser) in zip(pairwise(heights), pairwise(levels), strict=True):
        parent = np.zeros(len(across), np.int64)
        parent[finer] = coarser
        top = np.zeros(len(across), np.int64)
        top[finer] = last
        means = np.bincount(parent, across) / np.bincount(parent)
        for node in range(len(across)):
            x, up = across[node], means[parent[node]]
            ax.plot([x, x, up], [low, high, high], color=colour(int(top[node])),
                    linewidth=thin, solid_capstyle="round")  # fmt: skip
        across = means
    for community, x in enumerate(across.tolist()):
        size = 60 * np.sqrt(result.sizes[community] / result.sizes[0])
        ax.scatter([x], [heights[-1]], s=20 + size, color=colour(community), zorder=3)
    texts = _level_names(len(levels), result.n_vertices, len(first))
    gap = (heights[-1] - heights[0]) / 25
    named = [
        k
        for k, height in enumerate(heights)
        if k in (0, len(heights) - 1) or heights[0] + gap <= height <= heights[-1] - gap
    ]
    ticks = [f"{texts[k]}  {score(heights[k])}" for k in named]
    ax.set_yticks([heights[k] for k in named], ticks)
    spread = (heights[-1] - heights[0]) or 1.0
    ax.set_ylim(heights[0] - 0.05 * spread, heights[-1] + 0.12 * spread)
    name = "modularity" if result.objective in ("modularity", "cpm") else result.objective
    ax.set_ylabel(name, color=INK)
    ax.set_xticks([])
    if len(first) > MOST_READ or result.n_vertices > len(first):
        _name_dots(ax, across, heights[-1], hub_names(graph, result, result.n_communities))
    else:
        names = range(len(first)) if result.names is None else result.names.tolist()
        at = {int(rank): cut(shown(names[leaf])) for leaf, rank in enumerate(ranks)}
        texts = [at[rank] for rank in range(len(first))]
        ax.set_xticks(range(len(first)), texts, rotation=90, parse_math=False)
        ax.tick_params("x", labelsize=6 if len(first) > 40 else 8, length=0)
    ax.spines[["top", "right", "bottom"]].set_visible(False)


def _name_dots(ax: Any, across: NDArray[Any], height: float, names: list[str]) -> None:
    """Write names above dots where there is room, upright where there are many."""
    if len(names) > MOST_NAMED:
        return
    upright = len(names) > MOST_LEVEL
    for x, name in zip(across.tolist(), names, strict=True):
        ax.annotate(
            cut(name), (x, height), (0, 8), textcoords="offset points", ha="center", va="bottom",
            fontsize=7, color=INK, rotation=90 if upright else 0, parse_math=False,
        )  # fmt: skip
    if upright:
        low, high = ax.get_ylim()
        longest = max(len(cut(name)) for name in names)
        ax.set_ylim(low, high + 0.015 * longest * (high - low))


def _heights(graph: Graph, result: Result, levels: list[NDArray[np.int64]]) -> list[float]:
    """Return the objective's value of each partition, never below that of the one before."""
    chosen: ObjectiveName = "modularity" if result.objective == "cpm" else result.objective
    values = [modularity(graph, each, result.resolution, objective=chosen) for each in levels]
    heights: list[float] = np.maximum.accumulate(values).tolist() if values else []
    return heights


def _level_names(levels: int, vertices: int, leaves: int) -> list[str]:
    middle = [f"partition {k}" for k in range(levels - 1)]
    if leaves == vertices and levels > 1:
        middle = ["vertices", *middle[: levels - 2]]
    return [*middle, "communities"]


__all__ = ["KINDS", "figure", "kind_for", "named", "plot"]

PALETTE: Final = (
    "#4477aa", "#ee7733", "#228833", "#cc3377", "#bbaa22", "#66aadd", "#884499", "#aa6644",
    "#44aa99", "#dd6677", "#778833", "#9977cc",
)  # fmt: skip
"""The largest communities in order of size; medium lightness, so that both papers carry them."""

SHADES: Final = ((0, 0.0), (255, 0.45), (0, 0.35))
"""What the palette is mixed with in turn, and how much: white or black."""

OTHERS: Final = "#8c929b"
"""All smaller communities: more colours could not be distinguished."""


def colour(community: int) -> str:
    """Return the colour of a community as ``#rrggbb``."""
    turn, place = divmod(community, len(PALETTE))
    if turn >= len(SHADES):
        return OTHERS
    other, share = SHADES[turn]
    parts = bytes.fromhex(PALETTE[place][1:])
    return f"#{bytes(round(part + share * (other - part)) for part in parts).hex()}"


def small_picture(result: Result, graph: Graph | None) -> str:
    """Return a notebook's picture as SVG, or nothing if a library is missing or it takes long."""
    # Each vertex of a small graph is drawn, of larger ones each community.
    if graph is None or not 0 < graph.n_arcs <= SHOWN_ARCS:
        return ""
    kind: Kind = "graph" if graph.n_vertices <= SMALL and drawable(graph) else "communities"
    try:
        drawn, axes = figure(kind, 4.0)
        plot(result, graph, kind, axes, 0)
    except LouvainUmError:
        return ""
    axes.set_title("")
    return svg_of(drawn, "louvain-um")


def svg_of(figure: Any, salt: str, **how: Any) -> str:
    """Return a figure as SVG: without a date, the same content and salt give the same text."""
    text = _file_of(figure, salt, format="svg", metadata={"Date": None}, **how).decode()
    return text[text.index("<svg") :]


def plot_profile(
    steps: Sequence[tuple[float, float, int]], points: Sequence[tuple[float, float]], ax: Any
) -> Any:
    """Draw communities (left axis) and stability (right axis) over the resolution."""
    check_axes(ax)
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
    check_axes(ax)
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
