"""What a run is asked to do: checked once, then frozen."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

from louvain_um.errors import OptionError

MOST_THREADS = 4096
"""More would take memory and time only to be started."""

MOST_BYTES = 1 << 63
MOST_SHARE = 1e9
"""Of the peak; no machine has more."""

UNITS = {"": 1, "b": 1} | {
    f"{prefix}{infix}b": base**power
    for infix, base in (("", 1000), ("i", 1024))
    for power, prefix in enumerate("kmgt", 1)
}
"""Bytes of a unit, by its name in lower case."""

Method = Literal["louvain", "leiden"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of one detection; `louvain` documents them.

    Raises
    ------
    OptionError
        A value outside its range.

    Examples
    --------
    >>> from louvain_um.options import Options
    >>> Options(resolution=0.5).method
    'louvain'
    """

    method: Method = "louvain"
    resolution: float = 1.0
    threshold: float = 1e-7
    max_level: int | None = None
    seed: int = 0
    device: str = "auto"
    memory: Any = "auto"
    device_budget: int | str | None = None
    threads: int | None = None
    ballast: int | str | None = None
    allow_driver_eviction: bool = False

    def __post_init__(self) -> None:
        if self.method not in ("louvain", "leiden"):
            raise OptionError("method", self.method, "must be 'louvain' or 'leiden'")
        self._check_kinds()
        if not (math.isfinite(self.resolution) and self.resolution > 0):
            raise OptionError("resolution", self.resolution, "must be a number above 0")
        if not (math.isfinite(self.threshold) and self.threshold >= 0):
            raise OptionError("threshold", self.threshold, "must be a number of at least 0")
        if self.max_level is not None and self.max_level < 1:
            raise OptionError("max_level", self.max_level, "must be at least 1")
        if not 0 <= self.seed < 2**32:
            raise OptionError("seed", self.seed, "must lie in 0 … 2^32 - 1")
        if self.threads is not None and not 1 <= self.threads <= MOST_THREADS:
            raise OptionError("threads", self.threads, f"must lie in 1 … {MOST_THREADS}")
        if self.device_budget is not None:
            parse_budget(self.device_budget)
        if self.ballast is not None:
            parse_bytes(self.ballast, "ballast")
            if self.device == "cpu":
                raise OptionError(
                    "device", "cpu", "use device='cuda'", problem="ballast takes device memory"
                )
        elif self.allow_driver_eviction:
            raise OptionError(
                "allow_driver_eviction",
                True,
                "pass ballast with it",
                problem="the driver evicts only where ballast takes device memory",
            )
        kind, _, number = self.device.partition(":")
        if kind not in ("auto", "cpu", "cuda") or (
            ":" in self.device and (kind != "cuda" or not number.isdecimal())
        ):
            raise OptionError("device", self.device, "must be 'auto', 'cpu', 'cuda' or 'cuda:N'")

    def _check_kinds(self) -> None:
        """Refuse values of another kind than an option's, which would fail later or be cut."""
        for name in ("resolution", "threshold"):
            if not isinstance(value := getattr(self, name), Real):
                raise OptionError(name, value, "must be a number")
        for name in ("max_level", "seed", "threads"):
            value = getattr(self, name)
            if not isinstance(value, Integral) and (value is not None or name == "seed"):
                raise OptionError(name, value, "must be a whole number")
        if not isinstance(self.device, str):
            raise OptionError("device", self.device, "must be a string such as 'cpu'")

    @property
    def ballast_bytes(self) -> int:
        """Device memory to be held beside the run."""
        return 0 if self.ballast is None else parse_bytes(self.ballast, "ballast")

    def budget_bytes(self, peak: int) -> int | None:
        """Return the device budget in bytes, for a run that takes `peak` bytes in core."""
        if self.device_budget is None:
            return None
        budget = parse_budget(self.device_budget)
        return budget if isinstance(budget, int) else max(1, int(budget * peak))


def parse_budget(budget: int | str) -> int | float:
    """Return a budget: bytes as an int, or a share of the peak as a float.

    Raises
    ------
    OptionError
        Neither a size above 0 nor a percentage above 0.

    Examples
    --------
    >>> from louvain_um.options import parse_budget
    >>> parse_budget("8GiB"), parse_budget("70%")
    (8589934592, 0.7)
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*%\s*", str(budget))
    if match is None:
        try:
            return parse_bytes(budget)
        except OptionError:
            raise OptionError(
                "device_budget",
                budget,
                "must be a size above 0, like '8GiB', or a share, like '70%'",
            ) from None
    share = float(match[1]) / 100
    if not 0 < share <= MOST_SHARE:
        raise OptionError("device_budget", budget, "must be between 0 and 10¹¹ %")
    return share


def parse_bytes(size: int | str, option: str = "size") -> int:
    """Return a size in bytes.

    Parameters
    ----------
    size : int or str
        A number of bytes, or one with a unit: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB.
    option : str
        Name of the option in errors.

    Raises
    ------
    OptionError
        Not a size of one byte or more.

    Examples
    --------
    >>> from louvain_um.options import parse_bytes
    >>> parse_bytes("1.5GiB")
    1610612736
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([a-zA-Z]*)\s*", str(size))
    scale = UNITS.get(match[2].lower()) if match else None
    if match is None or scale is None or not 1 <= float(match[1]) * scale < MOST_BYTES:
        raise OptionError(option, size, "must be a number of bytes or a size like '8GiB'")
    nbytes = float(match[1]) * scale
    if not match[2] and not nbytes.is_integer():
        raise OptionError(option, size, "must be a whole number of bytes, or have a unit")
    return int(nbytes)
