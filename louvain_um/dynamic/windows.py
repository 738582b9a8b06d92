"""Timed edges: formats of times, and windows that cut edges into batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.errors import OptionError, warn
from louvain_um.formats.column_roles import UNIX_TIMES
from louvain_um.formats.file_types import require
from louvain_um.formats.graph_file import GraphFile

if TYPE_CHECKING:
    from louvain_um.dynamic.batches.changes import Change
    from louvain_um.dynamic.graph import DynamicGraph


Line = Callable[[Any], int | None]

MOST_TIME: Final = 2**62
"""Whole times must be smaller, so that the end of a step is one as well."""

ISO: Final = re.compile(
    r"\d{4}-\d\d(?:-\d\d)?(?P<between>[T ]?)(?P<minutes>\d\d:?\d\d)?(?P<seconds>:?\d\d)?"
    r"(?P<parts>[.,]\d+)?\s*(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?"
)
"""A date of ISO 8601."""

UNITS: Final = {"D": 86_400_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1}
"""Microseconds of each unit in which dates are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeFormat:
    """How times are written: as numbers, as dates of ISO 8601, or in a format of `strftime`.

    Parameters
    ----------
    unit : str
        The unit of dates of ISO 8601: D, m, s, ms or us; an empty string for numbers.
    between : str
        What separates the date from the time of day.
    zone : str
        The zone, as it is written.
    offset : int
        Its seconds east of Greenwich.
    pattern : str
        The format of `strftime`.
    """

    unit: str = ""
    between: str = "T"
    zone: str = ""
    offset: int = 0
    pattern: str = ""

    @property
    def dates(self) -> bool:
        """Whether times are dates."""
        return bool(self.unit or self.pattern)

    def text(self, time: int | float) -> int | float | str:
        """Return a time, in seconds since 1970 if it is a date, as it is written.

        Examples
        --------
        >>> from louvain_um.dynamic.windows import TimeFormat
        >>> TimeFormat().text(1769817600), TimeFormat(unit="D").text(1769817600)
        (1769817600, '2026-01-31')
        >>> TimeFormat(pattern="%d.%m.%Y").text(1769817600)
        '31.01.2026'
        """
        if not self.dates:
            return time
        micros = round((time + self.offset) * 1_000_000)
        moment = np.datetime64(micros, "us")
        if self.pattern:
            return str(moment.item().strftime(self.pattern))
        known = list(UNITS)
        finest = next(unit for unit, size in UNITS.items() if micros % size == 0)
        unit = known[max(known.index(finest), known.index(self.unit))]
        date, _, clock = str(moment.astype(f"datetime64[{unit}]")).partition("T")
        return f"{date}{self.between}{clock}{self.zone}" if clock else date


NUMBERS: Final = TimeFormat()


def seconds_of(
    file: GraphFile, times: NDArray[Any], line: Line, like: TimeFormat | None = None
) -> tuple[NDArray[Any], TimeFormat]:
    """Return times as numbers, dates as seconds since 1970, and how they are written."""
    # `like` is how earlier ones were written, or a format of dates that the user names.
    if times.dtype.kind in "iuf" and not (like is not None and like.dates):
        return _numbers(file, times, line), NUMBERS
    if times.dtype.kind in "bm":
        raise file.error(f"times are {times.dtype}; write numbers of seconds, or dates")
    pandas = require("pandas", file.name)
    texts = pandas.Series(times)
    numbers = pandas.to_numeric(texts, errors="coerce")
    if times.dtype.kind in "iuf":
        texts, bad = texts.astype(str), np.ones(len(times), np.bool_)
    elif like is not None and not like.dates:
        bad = numbers.isna().to_numpy()
        if not bad.any():
            return seconds_of(file, numbers.to_numpy(), line, like)
    else:
        pattern = like.pattern if like is not None and like.pattern else "ISO8601"
        dates = pandas.to_datetime(texts, errors="coerce", utc=True, format=pattern)
        bad = dates.isna().to_numpy()
    if bad.any():
        _refuse(file, texts, numbers, bad, line, like or NUMBERS)
    # Microseconds reach 290,000 years; nanoseconds end in 2262.
    micros = dates.dt.tz_localize(None).to_numpy().astype("datetime64[us]").astype(np.int64)
    rest = micros % 1_000_000
    seconds: NDArray[Any] = micros // 1_000_000
    seconds = seconds + rest / 1e6 if rest.any() else seconds
    return seconds, like or _format_of(times[0], int(micros[0]))


def _numbers(file: GraphFile, times: NDArray[Any], line: Line) -> NDArray[Any]:
    if times.dtype.kind == "f":
        if not (fine := np.isfinite(times)).all():
            at = int(np.argmin(fine))
            raise file.error(f"time {times[at]} is not finite; correct it", line(at))
        return times.astype(np.float64)
    if (large := np.abs(times.astype(np.float64)) >= MOST_TIME).any():
        at = int(np.argmax(large))
        raise file.error(f"time {times[at]} is 2^62 or more; use a larger unit", line(at))
    return times.astype(np.int64)


def _refuse(
    file: GraphFile, texts: Any, numbers: Any, bad: NDArray[np.bool_], line: Line, like: TimeFormat
) -> None:
    """Raise for the first time that is not written as the others are."""
    words = bad & numbers.isna().to_numpy()
    at = int(np.argmax(words if words.any() else bad))
    shown = repr(str(texts.iloc[at]))
    if like.pattern:
        raise file.error(
            f"time {shown} is not a date such as {like.text(0)}; correct it, or pass another "
            "date_format=… (--date-format)",
            line(at),
        )
    if not words.any():
        raise file.error(
            f"time {shown} is a number, but the column holds text; write all times as numbers, or "
            "all as dates",
            line(at),
        )
    raise file.error(
        f"time {shown} is neither a number nor a date such as 2026-01-31; correct it, describe "
        "dates with date_format=… (--date-format), or choose the column with time=…",
        line(at),
    )


def _format_of(first: Any, micros: int) -> TimeFormat:
    """Return how dates are written, as the first one shows."""
    found = ISO.fullmatch(first.strip()) if isinstance(first, str) else None
    if found is None:  # of a column of dates
        return TimeFormat(unit=next(unit for unit, size in UNITS.items() if micros % size == 0))
    unit = "us" if found["parts"] else "s" if found["seconds"] else "m" if found["minutes"] else "D"
    zone = found["zone"] or ""
    digits = zone[1:].replace(":", "")
    sign = -1 if zone.startswith("-") else 1
    offset = sign * (3600 * int(digits[:2] or 0) + 60 * int(digits[2:] or 0))
    return TimeFormat(unit=unit, between=found["between"] or "T", zone=zone, offset=offset)


UNIT_SECONDS: Final = {
    "s": 1,
    "m": 60,
    "min": 60,
    "h": 3600,
    "d": 86_400,
    "w": 604_800,
    "y": 31_557_600,
}
"""Seconds of a unit of time; a year has 365.25 days."""

MOST_STEPS: Final = 10_000_000
"""Steps of a stream: more are a slip in the unit."""

FRACTIONS: Final = {"nanoseconds": 10**9, "microseconds": 10**6, "milliseconds": 1000}
"""How many of each are a second."""

DAY: Final = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
"""A date that may pass for a number."""

NO_IDS = np.zeros(0, np.uint32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """A batch of a stream."""

    time: int | float
    insert: tuple[NDArray[Any], ...] | None = None
    delete: tuple[NDArray[Any], ...] | None = None
    decrease: tuple[NDArray[Any], ...] | None = None
    new_vertices: int = 0
    remove: NDArray[np.uint32] = field(default_factory=lambda: NO_IDS)
    labels: NDArray[np.uint32] | None = None

    def apply(self, graph: DynamicGraph) -> Change:
        """Apply the step to a graph; return the change of its edges."""
        if self.new_vertices:
            graph.add_vertices(self.new_vertices)
        if len(self.remove):
            graph.remove_vertices(self.remove)
        return graph.apply(insert=self.insert, delete=self.delete, decrease=self.decrease)

    def __len__(self) -> int:
        """Return the number of edges inserted, deleted and decreased."""
        given = (self.insert, self.delete, self.decrease)
        return sum(len(edges[0]) for edges in given if edges is not None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeBlock:
    """Some timed edges, in the order of their times."""

    u: NDArray[Any]
    v: NDArray[Any]
    times: NDArray[Any]
    weights: NDArray[Any] | None = None

    def __len__(self) -> int:
        """Return the number of edges."""
        return len(self.u)

    def __getitem__(self, part: slice) -> EdgeBlock:
        """Return some of the edges."""
        weights = None if self.weights is None else self.weights[part]
        return EdgeBlock(u=self.u[part], v=self.v[part], times=self.times[part], weights=weights)

    def joined(self, other: EdgeBlock) -> EdgeBlock:
        """Return these edges, then others."""
        weights = None
        if self.weights is not None and other.weights is not None:
            weights = np.concatenate([self.weights, other.weights])
        return EdgeBlock(
            u=np.concatenate([self.u, other.u]),
            v=np.concatenate([self.v, other.v]),
            times=np.concatenate([self.times, other.times]),
            weights=weights,
        )


class Windows:
    """Cuts timed edges into steps as they arrive."""

    def __init__(self, every: int | float | str, window: int | float | str | None = None) -> None:
        self.every, self.by_time = span("every", every)
        self.window = None if window is None else span("window", window)
        if (
            self.window is not None
            and self.window[1] == self.by_time
            and self.window[0] < self.every
        ):
            warn(
                f"window {window} is shorter than every {every}: edges that leave the window "
                "within their own step are never in the graph"
            )
        self._options = {"every": every, "window": window}
        self.origin: int | float | None = None
        self.number = 0
        self.ended: EdgeBlock | None = None
        # Edges in the window are [begin, end) of these; those behind wait for the end of a step.
        self._held: EdgeBlock | None = None
        self._begin = self._end = 0

    @property
    def waiting(self) -> int:
        """Edges that wait for the end of their step."""
        return 0 if self._held is None else len(self._held) - self._end

    def feed(self, edges: EdgeBlock) -> Iterator[Step]:
        """Take the next edges; yield the steps that have ended."""
        if not len(edges):
            return
        self.check(edges)
        held = self.held
        self._held = edges if held is None else held.joined(edges)
        while (end := self._next_end(self._held)) is not None:
            step = self._step(self._held, end)
            self.number += 1
            yield step

    def check(self, edges: EdgeBlock) -> None:
        """Raise if the next edges, at least one, come in another unit or give too many steps."""
        last = edges.times[-1].item()
        if self.origin is None:
            self.origin = edges.times[0].item()
            self._check_units(self.origin, last)
        # NaN where the difference of two times is too large for a number is too many, too.
        if self.by_time and not (last - self.origin) // self.every < MOST_STEPS:
            remedy = f"must be longer: it gives more than {MOST_STEPS:,} steps"
            raise OptionError("every", self._options["every"], remedy)

    def _check_units(self, first: Any, last: Any) -> None:
        """Raise for minutes and longer units if times seem to be something else than seconds."""
        found = (each for each in FRACTIONS.items() if first >= UNIX_TIMES[0] * each[1])
        what, many = next(found, ("", 0))
        if DAY.fullmatch(str(first)) and DAY.fullmatch(str(last)):
            what = "dates"
        for option, value in self._options.items() if what else ():
            size, by_time = (0, False) if value is None else span(option, value)
            if by_time and not str(value).strip().endswith("s"):
                remedy = f"pass {{option}} {size * many:.0f}s"
                if not many:
                    remedy = "pass date_format='%Y%m%d' (--date-format)"
                problem = f"times such as {first} seem to be {what}, not seconds"
                raise OptionError(option, value, remedy, problem)

    def close(self) -> Iterator[Step]:
        """Yield the step of the edges that wait, if there are any; others may follow."""
        if self._held is not None and self.waiting:
            yield self._step(self._held, len(self._held))

    @property
    def held(self) -> EdgeBlock | None:
        """The edges of the window, then those that wait."""
        if self._held is not None and self._begin:
            self._held = self._held[self._begin :]
            self._end -= self._begin
            self._begin = 0
        return self._held

    def restore(self, held: EdgeBlock, inside: int) -> None:
        """Hold edges again, of which the first ones are in the window."""
        self._held, self._begin, self._end = held, 0, inside

    def _next_end(self, held: EdgeBlock) -> int | None:
        """Return where the next step ends, None if edges of it may be to come."""
        if not self.by_time:
            end = self._end + int(self.every)
            return end if end <= len(held) else None
        stop = self._stop()
        if held.times[-1] < stop:
            return None
        return self._end + int(np.searchsorted(held.times[self._end :], stop, side="left"))

    def _stop(self) -> Any:
        """Return when the next step by time ends."""
        assert self.origin is not None
        return self.origin + self.every * (self.number + 1)

    def _step(self, held: EdgeBlock, end: int) -> Step:
        """Let a step end before an edge."""
        time = self._stop() if self.by_time else held.times[end - 1].item()
        if float(time).is_integer():  # a real number only where it is not whole
            time = int(time)
        before, last = self._begin, self._end
        self.ended = held[last:end]
        self._end = end
        if self.window is None:  # what nothing will take out again need not be held
            self._begin = end
            return Step(time=time, insert=_weighted(self.ended))
        begin = self._begin = min(self._first_inside(held, end, time), end)
        return Step(
            time=time,
            insert=_weighted(held[max(last, begin) : end]),
            decrease=_weighted(held[before : min(begin, last)]),
        )

    def _first_inside(self, held: EdgeBlock, end: int, time: Any) -> int:
        """Return the first edge that stays in the window."""
        assert self.window is not None
        size, by_time = self.window
        if not by_time:
            return max(end - int(size), self._begin)
        start = time - size
        if self.by_time:
            assert self.origin is not None
            steps = size / self.every
            begin = self.every * (self.number + 1) - size
            if abs(steps - round(steps)) <= 1e-9 * steps:  # rounded as the end of a step is
                begin = self.every * (self.number + 1 - round(steps))
            start = self.origin + begin
        inside = held.times[self._begin :]
        return self._begin + int(np.searchsorted(inside, start, side="left"))


def _weighted(edges: EdgeBlock) -> tuple[NDArray[Any], ...] | None:
    """Return edges as `DynamicGraph.apply` takes them; None for none."""
    if not len(edges):
        return None
    weights = np.ones(len(edges), np.int64) if edges.weights is None else edges.weights
    if weights.dtype.kind == "f":
        weights = weights.astype(np.float64)
    return edges.u, edges.v, weights


def span(option: str, value: int | float | str) -> tuple[float, bool]:
    """Return a number of edges or seconds, and whether it is time."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", str(value))
    remedy = "must be a number of edges like 10000, or a time like '30d' (s, m, h, d, w, y)"
    if match is None or (match[2] and match[2] not in UNIT_SECONDS):
        raise OptionError(option, value, remedy)
    number = float(match[1])
    size = number * UNIT_SECONDS.get(match[2], 1)
    if size <= 0 or (not match[2] and not number.is_integer()):
        raise OptionError(option, value, remedy)
    return (int(size) if size.is_integer() else size), bool(match[2])
