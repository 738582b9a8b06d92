"""The search for the resolutions at which the best partition changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from louvain_um.analysis.profile import (
    Plateau,
    ResolutionPoint,
    ResolutionProfile,
    ValueLine,
    envelope,
    lines_of,
    repeat,
)
from louvain_um.core.hierarchy import refuse_count, seeds_of
from louvain_um.errors import OptionError, check_switch, is_number
from louvain_um.events import Observer
from louvain_um.graph.graph import Graph
from louvain_um.options import Method, Options, OptionValues, takes_options
from louvain_um.progress import Progress, counts_progress
from louvain_um.results.agreement import mean_agreement
from louvain_um.results.quality import modularity

__all__ = ["Plateau", "ResolutionPoint", "ResolutionProfile", "resolution_profile"]

RANGE: Final = (0.1, 10.0)
"""Resolutions of modularity by default; 1 lies in the middle."""

PRECISION: Final = 1.02
"""Factor between resolutions that count as the same."""

LEAST, MOST = 1e-100, 1e100
"""Resolutions whose products and quotients are finite."""

MOST_POINTS: Final = 10_000


@counts_progress
@takes_options("resolution", "initial")
def resolution_profile(
    graph: Any,
    *,
    method: Method = "louvain",
    low: float | None = None,
    high: float | None = None,
    points: int = 40,
    runs: int = 3,
    warm_starts: bool = False,
    progress: Progress | bool | None = None,
    observer: Observer | None = None,
    known: Mapping[float, ResolutionPoint] | None = None,
    on_point: Callable[[ResolutionPoint], None] | None = None,
    **options: Unpack[OptionValues],
) -> ResolutionProfile:
    """Detect communities at many resolutions, and find the plateaus between which to choose.

    A partition's value falls linearly with γ, so each partition found is the best known in one
    range of γ, or nowhere. New resolutions are tried where two of these ranges meet, and in the
    middle of each range; of these, the one farthest from those tried so far. The search ends after
    `points` resolutions, or when no two neighbours differ by more than 2 %.

    Parameters
    ----------
    graph : Graph or anything `as_graph` takes
    method : {"louvain", "leiden"}
    low, high : float, optional
        Range of resolutions; 0.1 to 10 by default, and for "cpm" from the graph's density to its
        mean weight.
    points : int
        Maximum number of resolutions, at least 2.
    runs : int
        Runs per resolution, with seeds `seed`, `seed` + 1 …; their agreement is the stability.
    warm_starts : bool
        At each resolution, also start from the best partition of other resolutions. These runs
        use the CPU.
    **options
        The options of a run; see `louvain_um.options.Options`.
    progress : callable or bool, optional
        True: a line on the terminal or in the notebook. A function is called
        before each resolution with those done, the maximum, and a text.
    observer : callable, optional
        Called with the events of all runs.
    known : mapping of float to ResolutionPoint, optional
        Points of an interrupted search with the same graph and options, by resolution.
    on_point : callable, optional
        Called with each new point, to keep it.

    Returns
    -------
    ResolutionProfile

    Raises
    ------
    OptionError
        A value outside its range.

    References
    ----------
    Weir, Emmons, Gibson, Taylor, Mucha: Post-processing partitions to identify domains of
    modularity optimization, 2017.

    Examples
    --------
    >>> import louvain_um as lu
    >>> ring = [(8 * c + a, 8 * c + b) for c in range(6) for a in range(8) for b in range(a)]
    >>> ring += [(8 * c, (8 * c + 9) % 48) for c in range(6)]
    >>> g = lu.Graph.from_edges(*zip(*ring))
    >>> profile = lu.resolution_profile(g, device="cpu", points=12)
    >>> max(profile.plateaus, key=lambda plateau: plateau.octaves).communities
    6
    """
    chosen = Options(method=method, **options)
    if not isinstance(graph, Graph):
        from louvain_um.formats.reading import graph_of

        graph = graph_of(graph, chosen.objective)
    first, last = _range(graph, chosen, low, high)
    refuse_count("points", points, 2, MOST_POINTS)
    check_switch("warm_starts", warm_starts)
    search = _Search(graph, chosen, seeds_of(runs, chosen.seed), warm_starts, observer)
    found: dict[float, ResolutionPoint] = {}
    while len(found) < points:
        at = _next(found, first, last)
        if at is None:
            break
        if callable(progress):
            progress(len(found), points, f"resolution {at:.4g}")
        point = (known or {}).get(at)
        if point is None:
            point = search.point(at, found)
            if on_point is not None:
                on_point(point)
        found[at] = point
    return ResolutionProfile(
        points=tuple(found[at] for at in sorted(found)),
        low=first,
        high=last,
        options=chosen,
        graph=graph,
    )


def _range(
    graph: Graph, options: Options, low: float | None, high: float | None
) -> tuple[float, float]:
    """Return the range of resolutions, checked."""
    first, last = RANGE
    if options.objective == "cpm":
        n, weight = graph.n_vertices, graph.total_weight / graph.scale
        first = weight / (n * (n - 1)) if n > 1 and weight else RANGE[0]
        last = max(weight / max(1, graph.n_arcs), 2 * first)
    ends = {"low": first if low is None else low, "high": last if high is None else high}
    for name, value in ends.items():
        if not is_number(value):
            raise OptionError(name, value, "must be a number")
        if not LEAST <= float(value) <= MOST:
            raise OptionError(name, value, f"must lie in {LEAST:g} … {MOST:g}")
    first, last = float(ends["low"]), float(ends["high"])
    if first >= last:
        raise OptionError("low", first, f"must be below high, {last:g}")
    return first, last


def _next(found: Mapping[float, ResolutionPoint], low: float, high: float) -> float | None:
    """Return the resolution to try next, or None if all gaps are closed."""
    for end in (low, high):
        if end not in found:
            return end
    pieces = envelope(lines_of([found[at] for at in sorted(found)]), low, high)
    candidates = [piece.high for piece in pieces[:-1]]
    candidates += [math.sqrt(piece.low * piece.high) for piece in pieces]
    tried = np.log(sorted(found))
    gaps = [float(np.abs(tried - math.log(at)).min()) for at in candidates]
    widest = int(np.argmax(gaps))
    return candidates[widest] if gaps[widest] > math.log(PRECISION) else None


@dataclass(slots=True)
class _Search:
    """Runs the detections of one profile."""

    graph: Graph
    options: Options
    seeds: range
    warm_starts: bool
    observer: Observer | None

    def point(self, at: float, found: Mapping[float, ResolutionPoint]) -> ResolutionPoint:
        """Run all seeds at a resolution, and once from the best partition known so far."""
        lines, partitions = list[ValueLine](), list[NDArray[np.uint32]]()
        for seed in self.seeds:
            line, labels = self.line(at, seed, None)
            lines.append(line)
            partitions.append(labels)
        cold = [line for point in found.values() for line in point.lines if line.start is None]
        if self.warm_starts and cold:
            best = max(cold, key=lambda line: line.value(at))
            start = (best.resolution, best.seed)
            lines.append(self.line(at, self.options.seed, start)[0])
        return ResolutionPoint(
            resolution=at, lines=tuple(lines), stability=mean_agreement(partitions)
        )

    def line(
        self, at: float, seed: int, start: tuple[float, int] | None
    ) -> tuple[ValueLine, NDArray[np.uint32]]:
        """Detect once; return the partition's line and labels."""
        asked = ValueLine(
            inside=0.0, expected=0.0, communities=0, resolution=at, seed=seed, start=start
        )
        result = repeat(self.graph, self.options, asked, self.observer)
        name = self.options.objective
        inside = modularity(self.graph, result.labels, 0.0, objective=name)
        steep = max(at, 1.0)  # below, what is expected would be lost in the value's rounding
        value = modularity(self.graph, result.labels, steep, objective=name)
        line = replace(
            asked,
            inside=inside,
            expected=(inside - value) / steep,
            communities=result.n_communities,
        )
        return line, result.labels
