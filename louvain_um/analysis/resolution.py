"""Detection at many resolutions: the best partition at each, and the plateaus where it stays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from louvain_um.analysis.agreement import mean_agreement
from louvain_um.analysis.envelope import Line, Piece, envelope
from louvain_um.api import run
from louvain_um.core.plain_data import Within, build
from louvain_um.errors import OptionError
from louvain_um.events import Observer
from louvain_um.graph.graph import Graph
from louvain_um.option_signatures import OptionValues, takes_options
from louvain_um.options import Method, Options
from louvain_um.results.communities import Communities
from louvain_um.results.display import count
from louvain_um.results.frame import require_pandas
from louvain_um.results.quality import modularity

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[int, int, str], None]
"""Called with the steps done, the most there can be, and what is done next."""

RANGE: Final = (0.1, 10.0)
"""Resolutions of modularity by default; 1 lies in the middle."""

PRECISION: Final = 1.02
"""Factor between resolutions that are not told apart."""

MOST_POINTS: Final = 10_000

PLATEAU_FIELDS: Final = (
    "low", "high", "octaves", "communities", "resolution", "value", "stability",
)  # fmt: skip
POINT_FIELDS: Final = ("resolution", "communities", "value", "stability", "runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolutionPoint:
    """The runs at one resolution.

    Parameters
    ----------
    resolution : float
    lines : tuple of Line
        One partition per seed, and one that started from another resolution's.
    stability : float
        Mean agreement of the seeds' partitions (adjusted Rand index): 1 if all are the same.
    """

    resolution: Annotated[float, Within(1e-300, 1e300)]
    lines: tuple[Line, ...]
    stability: float

    @property
    def best(self) -> Line:
        """The partition of the highest value."""
        return max(self.lines, key=lambda line: line.value(self.resolution))

    def as_plain(self) -> dict[str, Any]:
        """Return the point as plain data, for `from_plain`."""
        return asdict(self)

    @classmethod
    def from_plain(cls, found: Mapping[str, Any]) -> ResolutionPoint:
        """Return the point that `as_plain` turned into plain data."""
        point: ResolutionPoint = build(cls, found, "point")
        if not point.lines:
            raise ValueError("a point has no partitions")
        return point


@dataclass(frozen=True, slots=True, kw_only=True)
class Plateau:
    """A range of resolutions in which the best partition keeps its number of communities.

    Parameters
    ----------
    low, high : float
        The range.
    communities : int
    resolution : float
        To detect at: in the widest range of one partition, halfway on a logarithmic scale.
    value : float
        Of the best partition there.
    stability : float
        Of the point nearest to `resolution`.
    line : Line
        The best partition there.
    """

    low: float
    high: float
    communities: int
    resolution: float
    value: float
    stability: float
    line: Line

    @property
    def octaves(self) -> float:
        """Width: the logarithm of high / low to base 2."""
        return math.log2(self.high / self.low)


@dataclass(frozen=True, eq=False, kw_only=True)
class ResolutionProfile:
    """What was found at many resolutions of one graph.

    Parameters
    ----------
    points : tuple of ResolutionPoint
        By ascending resolution.
    low, high : float
        The range.
    options : Options
        Of the runs; `resolution` and `seed` vary.
    graph : Graph
    """

    points: tuple[ResolutionPoint, ...]
    low: float
    high: float
    options: Options
    graph: Graph = field(repr=False)

    @property
    def pieces(self) -> list[Piece]:
        """Ranges of resolutions and the best partition known in each, in order."""
        return envelope(_lines(self.points), self.low, self.high)

    @property
    def plateaus(self) -> list[Plateau]:
        """Ranges in which the best partition keeps its number of communities, in order."""
        groups: list[list[Piece]] = []
        for piece in self.pieces:
            if groups and groups[-1][0].line.communities == piece.line.communities:
                groups[-1].append(piece)
            else:
                groups.append([piece])
        return [self._plateau(group) for group in groups]

    def _plateau(self, group: Sequence[Piece]) -> Plateau:
        widest = max(group, key=lambda piece: piece.high / piece.low)
        middle = math.sqrt(widest.low * widest.high)
        nearest = min(self.points, key=lambda p: abs(math.log(p.resolution / middle)))
        return Plateau(
            low=group[0].low,
            high=group[-1].high,
            communities=widest.line.communities,
            resolution=middle,
            value=widest.line.value(middle),
            stability=nearest.stability,
            line=widest.line,
        )

    def partition(self, resolution: float) -> Communities:
        """Return the best known communities at a resolution, found again by their run.

        Parameters
        ----------
        resolution : float
            Within the range. The result's `resolution` and `modularity` are those of the run.

        Raises
        ------
        OptionError
            The resolution is outside the range.
        """
        if not self.low <= resolution <= self.high:
            remedy = f"must lie in {self.low:g} … {self.high:g}, the range of this profile"
            raise OptionError("resolution", resolution, remedy)
        piece = next(piece for piece in self.pieces if resolution <= piece.high)
        return _detect(self.graph, self.options, piece.line, None)

    def plateau_rows(self) -> list[dict[str, Any]]:
        """Return a row per plateau, by ascending resolution: fields of `Plateau`."""
        return [
            {name: getattr(plateau, name) for name in PLATEAU_FIELDS} for plateau in self.plateaus
        ]

    def point_rows(self) -> list[dict[str, Any]]:
        """Return a row per resolution that was tried, with the best partition found there."""
        return [
            {
                "resolution": point.resolution,
                "communities": point.best.communities,
                "value": point.best.value(point.resolution),
                "stability": point.stability,
                "runs": len(point.lines),
            }
            for point in self.points
        ]

    def to_frame(self, *, points: bool = False) -> pd.DataFrame:
        """Return a pandas frame with one row per plateau.

        Parameters
        ----------
        points : bool
            One row per resolution that was tried, instead.

        Returns
        -------
        pandas.DataFrame
            Columns ``low``, ``high``, ``octaves``, ``communities``, ``resolution``, ``value`` and
            ``stability``; of points ``resolution``, ``communities``, ``value``, ``stability`` and
            ``runs``.
        """
        rows = self.point_rows() if points else self.plateau_rows()
        columns = list(POINT_FIELDS if points else PLATEAU_FIELDS)
        frame: pd.DataFrame = require_pandas().DataFrame(rows, columns=columns)
        return frame

    def plot(self, *, ax: Any = None) -> Any:
        """Draw communities and stability over the resolution with Matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from louvain_um.drawing.curves import plot_profile

        steps = [(p.low, p.high, p.line.communities) for p in self.pieces]
        points = [(p.resolution, p.stability) for p in self.points]
        return plot_profile(steps, points, ax)

    def __repr__(self) -> str:
        plateaus = self.plateaus
        widest = max(plateaus, key=lambda plateau: plateau.octaves)
        many = count(len(plateaus), "plateau", "plateaus")
        return (
            f"ResolutionProfile({self.low:g} to {self.high:g}, {len(self.points)} resolutions, "
            f"{many}, the widest with {count(widest.communities, 'community', 'communities')} from "
            f"{widest.low:.3g} to {widest.high:.3g})"
        )


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
    progress: Progress | None = None,
    observer: Observer | None = None,
    known: Mapping[float, ResolutionPoint] | None = None,
    on_point: Callable[[ResolutionPoint], None] | None = None,
    **options: Unpack[OptionValues],
) -> ResolutionProfile:
    """Detect communities at many resolutions, and find the plateaus between which to choose.

    A partition's value falls linearly with γ, so each partition found is the best known in one
    range of γ, or nowhere. New resolutions are tried where two of these ranges meet, and in the
    middle of each range; of these, the one farthest from those tried so far. The search ends after
    `points` resolutions, or when no two are more than 2 % apart.

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
    progress : callable, optional
        Called before each resolution with those done, the maximum, and a text.
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
    _check(points, runs, chosen.seed)
    search = _Search(graph, chosen, runs, warm_starts, observer)
    found: dict[float, ResolutionPoint] = {}
    while len(found) < points:
        at = _next(found, first, last)
        if at is None:
            break
        if progress is not None:
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
    first, last = float(first if low is None else low), float(last if high is None else high)
    for name, value in (("low", first), ("high", last)):
        if not (math.isfinite(value) and value > 0):
            raise OptionError(name, value, "must be a number above 0")
    if first >= last:
        raise OptionError("low", first, f"must be below high, {last:g}")
    return first, last


def _check(points: int, runs: int, seed: int) -> None:
    if not 2 <= points <= MOST_POINTS:
        raise OptionError("points", points, f"must lie in 2 … {MOST_POINTS}")
    if not 1 <= runs <= 1000:
        raise OptionError("runs", runs, "must lie in 1 … 1000")
    if seed + runs > 2**32:
        raise OptionError("seed", seed, f"must leave room for {runs} seeds below 2^32")


def _lines(points: Sequence[ResolutionPoint]) -> list[Line]:
    return [line for point in points for line in point.lines]


def _next(found: Mapping[float, ResolutionPoint], low: float, high: float) -> float | None:
    """Return the resolution to try next, or None if all gaps are closed."""
    for end in (low, high):
        if end not in found:
            return end
    pieces = envelope(_lines([found[at] for at in sorted(found)]), low, high)
    candidates = [piece.high for piece in pieces[:-1]]
    candidates += [math.sqrt(piece.low * piece.high) for piece in pieces]
    tried = np.log(sorted(found))
    gaps = [float(np.abs(tried - math.log(at)).min()) for at in candidates]
    widest = int(np.argmax(gaps))
    return candidates[widest] if gaps[widest] > math.log(PRECISION) else None


def _detect(graph: Graph, options: Options, line: Line, observer: Observer | None) -> Communities:
    """Return the communities of a line by repeating its run."""
    options = replace(options, resolution=line.resolution, seed=line.seed)
    if line.start is not None:
        resolution, seed = line.start
        before = replace(options, resolution=resolution, seed=seed)
        options = replace(options, initial=run(graph, before, observer).labels)
    return run(graph, options, observer)


@dataclass(slots=True)
class _Search:
    """Runs the detections of one profile."""

    graph: Graph
    options: Options
    runs: int
    warm_starts: bool
    observer: Observer | None

    def point(self, at: float, found: Mapping[float, ResolutionPoint]) -> ResolutionPoint:
        """Run all seeds at a resolution, and once from the best partition known so far."""
        lines, partitions = list[Line](), list[NDArray[np.uint32]]()
        for seed in range(self.options.seed, self.options.seed + self.runs):
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
    ) -> tuple[Line, NDArray[np.uint32]]:
        """Detect once; return the partition's line and labels."""
        asked = Line(inside=0.0, expected=0.0, communities=0, resolution=at, seed=seed, start=start)
        result = _detect(self.graph, self.options, asked, self.observer)
        name = self.options.objective
        inside = modularity(self.graph, result.labels, 0.0, objective=name)
        value = modularity(self.graph, result.labels, at, objective=name)
        line = replace(
            asked,
            inside=inside,
            expected=(inside - value) / at,
            communities=result.n_communities,
        )
        return line, result.labels
