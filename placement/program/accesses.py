"""How kernels access an array: in order, at random, or by atomic updates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

import numpy as np

from louvain_um.errors import OptionError

MOST_COUNT: Final = 1e30
"""Most passes, accesses or operations."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Kernels go over an array in order.

    Parameters
    ----------
    passes : float
        How often, in the whole program.
    share : float
        Part of the array that a pass goes over, 0 … 1.

    Examples
    --------
    >>> from louvain_um.placement.program import Stream
    >>> Stream(passes=20).elements(1000)
    20000.0
    """

    passes: float = 1.0
    share: float = 1.0

    def __post_init__(self) -> None:
        check_amount("passes", self.passes)
        check_share(self.share)

    def elements(self, size: int) -> float:
        """Return element accesses of an array with so many elements."""
        return float(self.passes * self.share * size)

    def times(self, often: float) -> Stream:
        """Return the accesses of so many runs of what this is one run of."""
        return Stream(self.passes * often, self.share)

    def touched(self, pages: float) -> float:
        """Return how many of so many pages are touched at all."""
        return pages * self.share * min(1.0, self.passes)


@dataclass(frozen=True, slots=True)
class Gather:
    """Kernels access single elements at random.

    Parameters
    ----------
    count : float
        Element accesses in the whole program.
    share : float
        Part of the array in which they fall, 0 … 1.

    Examples
    --------
    >>> from louvain_um.placement.program import Gather
    >>> round(Gather(100).touched(100), 1)
    63.2
    """

    count: float
    share: float = 1.0

    def __post_init__(self) -> None:
        check_amount("count", self.count)
        check_share(self.share)

    def elements(self, size: int) -> float:
        """Return element accesses."""
        return float(self.count)

    def times(self, often: float) -> Gather:
        """Return the accesses of so many runs of what this is one run of."""
        return type(self)(self.count * often, self.share)

    def touched(self, pages: float) -> float:
        """Return how many of so many pages are touched at all: accesses fall on them evenly."""
        inside = max(pages * self.share, 1e-300)
        return float(inside * -np.expm1(-self.count / inside)) if pages else 0.0


@dataclass(frozen=True, slots=True)
class Atomic(Gather):
    """Kernels update single elements atomically, at random; parameters as in `Gather`."""


Access = Stream | Gather
Accesses = Access | Sequence[Access] | Mapping[str, Access | Sequence[Access]]
"""An access or several, of all phases of an array together; or by phase."""


def flat(accesses: Any) -> Iterator[tuple[str | None, Access]]:
    """Yield single accesses, each with its phase, or None for all of them."""
    if isinstance(accesses, Mapping):
        for phase, some in accesses.items():
            for access in some if isinstance(some, Sequence) else (some,):
                yield phase, access
    else:
        for access in accesses if isinstance(accesses, Sequence) else (accesses,):
            yield None, access


def frozen(accesses: Any, array: str) -> Any:
    """Return accesses checked, with tuples for sequences."""
    if accesses is None:
        return ()
    for _, access in flat(accesses):
        if not isinstance(access, Stream | Gather):
            raise OptionError(
                "accesses", access, f"of array {array} must be Stream, Gather or Atomic"
            )
    if isinstance(accesses, Mapping):
        return dict(accesses)
    return tuple(accesses) if isinstance(accesses, Sequence) else (accesses,)


def check_name(what: str, value: object) -> None:
    """Refuse what is no name."""
    if not isinstance(value, str) or not value or len(value) > 200 or not value.isprintable():
        raise OptionError(what, value, "must be a word of at most 200 printable characters")


def check_amount(what: str, value: object) -> None:
    """Refuse what is no count."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not isfinite(value) or not 0 <= value <= MOST_COUNT:  # type: ignore[arg-type, operator]
        raise OptionError(what, value, "must be a number from 0 on")


def check_share(value: object) -> None:
    """Refuse what is no part of a whole."""
    check_amount("share", value)
    if not value <= 1:  # type: ignore[operator]
        raise OptionError("share", value, "must lie in 0 … 1")
