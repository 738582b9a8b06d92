"""What a program did: its arrays and, in time order, its launches, host touches and prefetches.

A trace does not fix where arrays lie; it can be replayed under any placement, GPU and size.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
from numpy.typing import NDArray

from louvain_um.core.array_spec import Role, level_of, role_of
from louvain_um.core.atomic_files import replacing
from louvain_um.core.plain_data import Within, build, check_fields, read_archive, to_bytes
from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.placement.hardware import size
from louvain_um.placement.machine.machine import MOST_GPUS
from louvain_um.profiling.session.events import MOST_LEVELS
from louvain_um.profiling.simulator.driver.constants import BIG_PAGES, BLOCK_PAGES, PAGE_BYTES, WAYS
from louvain_um.profiling.simulator.touches import Touches, concatenate_touches

MOST_ARRAYS = 1 << 15
"""Arrays of a trace: touches number them in 16 bits."""

MOST_BYTES = 1 << 52
"""Bytes of an array, and of all arrays together."""

MOST_TOUCHED = 1 << 60
"""Bytes, or accesses, of all touches of a step."""

MOST_SECONDS = 1e9
"""Seconds of one step: nanoseconds of all steps have to fit into int64."""

Position = Annotated[int, Within(-1, MOST_LEVELS - 1)]
Count = Annotated[int, Within(0, 1 << 40)]
Seconds = Annotated[float, Within(0, MOST_SECONDS)]
Index = Annotated[int, Within(0, MOST_ARRAYS - 1)]
Device = Annotated[int, Within(0, MOST_GPUS - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """One array: name, group, bytes, and where its bytes are when the program begins.

    `starts` is "host" for data that the host wrote, "nowhere" for memory that was never touched.
    `itemsize` is the bytes of an element. Arrays of one `pool` come from a stream-ordered pool of
    managed memory (`cudaMallocFromPoolAsync`): what one frees, another gets with its pages, where
    these are; the driver does not know that their contents are lost.
    """

    name: str
    group: str
    nbytes: Annotated[int, Within(0, MOST_BYTES)]
    starts: Literal["host", "nowhere"] = "host"
    itemsize: Annotated[int, Within(1, 1 << 16)] = 4
    pool: str | None = None

    @property
    def role(self) -> Role:
        """What an array of this program is for; recordings know it by its name."""
        return role_of(self.name)

    @property
    def level(self) -> int | None:
        """The level that an array of this program is planned for."""
        return level_of(self.name)

    @property
    def holds_input_arcs(self) -> bool:
        """Whether it holds targets or weights of level 0."""
        return self.role in ("targets", "weights") and self.level == 0

    @property
    def pages(self) -> int:
        """Pages of 4 KiB that the array occupies."""
        return max(1, -(-self.nbytes // PAGE_BYTES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A kernel: what it touched, in time order, and where in the run it stood.

    `compute_seconds` is the kernel's time with all its data on the device, if it was measured;
    without it the time comes from the touches and the machine's rates, and from its `chain`: so
    many steps wait for each other, and each takes its time however little it does. `host_seconds`
    is what the host takes besides the launch. It stands for `repeats` launches alike, one after the
    other: those after the first take what the second takes. It runs on the GPU of number `device`.
    """

    touches: Touches
    kernel: str = "kernel"
    phase: str | None = None
    level: Position = -1
    iteration: Annotated[int, Within(-1, (1 << 31) - 1)] = -1
    compute_seconds: Seconds | None = None
    chain: Annotated[int, Within(0, 1 << 32)] = 0
    host_seconds: Seconds = 0.0
    repeats: Annotated[float, Within(1, 1 << 40)] = 1.0
    device: Device = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTouches:
    """Touches of the host, between launches."""

    touches: Touches


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefetch:
    """An explicit prefetch of part of an array to a `device`, or its writing back (`to` = "host").

    With `batched` it is of the same call as the prefetch before it (`cudaMemPrefetchBatchAsync`).
    """

    array: Index
    to: Literal["gpu", "host"] = "gpu"
    first: Count = 0
    pages: Count | None = None
    batched: bool = False
    device: Device = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocate:
    """An array begins to be there; one without such a step is there from the beginning."""

    array: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class Free:
    """An array is given back, whole: its contents are lost, its device memory is free."""

    array: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard:
    """What part of an array holds is not needed any more, as `cudaMemDiscard` says."""

    array: Index
    first: Count = 0
    pages: Count | None = None


Step = Launch | HostTouches | Prefetch | Discard | Allocate | Free
Touching = Launch | HostTouches


def is_inside(step: Step, pages: NDArray[np.int64]) -> bool:
    """Return whether all that a step touches lies in arrays of so many pages."""
    if not isinstance(step, Touching):
        if step.array >= len(pages):
            return False
        if not isinstance(step, Prefetch | Discard):
            return True
        behind = int(pages[step.array]) - step.first
        return behind > 0 and (step.pages is None or 0 < step.pages <= behind)
    t = step.touches
    t.check()
    if not len(t):
        return True
    if t.array.min() < 0 or t.array.max() >= len(pages):
        return False
    # Written so that no sum overflows.
    left = pages[t.array] - t.first
    if t.first.min() < 0 or t.length.min() <= 0 or not np.all(t.length <= left):
        return False
    if t.kinds.max() >= WAYS or t.amount.min() < 0:
        return False
    pages = np.where(t.scattered, 1, t.length).astype(np.float64)
    return float(np.dot(pages, t.amount)) < MOST_TOUCHED


SCHEMA: Final = "louvain-um trace 2"

KINDS: Final[Mapping[str, type[Step]]] = {
    "launch": Launch,
    "host": HostTouches,
    "prefetch": Prefetch,
    "discard": Discard,
    "allocate": Allocate,
    "free": Free,
}
"""Steps by their name in a file."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Arrays and steps of one program.

    Of the shorter of the two, computing and reading over the bus, kernels hide the share `hidden`
    behind the longer: all of it, unless they wait for their slowest. `about` is what the program's
    own plan follows from, if that is known. With less memory than all arrays take, `reserved` bytes
    of it are not the program's: the context's, and the display's.

    Raises
    ------
    OptionError
        Two arrays share a name, or a step touches what no array holds.

    Examples
    --------
    >>> from louvain_um.profiling.simulator import Array, Launch, Touches, Trace
    >>> data = Array(name="targets", group="graph", nbytes=1 << 20)
    >>> Trace((data,), (Launch(touches=Touches.runs(0, 0, data.pages)),)).touches
    256
    """

    arrays: tuple[Array, ...]
    steps: tuple[Step, ...]
    hidden: Annotated[float, Within(0, 1)] = 1.0
    about: Mapping[str, Any] | None = None
    reserved: Annotated[int, Within(0, MOST_BYTES)] = 0

    def __post_init__(self) -> None:
        # Compiled code trusts all of this: it indexes with what a trace holds.
        try:
            self._check()
        except ValueError as error:
            raise OptionError(remedy=f"not a valid trace: {error}") from None

    def __repr__(self) -> str:
        return (
            f"Trace({len(self.arrays)} arrays of {size(self.peak_bytes)} at most, "
            f"{len(self.steps):,} steps)"
        )

    def _check(self) -> None:
        """Raise ValueError for anything that is not as documented."""
        check_fields(self, "trace")
        if len(self.arrays) > MOST_ARRAYS:
            raise ValueError(f"{len(self.arrays):,} arrays; at most {MOST_ARRAYS:,} are allowed")
        for number, array in enumerate(self.arrays):
            check_fields(array, f"array {number}")
        names = [array.name for array in self.arrays]
        if len(set(names)) < len(names):
            raise ValueError("two arrays share a name; every name must be unique")
        if sum(array.nbytes for array in self.arrays) > MOST_BYTES:
            raise ValueError(f"its arrays have more than {MOST_BYTES:,} bytes")
        pages = np.array([array.pages for array in self.arrays], np.int64)
        for number, step in enumerate(self.steps):
            check_fields(step, f"step {number}")
            if not is_inside(step, pages):
                raise ValueError(f"step {number} touches pages that no array holds")

    @property
    def devices(self) -> int:
        """Number of GPUs that the steps run on, those before the last included."""
        numbers = [step.device for step in self.steps if isinstance(step, Launch | Prefetch)]
        return max(numbers, default=0) + 1

    @property
    def touches(self) -> int:
        """Number of single page touches of all steps."""
        return sum(step.touches.touches for step in self.steps if isinstance(step, Touching))

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays together, whether they are there at one time or not."""
        return sum(array.nbytes for array in self.arrays)

    @property
    def peak_bytes(self) -> int:
        """Most bytes of device memory that the arrays occupy at one time when all are there.

        As the driver gives it out: whole blocks of 2 MiB, and 64 KiB at a time of smaller ones;
        rounded up to whole blocks.
        """
        pages = live_peak(self, [_occupied(array.pages) for array in self.arrays])
        return -(-pages // BLOCK_PAGES) * BLOCK_PAGES * PAGE_BYTES

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the trace as a compressed NPZ file: the touches, and a header of JSON."""
        touching = [step.touches for step in self.steps if isinstance(step, Touching)]
        header = {
            "schema": SCHEMA,
            "arrays": [asdict(array) for array in self.arrays],
            "steps": [_plain(step) for step in self.steps],
            "hidden": self.hidden,
            "about": None if self.about is None else dict(self.about),
            "reserved": self.reserved,
        }
        whole = concatenate_touches(touching)
        columns: dict[str, NDArray[Any]] = {"header": to_bytes(header)}
        columns |= {name: getattr(whole, name) for name in Touches.__slots__}
        with (
            replacing(path, force=force) as part,
            # Level 1 takes a fifth of the time that NumPy's level takes, and a third more bytes.
            ZipFile(part, "w", ZIP_DEFLATED, compresslevel=1) as archive,
        ):
            for name, column in columns.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, column, allow_pickle=False)


class Life(NamedTuple):
    """An array from the step that begins it, −1 for one that is there before, to the one after."""

    array: int
    begin: int
    end: int


def lives_of(steps: Sequence[Step], count: int) -> list[Life]:
    """Return the lives of so many arrays, those that a step ends first."""
    later = begun_later(steps)
    begun = {number: -1 for number in range(count) if number not in later}
    found: list[Life] = []
    for at, step in enumerate(steps):
        if isinstance(step, Allocate):
            begun.setdefault(step.array, at)
        elif isinstance(step, Free) and step.array in begun:
            found.append(Life(step.array, begun.pop(step.array), at))
    return [*found, *(Life(number, at, len(steps)) for number, at in begun.items())]


def begun_later(steps: Sequence[Step]) -> set[int]:
    """Return the arrays that a step begins; the others are there from the beginning."""
    return {step.array for step in steps if isinstance(step, Allocate)}


def live_peak(trace: Trace, sizes: Sequence[int]) -> int:
    """Return the largest sum, at one time, of the sizes of the arrays that are there."""
    changes = [0] * (len(trace.steps) + 2)
    for life in lives_of(trace.steps, len(sizes)):
        changes[life.begin + 1] += sizes[life.array]
        changes[life.end + 1] -= sizes[life.array]
    return max(accumulate(changes))


def _occupied(pages: int) -> int:
    """Return the pages that the driver gives out for so many."""
    whole = pages // BLOCK_PAGES * BLOCK_PAGES
    return whole + -(-(pages - whole) // BIG_PAGES) * BIG_PAGES


def load_trace(path: str | Path) -> Trace:
    """Read a trace that `Trace.save` wrote.

    Raises
    ------
    LouvainUmError
        The file is missing or is not a trace.
    """
    foreign = f"{path}: not a trace; record one first"
    found = read_archive(path, foreign)
    try:
        header = json.loads(found["header"].tobytes())
        schema = header["schema"]
        columns = [found[name] for name in Touches.__slots__]
    except (KeyError, ValueError, TypeError, RecursionError):
        raise LouvainUmError(foreign) from None
    if schema != SCHEMA:
        raise LouvainUmError(
            f"{path}: has schema {str(schema)[:40]!r}, this version reads {SCHEMA!r}; "
            "record the trace again"
        )
    try:
        return _trace(header, Touches.from_columns(*columns))
    except (ValueError, OptionError) as error:
        raise LouvainUmError(f"{path}: {error}; record the trace again") from None


def _trace(header: Mapping[str, Any], touches: Touches) -> Trace:
    """Return what a header and the touches hold, or raise ValueError."""
    rows, listed = header.get("arrays"), header.get("steps")
    if not isinstance(rows, list) or not isinstance(listed, list):
        raise ValueError("arrays and steps of the trace must be lists")
    arrays: list[Array] = [build(Array, row, f"array {at}") for at, row in enumerate(rows)]
    steps: list[Step] = []
    start = 0
    for number, values in enumerate(listed):
        step = _step(values, touches, start, f"step {number}")
        steps.append(step)
        start += len(step.touches) if isinstance(step, Touching) else 0
    return Trace(
        tuple(arrays), tuple(steps), header.get("hidden", 1.0), header.get("about"),
        header.get("reserved", 0),
    )  # fmt: skip


def _step(values: object, touches: Touches, start: int, where: str) -> Step:
    """Return a step whose touches begin at a row, or raise ValueError."""
    name = values.get("step") if isinstance(values, dict) else None
    if not isinstance(values, dict) or not isinstance(name, str) or name not in KINDS:
        raise ValueError(f"{where} is not a step; known: {', '.join(KINDS)}")
    kind = KINDS[name]
    rest = {key: value for key, value in values.items() if key not in ("step", "rows")}
    if issubclass(kind, Touching):
        rows = values.get("rows")
        if not isinstance(rows, int) or not 0 <= rows <= len(touches) - start:
            raise ValueError(f"{where} has more touches than the file")
        rest["touches"] = touches.select(slice(start, start + rows))
    step: Step = build(kind, rest, where)
    return step


def _plain(step: Step) -> dict[str, Any]:
    """Return a step without its touches, as JSON takes it."""
    name = next(name for name, kind in KINDS.items() if kind is type(step))
    rows = {"rows": len(step.touches)} if isinstance(step, Touching) else {}
    others = (field.name for field in fields(step) if field.name != "touches")
    return {"step": name, **rows, **{other: getattr(step, other) for other in others}}
