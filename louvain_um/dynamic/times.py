"""Times of edges as numbers, and written again as they were."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from louvain_um.formats.file_types import require
from louvain_um.formats.graph_file import GraphFile

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
        >>> from louvain_um.dynamic.times import TimeFormat
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
    """Return times as numbers, dates as seconds since 1970, and how they are written.

    `like` is how earlier ones were written, or a format of dates that the user names.
    """
    if times.dtype.kind in "iuf" and not (like is not None and like.dates):
        return _numbers(file, times, line), NUMBERS
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
