"""A program as data: arrays, phases, and how the kernels of each phase access each array.

Whoever writes kernels describes them here; placement decides from that alone where each array
lives. Names, groups and phases are the program's own words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, prod
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike

from louvain_um.errors import OptionError
from louvain_um.placement.hardware import ALIGNED, size
from louvain_um.placement.machine.machine import MOST_GPUS

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
    """Refuse anything but a name."""
    if not isinstance(value, str) or not value or len(value) > 200 or not value.isprintable():
        raise OptionError(what, value, "must be a word of at most 200 printable characters")


def check_amount(what: str, value: object) -> None:
    """Refuse anything but a count."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not isfinite(value) or not 0 <= value <= MOST_COUNT:  # type: ignore[arg-type, operator]
        raise OptionError(what, value, "must be a number from 0 on")


def check_share(value: object) -> None:
    """Refuse anything but a part of a whole."""
    check_amount("share", value)
    if not value <= 1:  # type: ignore[operator]
        raise OptionError("share", value, "must lie in 0 … 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A part of a program: some kernels, run `passes` times.

    Parameters
    ----------
    name : str
    passes : float
        How often the phase is run.
    launches : float
        Kernel launches of one run of it.
    operations : float
        Arithmetic operations of all runs together. They hide what is read over the bus.
    overlap : bool
        Whether computing and reading over the bus overlap; not if threads wait for each other.
    device : int
        Number of the GPU that runs it. Only the simulator uses it; plans are for one GPU.

    Raises
    ------
    OptionError
        A count that is negative or no number, or a device that is not 0 … 7.
    """

    name: str
    passes: float = 1.0
    launches: float = 1.0
    operations: float = 0.0
    overlap: bool = True
    device: int = 0

    def __post_init__(self) -> None:
        check_name("phase", self.name)
        whole = isinstance(self.device, int) and not isinstance(self.device, bool)
        if not whole or self.device not in range(MOST_GPUS):
            raise OptionError("device", self.device, f"must be 0 to {MOST_GPUS - 1}")
        for what in ("passes", "launches", "operations"):
            check_amount(what, getattr(self, what))


ONLY: Final = Phase(name="run")
"""The phase of programs that name none."""


@dataclass(frozen=True, kw_only=True)
class ProgramArray:
    """An array of a program.

    Parameters
    ----------
    name : str
    shape : int or tuple of int
    dtype : dtype
    group : str
        Any word; policies may place groups.
    role : str
        What the array is for; policies may place roles.
    phases : tuple of str, optional
        Phases in which it lives; all, if left out.
    reads, writes : Stream, Gather or Atomic, sequence of these, or mapping of phase to these
        Accesses of kernels. Those without a phase are shared by the array's phases, by their
        passes. An `Atomic` reads and writes, in whichever of the two it stands.
    from_host : float
        How often the host writes the array before kernels use it.
    to_host : float
        How often the host reads it after kernels have used it.
    given : bool
        Its first values are copied from other memory of the host, wherever it lives; else the
        host writes them in place where it can.
    on_device : bool
        It must be in device memory.
    by_rows : float
        How often all of it is copied to the device if kernels take it in slices of rows, since a
        part fits at a time; 0 where they cannot.

    Raises
    ------
    OptionError
        A name, shape, dtype, phase or access that is none.

    Examples
    --------
    >>> from louvain_um.placement.program import Gather, ProgramArray, Stream
    >>> rank = ProgramArray(name="rank", shape=(1000, 2), dtype="f4", reads=Gather(5000),
    ...                     writes=Stream(passes=20))
    >>> rank.nbytes, rank.itemsize
    (8000, 4)
    """

    name: str
    shape: int | tuple[int, ...]
    dtype: DTypeLike = "u4"
    group: str = "arrays"
    role: str = "other"
    phases: tuple[str, ...] | None = None
    reads: Accesses = ()
    writes: Accesses = ()
    from_host: float = 0.0
    to_host: float = 0.0
    given: bool = False
    on_device: bool = False
    by_rows: float = 0.0

    def __post_init__(self) -> None:
        for what in ("name", "group", "role"):
            check_name(what, getattr(self, what))
        shape = self.shape if isinstance(self.shape, Sequence) else (self.shape,)
        whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in shape)
        if not whole or not all(0 <= n < 1 << 50 for n in shape):
            raise OptionError("shape", self.shape, f"of array {self.name} must be whole numbers")
        try:
            kind = np.dtype(self.dtype)
        except (TypeError, ValueError):
            kind = np.dtype(object)
        if kind.hasobject or not kind.itemsize:
            raise OptionError("dtype", self.dtype, f"of array {self.name} must be one of numbers")
        for what in ("from_host", "to_host", "by_rows"):
            check_amount(what, getattr(self, what))
        phases = () if self.phases is None else self.phases
        texts = isinstance(phases, Iterable) and not isinstance(phases, str)
        if not texts or not all(isinstance(phase, str) for phase in phases):
            problem = f"the phases of array {self.name} are not a list of names"
            raise OptionError("phases", phases, "pass names of phases, like ('run',)", problem)
        for name, value in (
            ("shape", tuple(map(int, shape))),
            ("dtype", kind),
            ("phases", None if self.phases is None else tuple(self.phases)),
            ("reads", frozen(self.reads, self.name)),
            ("writes", frozen(self.writes, self.name)),
        ):
            object.__setattr__(self, name, value)

    @cached_property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(np.dtype(self.dtype).itemsize)

    @cached_property
    def size(self) -> int:
        """Elements."""
        return prod(self.shape) if isinstance(self.shape, tuple) else self.shape

    @cached_property
    def nbytes(self) -> int:
        """Bytes."""
        return self.size * self.itemsize

    @cached_property
    def held(self) -> int:
        """Bytes that the array is counted with."""
        return -(-self.nbytes // ALIGNED) * ALIGNED

    @property
    def written(self) -> bool:
        """Whether kernels write it."""
        return bool(self.writes) or any(
            isinstance(access, Atomic) for _, access in flat(self.reads)
        )


@dataclass(frozen=True, kw_only=True)
class Program:
    """Arrays and phases.

    Parameters
    ----------
    name : str
    arrays : sequence of ProgramArray
    phases : sequence of Phase
        In the order of their first run; one, "run", if left out.
    timed : bool
        Whether accesses of all arrays are known; otherwise a plan has bytes alone.

    Raises
    ------
    OptionError
        Two arrays or phases share a name, or an array lives in an unknown phase.

    Examples
    --------
    >>> from louvain_um.placement.program import Gather, Phase, Program, ProgramArray, Stream
    >>> ranks = Program(
    ...     name="pagerank",
    ...     arrays=[
    ...         ProgramArray(name="targets", shape=10**6, reads=Stream(passes=20), from_host=1),
    ...         ProgramArray(name="rank", shape=10**5, dtype="f4", reads=Gather(2e7)),
    ...     ],
    ...     phases=[Phase(name="iterate", passes=20)],
    ... )
    >>> ranks.bytes_by_phase
    {'iterate': 4400128}
    """

    name: str
    arrays: Sequence[ProgramArray]
    phases: Sequence[Phase] = (ONLY,)
    timed: bool = True

    def __repr__(self) -> str:
        phases = ", ".join(phase.name for phase in self.phases)
        return (
            f"Program({self.name}: {len(self.arrays)} arrays of {size(self.peak_bytes)}, "
            f"phases {phases})"
        )

    def __post_init__(self) -> None:
        check_name("name", self.name)
        for what, kind in (("arrays", ProgramArray), ("phases", Phase)):
            given = getattr(self, what)
            values = tuple(given) if isinstance(given, Iterable) else (given,)
            if not all(isinstance(value, kind) for value in values):
                raise OptionError(
                    what, given, f"pass a list of {kind.__name__}",
                    problem=f"the {what} of program {self.name} are of another type",
                )  # fmt: skip
            object.__setattr__(self, what, values)
        object.__setattr__(self, "phases", self.phases or (ONLY,))
        for what in ("arrays", "phases"):
            names = Counter(each.name for each in getattr(self, what))
            twice = next((name for name, count in names.items() if count > 1), None)
            if twice is not None:
                raise OptionError(
                    what, twice, "give each a name of its own",
                    problem=f"program {self.name} has two {what} called {twice!r}",
                )  # fmt: skip
        for array in self.arrays:
            named = [*(array.phases or ()), *(p for p, _ in self._declared(array) if p)]
            for phase in named:
                self.phase(phase, f"array {array.name}")

    def phase(self, name: str, asking: str = "") -> Phase:
        """Return a phase by name.

        Raises
        ------
        OptionError
            There is no such phase.
        """
        found = self._phases.get(name) if isinstance(name, str) else None
        if found is None:
            whose = f"{asking}: " if asking else ""
            raise OptionError(
                "phase", name, f"use one of {', '.join(p.name for p in self.phases)}",
                problem=f"{whose}program {self.name} has no phase {str(name)[:40]!r}",
            )  # fmt: skip
        return found

    @cached_property
    def _phases(self) -> dict[str, Phase]:
        return {phase.name: phase for phase in self.phases}

    def phases_of(self, array: ProgramArray) -> tuple[str, ...]:
        """Return the phases in which an array lives, in the program's order."""
        return self._lives(array)[0]

    def _lives(self, array: ProgramArray) -> tuple[tuple[str, ...], float]:
        """Return the phases in which an array lives, and how often they run in all."""
        found = self._lives_in.get(array.phases)
        if found is None:
            names = tuple(n for n in self._phases if array.phases is None or n in array.phases)
            found = names, sum(self._phases[name].passes for name in names)
            self._lives_in[array.phases] = found
        return found

    @cached_property
    def _lives_in(self) -> dict[tuple[str, ...] | None, tuple[tuple[str, ...], float]]:
        return {}

    def accesses(self, array: ProgramArray, phase: str) -> list[tuple[Access, bool]]:
        """Return an array's accesses in a phase, and whether each writes."""
        (mine, passes), here = self._lives(array), self.phase(phase).passes
        found = list[tuple[Access, bool]]()
        if phase not in mine:
            return found
        share = here / passes if passes else 0.0
        for writes, accesses in ((False, array.reads), (True, array.writes)):
            for name, access in flat(accesses):
                if name is None:
                    found.append((access.times(share), writes))
                elif name == phase:
                    found.append((access, writes))
        return found

    @cached_property
    def bytes_by_phase(self) -> dict[str, int]:
        """Bytes of the arrays that live in each phase, wherever they are."""
        return {
            phase.name: sum(a.held for a in self.arrays if phase.name in self.phases_of(a))
            for phase in self.phases
        }

    @property
    def peak_bytes(self) -> int:
        """Most bytes of arrays alive in one phase: 100 % of budgets."""
        return max(self.bytes_by_phase.values())

    def _declared(self, array: ProgramArray) -> Iterator[tuple[str | None, Access]]:
        yield from flat(array.reads)
        yield from flat(array.writes)
