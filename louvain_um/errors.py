"""Every error the toolkit raises on purpose: one line each, ending in what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

MOST_NAMED: Final = 5
"""Arrays that an error lists."""


class LouvainUmError(Exception):
    """Base of all errors raised on purpose; its text is one line that a user can act on."""


class OptionError(LouvainUmError, ValueError):
    """An option has a value outside its range; the text names the option and the range."""


class GraphError(LouvainUmError, ValueError):
    """Arrays or objects that do not describe an undirected graph with non-negative weights."""


class GraphFormatError(GraphError):
    """A file that cannot be read as a graph.

    Parameters
    ----------
    message : str
        What is wrong and what to do about it.
    file : str or Path
        The file as the user named it.
    line : int, optional
        1-based number of the first offending line, where one is known.
    """

    def __init__(self, message: str, file: str | Path, line: int | None = None) -> None:
        where = f"{file}:{line}" if line is not None else f"{file}"
        super().__init__(f"{where}: {message}")
        self.message = message
        self.file = str(file)
        self.line = line

    def __reduce__(self) -> tuple[type[GraphFormatError], tuple[str, str, int | None]]:
        return type(self), (self.message, self.file, self.line)


class DeviceUnavailableError(LouvainUmError):
    """The device asked for is not there; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class MemoryBudgetError(LouvainUmError):
    """A run does not fit.

    Parameters
    ----------
    needed, budget : int
        Bytes the run needs and bytes it may use.
    largest : iterable of (str, int)
        Arrays and their bytes; the largest are named.
    remedy : str
        What to try next.
    """

    def __init__(
        self,
        needed: int,
        budget: int,
        largest: Iterable[tuple[str, int]] = (),
        remedy: str = "raise the budget or choose another memory policy",
    ) -> None:
        named = tuple(sorted(largest, key=lambda item: -item[1])[:MOST_NAMED])
        arrays = ", ".join(f"{name} {_size(bytes_)}" for name, bytes_ in named)
        detail = f" (largest: {arrays})" if arrays else ""
        super().__init__(
            f"needs {_size(needed)}, {needed - budget:,} bytes more than the "
            f"{_size(budget)} it may use{detail}; {remedy}"
        )
        self.needed = needed
        self.budget = budget
        self.largest = named
        self.remedy = remedy

    def __reduce__(
        self,
    ) -> tuple[type[MemoryBudgetError], tuple[int, int, tuple[tuple[str, int], ...], str]]:
        return type(self), (self.needed, self.budget, self.largest, self.remedy)


def _size(nbytes: int) -> str:
    """Return bytes for people: MiB, and what would be next to none of them in smaller units."""
    if nbytes >= 10 << 20:
        return f"{nbytes / 2**20:,.0f} MiB"
    if nbytes >= 1 << 20:
        return f"{nbytes / 2**20:.1f} MiB"
    return f"{nbytes / 1024:.1f} KiB" if nbytes >= 1 << 10 else f"{nbytes} bytes"


class PlacementError(LouvainUmError):
    """A device or its driver does not carry out a placement; the run stops, it is not changed."""


class KernelCompileError(LouvainUmError):
    """A CUDA kernel did not compile; `log` is the compiler's own."""

    def __init__(self, log: str) -> None:
        super().__init__(
            f"CUDA kernels failed to compile: {log.strip()}; update the driver, CUDA or CuPy, or "
            "use device='cpu'"
        )
        self.log = log


class GraphWarning(UserWarning):
    """Something a reader should know about a graph that was read all the same."""
