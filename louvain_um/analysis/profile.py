"""Detection at many resolutions: the best partition at each, plateaus, and the run's folder."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from louvain_um.api import run
from louvain_um.core.atomic_files import write_csv, write_text
from louvain_um.core.plain_data import Within, build
from louvain_um.core.run_folder import RunFolder
from louvain_um.errors import OptionError, check_number
from louvain_um.events import Observer
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.results.communities import Communities
from louvain_um.results.display import count, require_pandas

if TYPE_CHECKING:
    import pandas as pd

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
    lines: tuple[ValueLine, ...]
    stability: float

    @property
    def best(self) -> ValueLine:
        """The partition of the highest value."""
        return max(self.lines, key=lambda line: line.value(self.resolution))


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
    line : ValueLine
        The best partition there.
    """

    low: float
    high: float
    communities: int
    resolution: float
    value: float
    stability: float
    line: ValueLine

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
    def pieces(self) -> list[BestRange]:
        """Ranges of resolutions and the best partition known in each, in order."""
        return envelope(lines_of(self.points), self.low, self.high)

    @property
    def plateaus(self) -> list[Plateau]:
        """Ranges in which the best partition keeps its number of communities, in order."""
        groups: list[list[BestRange]] = []
        for piece in self.pieces:
            if groups and groups[-1][0].line.communities == piece.line.communities:
                groups[-1].append(piece)
            else:
                groups.append([piece])
        return [self._plateau(group) for group in groups]

    def _plateau(self, group: Sequence[BestRange]) -> Plateau:
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
        check_number("resolution", resolution)
        if not self.low <= resolution <= self.high:
            remedy = f"must lie in {self.low:g} … {self.high:g}, the range of this profile"
            raise OptionError("resolution", resolution, remedy)
        piece = next(piece for piece in self.pieces if resolution <= piece.high)
        return repeat(self.graph, self.options, piece.line, None)

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
        from louvain_um.drawing.plots import plot_profile

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


def lines_of(points: Iterable[ResolutionPoint]) -> list[ValueLine]:
    """Return the partitions of all points."""
    return [line for point in points for line in point.lines]


def repeat(
    graph: Graph, options: Options, line: ValueLine, observer: Observer | None
) -> Communities:
    """Return the communities of a line by repeating its run."""
    options = replace(options, resolution=line.resolution, seed=line.seed)
    if line.start is not None:
        resolution, seed = line.start
        before = replace(options, resolution=resolution, seed=seed)
        options = replace(options, initial=run(graph, before, observer).labels)
    return run(graph, options, observer)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueLine:
    """A partition as a function of γ, and the run that found it."""

    inside: float
    expected: float
    communities: int
    resolution: float
    seed: int
    start: tuple[float, int] | None = None

    def value(self, resolution: float) -> float:
        """Return the value at a resolution."""
        return self.inside - resolution * self.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class BestRange:
    """A range of γ in which one partition is the best known."""

    low: float
    high: float
    line: ValueLine


def envelope(lines: Iterable[ValueLine], low: float, high: float) -> list[BestRange]:
    """Return the pieces of the upper envelope from `low` to `high`, in order."""
    known = list(lines)
    if not known:
        return []
    # Of equal values, the one that falls least will be above.
    best = max(known, key=lambda line: (line.value(low), -line.expected))
    pieces, at = list[BestRange](), low
    while True:
        flatter = [line for line in known if line.expected < best.expected]
        crossings = [((best.inside - line.inside) / (best.expected - line.expected), line)
                     for line in flatter]  # fmt: skip
        end, after = min(
            crossings,
            key=lambda crossing: (crossing[0], crossing[1].expected),
            default=(high, None),
        )
        if after is None or end >= high:
            return [*pieces, BestRange(low=at, high=high, line=best)]
        if end > at:
            pieces.append(BestRange(low=at, high=end, line=best))
            at = end
        best = after


class ProfileStore(RunFolder):
    """Finished points of a profile, in a folder."""

    def __init__(self, folder: Path, setup: Mapping[str, Any], *, force: bool = False) -> None:
        self.points: dict[float, ResolutionPoint] = {}
        super().__init__(folder, self._keep, setup=setup, force=force)

    def _keep(self, found: Any) -> None:
        point: ResolutionPoint = build(ResolutionPoint, found, "point")
        if not point.lines:
            raise ValueError("a point has no partitions")
        self.points[point.resolution] = point

    def add(self, point: ResolutionPoint) -> None:
        """Keep a finished point."""
        self.write_line(asdict(point))

    def write(self, profile: ResolutionProfile) -> None:
        """Write plateaus and points as tables, and both as JSON."""
        for name, fields, rows in (
            ("plateaus.csv", PLATEAU_FIELDS, profile.plateau_rows()),
            ("points.csv", POINT_FIELDS, profile.point_rows()),
        ):
            write_csv(self.folder / name, rows, fields, force=True)
        text = json.dumps(summary(profile), indent=1) + "\n"
        write_text(self.folder / "profile.json", text, force=True)


def summary(profile: ResolutionProfile) -> dict[str, Any]:
    """Return a profile as ``--json`` prints it; `run` of a plateau says how to find it again."""
    graph, settings = profile.graph, profile.options.settings()
    return {
        "schema": 1,
        "graph": {"vertices": graph.n_vertices, "edges": graph.n_edges, "arcs": graph.n_arcs},
        "method": profile.options.method,
        "objective": profile.options.objective,
        "options": {name: value for name, value in settings.items() if name != "resolution"},
        "low": profile.low,
        "high": profile.high,
        "plateaus": [
            {**row, "run": _run(plateau.line)}
            for row, plateau in zip(profile.plateau_rows(), profile.plateaus, strict=True)
        ],
        "points": profile.point_rows(),
    }


def _run(line: ValueLine) -> dict[str, Any]:
    return {"resolution": line.resolution, "seed": line.seed, "start": line.start}
