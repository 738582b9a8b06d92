"""Where arrays of an algorithm come from, plain memory or a Placer; rows as kernels take them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike

from louvain_um.events import announcing
from louvain_um.gpu.level import unsigned
from louvain_um.gpu.runtime import launch
from louvain_um.gpu.runtime.launch import Struct, layout, pointers
from louvain_um.graph.graph import Graph
from louvain_um.options import Options
from louvain_um.placement.hardware import PAGE
from louvain_um.placement.memory import copies
from louvain_um.placement.memory.arena import FreeList
from louvain_um.placement.placer import Placer
from louvain_um.placement.policy.policy import Policy
from louvain_um.placement.program import Program, launches_for
from louvain_um.placement.program.blocking import Slice


class Workspace:
    """Arrays in plain memory of the current device."""

    def empty(self, name: str, size: int, dtype: DTypeLike) -> Any:
        """Return an array of the program, with any values."""
        import cupy

        return cupy.empty(size, dtype)

    def filled(self, name: str, values: Any) -> Any:
        """Return an array of the program with these values."""
        return copies.sent(values) if isinstance(values, np.ndarray) else values

    def control(self) -> tuple[Any, Any]:
        """Return state, zeroed, and scratch of one number per block."""
        block = self.empty("control", CONTROL_WORDS, np.uint64)
        block.fill(0)
        return block[:STATE_WORDS], block[STATE_WORDS:].view(np.int64)

    def phase(self, name: str) -> AbstractContextManager[Any]:
        """Run a phase of the program inside the block."""
        return nullcontext()

    def sorting(self) -> AbstractContextManager[bool]:
        """Enter a phase in which the device may sort; yields whether it has room for that."""
        return nullcontext(True)

    def get(self, name: str, array: Any) -> Any:
        """Return the values of an array of the program, in host memory."""
        return copies.fetched(array)


PLAIN: Final = Workspace()


class Block:
    """A part of an array, free again when nothing refers to it."""

    def __init__(self, blocks: FreeList, nbytes: int) -> None:
        self.blocks, self.offset = blocks, blocks.take(nbytes)

    def __del__(self) -> None:
        if self.offset is not None:
            self.blocks.give(self.offset)


class PlacedWorkspace(Workspace):
    """Arrays of a Placer that has been solved."""

    def __init__(self, place: Placer) -> None:
        self.place = place

    def empty(self, name: str, size: int, dtype: DTypeLike) -> Any:
        """Return the array of this name; the program has declared its size."""
        slot = self.place.slots[name]
        if slot.spec.size != size or slot.spec.dtype != np.dtype(dtype):
            declared = f"{slot.spec.size:,} {slot.spec.dtype}"
            raise AssertionError(f"array {name!r}: {size:,} {np.dtype(dtype)}, not {declared}")
        return slot.array

    def filled(self, name: str, values: Any) -> Any:
        """Return the array of this name, written by the side where it lives."""
        array = self.empty(name, values.size, values.dtype)
        self.place.fill(name, values)
        return array

    def phase(self, name: str) -> AbstractContextManager[Any]:
        """Run a phase of the program: it is announced, and its kernels have ended afterwards."""
        return self.place.phase(name)

    @contextmanager
    def sorting(self) -> Iterator[bool]:
        """Give CuPy's functions the array "sorting" to work in, if it is on the device."""
        slot = self.place.slots["sorting"]
        there = slot.placement is not None and slot.placement.on_device == 1
        if self.place.backend.room() is None or not there:
            yield False
            return
        import cupy

        with self.place.phase("sort"):
            begin, device = int(slot.array.data.ptr), slot.array.device.id
            blocks = FreeList(slot.spec.nbytes)

            def take(nbytes: int) -> Any:
                block = Block(blocks, nbytes)
                if block.offset is None:  # more than was foreseen: a few bytes of the device's own
                    return cupy.cuda.MemoryPointer(cupy.cuda.Memory(nbytes), 0)
                address = begin + block.offset
                memory = cupy.cuda.UnownedMemory(address, nbytes, block, device)
                return cupy.cuda.MemoryPointer(memory, 0)

            with cupy.cuda.using_allocator(take):  # a pool of CuPy's would keep itself alive
                yield True

    def get(self, name: str, array: Any) -> Any:
        """Return a copy in host memory; what lives there does not cross the bus."""
        with announcing("fetch"):
            return self.place.get(name).view(array.dtype)


@contextmanager
def placed(
    program: Program, graph: Any, device: str, memory: str | Policy, options: Options
) -> Iterator[tuple[KernelRows, Workspace]]:
    """Yield the rows of a graph, and a workspace, where a policy puts them."""
    sources = {
        "offsets": graph.offsets,
        "targets": graph.targets,
        "weights": unsigned(graph.weights),
        "loops": unsigned(graph.loops),
    }
    with Placer(
        options.budget, memory=memory, device=device, peer_memory=options.peer_memory,
        phases=program.phases, name=program.name, feedback=False,
    ) as place:  # fmt: skip
        place.declare(program, sources)
        with announcing("load"):
            plan = place.solve()
        slices: tuple[Slice, ...] = ()
        if plan.launches > 1:
            offsets = graph.offsets if isinstance(graph, Graph) else graph.offsets.get()
            slices = launches_for(plan, graph.n_vertices, offsets=offsets)

        def bring(part: Slice, names: tuple[str, ...]) -> int:
            begin, end = int(offsets[part.begin]), int(offsets[part.end])
            for name in names:
                if sources[name] is not None:
                    place.fill(name, sources[name][begin:end])
            return begin

        arrays = {name: slot.array for name, slot in place.slots.items()}
        rows = KernelRows(
            begins=arrays["offsets"][:-1],
            ends=arrays["offsets"][1:],
            targets=arrays.get("targets"),
            weights=arrays.get("weights"),
            loops=arrays.get("loops"),
            n_arcs=graph.n_arcs,
            total_weight=graph.total_weight,
            pages=plan.pages_per_warp("targets", "weights"),
            on_demand=all(
                plan.placements[name].kind == "managed"
                for name in ("targets", "weights")
                if name in arrays
            ),
            slices=slices,
            bring=bring if slices else None,
        )
        yield rows, PlacedWorkspace(place)


STATE_WORDS: Final = 8
"""Of the control block, for barriers and counters; partial sums of blocks follow."""

CONTROL_WORDS: Final = 2048
"""Of the control block. An H200 holds 1,056 blocks of so many threads at once."""

NULL: Final = np.uint64(0)

FIELDS: Final = {"n": np.int64, **pointers("begins", "ends", "targets", "weights")}
ROW_VIEW: Final = layout(**FIELDS)
"""`RowView` of row_view.cuh."""

HOST_ROWS: Final = layout(**FIELDS, pages=np.uint32, group_bytes=np.uint32)
"""`HostRows` of host_rows.cuh."""

LINKED_ROWS: Final = layout(**FIELDS, linked=np.int64)
"""`LinkedRows` of linked_rows.cuh."""

LISTS: Final = "firsts", "places", "owners"
LISTED_ROWS: Final = layout(**FIELDS, linked=np.int64, **pointers(*LISTS))
"""`ListedRows` of linked_rows.cuh."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRows:
    """The rows of a graph in the memory of the current device, or slices of them that `bring`."""

    begins: Any
    ends: Any
    targets: Any
    weights: Any
    loops: Any
    n_arcs: int
    total_weight: int
    pages: int = 0
    on_demand: bool = False
    linked: int = 0
    """How rows are linked, for kernels that walk them; 0 for contiguous rows."""
    lists: tuple[Any, ...] = ()
    """The blocks of a frontier's linked rows, for `ListedRows`."""
    slices: tuple[Slice, ...] = ()
    bring: Callable[[Slice, tuple[str, ...]], int] | None = None

    def parts(self, *names: str) -> Iterator[tuple[KernelRows, int]]:
        """Yield rows for each launch, with these arrays on the device, and where they begin."""
        if self.bring is None:
            yield self, 0
            return
        for part in self.slices:
            arc, rows = self.bring(part, names), slice(part.begin, part.end)
            yield replace(
                self, begins=self.begins[rows], ends=self.ends[rows],
                targets=shifted(self.targets, arc), weights=shifted(self.weights, arc),
                loops=from_row(self.loops, part.begin), bring=None,
            ), part.begin  # fmt: skip

    def arrived(self) -> KernelRows:
        """Return the rows after a pass over all: what came on demand is on the device now."""
        return replace(self, pages=0) if self.on_demand else self

    @classmethod
    def of(cls, graph: Any) -> KernelRows:
        """Return a view of a graph's compressed rows."""
        return cls(
            begins=graph.offsets[:-1],
            ends=graph.offsets[1:],
            targets=graph.targets,
            weights=graph.weights,
            loops=graph.loops,
            n_arcs=graph.n_arcs,
            total_weight=graph.total_weight,
        )

    @property
    def n_vertices(self) -> int:
        """Number of vertices, isolated ones included."""
        return len(self.begins)

    @property
    def types(self) -> str:
        """The type of weights, as kernels are named by it."""
        if self.weights is None:
            return "Unweighted"
        return "u32" if self.weights.itemsize == 4 else "u64"

    @property
    def kind(self) -> str:
        """Of rows, as kernels are named by it that are made for rows in host memory, too."""
        if self.lists:
            return "ListedRows"
        return "HostRows" if self.pages else "LinkedRows" if self.linked else "RowView"

    @property
    def anywhere(self) -> KernelRows:
        """Return the same rows for kernels that read all memory alike."""
        return replace(self, pages=0)

    def argument(self, *, weighted: bool = True) -> Any:
        """Return the structure that kernels take of rows of this kind."""
        fields = {
            "n": self.n_vertices,
            "begins": self.begins,
            "ends": self.ends,
            "targets": self.targets,
            "weights": self.weights if weighted else None,
        }
        if self.lists:
            lists = dict(zip(LISTS, self.lists, strict=True))
            return Struct(LISTED_ROWS, **fields, linked=self.linked, **lists).argument
        if self.linked:
            return Struct(LINKED_ROWS, **fields, linked=self.linked).argument
        if not self.pages:
            return Struct(ROW_VIEW, **fields).argument
        mean = 4 * 32 * self.n_arcs // max(1, self.n_vertices)
        blocking = {"pages": self.pages, "group_bytes": min(max(1, mean), PAGE)}
        return Struct(HOST_ROWS, **fields, **blocking).argument

    @property
    def loops_argument(self) -> Any:
        """Return the loops, or a null pointer."""
        return NULL if self.loops is None else self.loops


class Shifted(int):
    """The address at which item 0 would be, of an array that begins with a later one."""

    itemsize: int


def shifted(array: Any, first: int) -> Shifted | None:
    """Return where item 0 of an array would be that begins with this item; None for none."""
    if array is None:
        return None
    found = Shifted(launch.address(array) - first * array.itemsize)
    found.itemsize = array.itemsize
    return found


def from_row(array: Any, first: int) -> Any:
    """Return an array from this item on; None for none."""
    return array[first:] if first and array is not None else array
