"""What a program did: its arrays and, in time order, its launches, host touches and prefetches.

A trace does not fix where arrays lie; it can be replayed under any placement, GPU and size.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from louvain_um.core.array_names import Role, level_of, role_of, with_current_name
from louvain_um.core.atomic_files import replacing
from louvain_um.core.ledger import Group
from louvain_um.errors import LouvainUmError, OptionError
from louvain_um.events import Phase
from louvain_um.profiling.simulator.driver.constants import BIG_PAGES, BLOCK_PAGES, PAGE_BYTES, WAYS
from louvain_um.profiling.simulator.touches import Touches, concatenate_touches

SCHEMA = "louvain-um trace 2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """One array: name, group, bytes, and where its bytes are when the program begins.

    `starts` is "host" for data that the host wrote, "nowhere" for memory that was never touched.
    `itemsize` is the bytes of an element.
    """

    name: str
    group: Group
    nbytes: int
    starts: Literal["host", "nowhere"] = "host"
    itemsize: int = 4

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
    is what the host takes besides the launch.
    """

    touches: Touches
    kernel: str = "kernel"
    phase: Phase | None = None
    level: int = -1
    iteration: int = -1
    compute_seconds: float | None = None
    chain: int = 0
    host_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTouches:
    """Touches of the host, between launches."""

    touches: Touches


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefetch:
    """An explicit prefetch of part of an array, or its writing back (`to` = "host")."""

    array: int
    to: Literal["gpu", "host"] = "gpu"
    first: int = 0
    pages: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocate:
    """An array begins to be there; one without such a step is there from the beginning."""

    array: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Free:
    """An array is given back, whole: its contents are lost, its device memory is free."""

    array: int


Step = Launch | HostTouches | Prefetch | Allocate | Free
Touching = Launch | HostTouches


@dataclass(frozen=True, slots=True)
class Trace:
    """Arrays and steps of one program.

    Of the shorter of the two, computing and reading over the bus, kernels hide the share `hidden`
    beside the other: all of it, unless they wait for their slowest. `about` is what the program's
    own plan follows from, if that is known.

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
    hidden: float = 1.0
    about: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        names = [array.name for array in self.arrays]
        if len(set(names)) < len(names):
            raise OptionError(
                remedy="two arrays of a trace share a name; every name must be unique"
            )
        pages = np.array([array.pages for array in self.arrays], np.int64)
        for number, step in enumerate(self.steps):
            if isinstance(step, Allocate | Free):
                inside = 0 <= step.array < len(pages)
            elif isinstance(step, Prefetch):
                inside = 0 <= step.array < len(pages)
                inside = inside and bool(0 <= step.first < pages[step.array])
                if inside and step.pages is not None:
                    inside = 0 < step.pages <= pages[step.array] - step.first
            else:
                t = step.touches
                inside = bool(np.all((t.array >= 0) & (t.array < len(pages))))
                if inside and len(t):
                    end = t.first + t.length
                    inside = bool(
                        np.all((t.first >= 0) & (t.length > 0) & (end <= pages[t.array]))
                        and t.way.max() < WAYS
                        and t.amount.min() >= 0
                    )
            if not inside:
                raise OptionError(
                    remedy=f"step {number} of the trace touches pages that no array holds"
                )

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
        """Write the trace as a compressed NPZ file."""
        streams = [step.touches for step in self.steps if isinstance(step, Touching)]
        whole = concatenate_touches(streams)
        header = {
            "schema": SCHEMA,
            "arrays": [asdict(array) for array in self.arrays],
            "steps": [_plain(step) for step in self.steps],
            "hidden": self.hidden,
            "about": None if self.about is None else dict(self.about),
        }
        text = np.frombuffer(json.dumps(header).encode(), np.uint8)
        columns = {name: getattr(whole, name) for name in Touches.__slots__}
        with replacing(path, force=force) as part, part.open("wb") as file:
            np.savez_compressed(file, header=text, **columns)


def load_trace(path: str | Path) -> Trace:
    """Read a trace that `Trace.save` wrote.

    Raises
    ------
    LouvainUmError
        The file is missing or is not a trace.
    """
    try:
        with np.load(path, allow_pickle=False) as data:
            header = json.loads(bytes(data["header"]))
            if header["schema"] != SCHEMA:
                raise LouvainUmError(
                    f"{path}: has schema {header['schema']!r}, this version reads {SCHEMA!r}; "
                    "record the trace again"
                )
            columns = [data[name] for name in Touches.__slots__]
    except OSError as error:
        raise LouvainUmError(f"{path}: {error.strerror or 'cannot be read'}") from None
    except (KeyError, ValueError, TypeError, EOFError, AttributeError, zipfile.BadZipFile):
        raise LouvainUmError(f"{path}: not a trace; record one first") from None
    steps: list[Step] = []
    start = 0
    for values in header["steps"]:
        kind = values.pop("step")
        if kind in _PLAIN:
            steps.append(_PLAIN[kind](**values))
            continue
        end = start + values.pop("rows")
        touches = Touches(*(column[start:end] for column in columns))
        start = end
        steps.append(
            HostTouches(touches=touches) if kind == "host" else Launch(touches=touches, **values)
        )
    about = header.get("about")
    # Arrays of this program's recordings; those of others keep their names.
    rows = header["arrays"] if about is None else map(with_current_name, header["arrays"])
    arrays = tuple(Array(**row) for row in rows)
    return Trace(arrays, tuple(steps), float(header.get("hidden", 1.0)), about)


_PLAIN: dict[str, type[Prefetch | Allocate | Free]] = {
    "prefetch": Prefetch,
    "allocate": Allocate,
    "free": Free,
}


def live_peak(trace: Trace, sizes: Sequence[int]) -> int:
    """Return the largest sum, at one time, of the sizes of the arrays that are there."""
    later = {step.array for step in trace.steps if isinstance(step, Allocate)}
    live = peak = sum(size for number, size in enumerate(sizes) if number not in later)
    for step in trace.steps:
        if isinstance(step, Allocate):
            live += sizes[step.array]
            peak = max(peak, live)
        elif isinstance(step, Free):
            live -= sizes[step.array]
    return peak


def _occupied(pages: int) -> int:
    """Return the pages that the driver gives out for so many."""
    whole = pages // BLOCK_PAGES * BLOCK_PAGES
    return whole + -(-(pages - whole) // BIG_PAGES) * BIG_PAGES


def _plain(step: Step) -> dict[str, Any]:
    """Return a step without its touches, as JSON takes it."""
    if isinstance(step, Prefetch | Allocate | Free):
        return {"step": type(step).__name__.lower(), **asdict(step)}
    if isinstance(step, HostTouches):
        return {"step": "host", "rows": len(step.touches)}
    return {
        "step": "launch",
        "rows": len(step.touches),
        "kernel": step.kernel,
        "phase": step.phase,
        "level": step.level,
        "iteration": step.iteration,
        "compute_seconds": step.compute_seconds,
        "chain": step.chain,
        "host_seconds": step.host_seconds,
    }
