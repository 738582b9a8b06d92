"""From communities to the next level's graph on the device: launches `aggregate.cu`.

The twin of `louvain_um.cpu.aggregate`; only the order of neighbours in a row differs.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from louvain_um.gpu.carry import carry_labels
from louvain_um.gpu.compile import Kernels
from louvain_um.gpu.launch import THREADS, grid_for
from louvain_um.gpu.level import GpuLevel
from louvain_um.gpu.memory import DeviceAllocator
from louvain_um.ledger import Group

BOUNDS: Final = 17
"""Bounds of chunks that the device returns: one more than there may be chunks."""

SLOTS: Final = {4: 4096, 8: 2048}
"""Slots of a block's table in shared memory, by size of the sums in bytes."""

STATE: Final = np.dtype(
    [
        ("barrier", np.uint32, 2),
        ("tickets", np.uint32, 4),
        *(
            (name, np.uint64)
            for name in ("vertices", "room", "widest_room", "chunk_room", "arcs", "widest")
        ),
        ("inside", np.uint64),
        ("squares", np.uint64, 3),
        ("bounds", np.uint64, BOUNDS),
    ]
)
"""`State` of aggregate.cu."""

TICKETS: Final = 8
"""Where in `State` the numbers are that must be zero for each chunk; 16 bytes."""

JOB: Final = (
    "n", "k", "first", "last", "base", "chunk", "capacity", "offsets", "targets", "weights",
    "loops", "degrees", "numbers", "members", "starts", "before", "rooms", "room_targets",
    "room_weights", "new_offsets", "new_targets", "new_weights", "new_loops", "new_degrees",
    "middles", "giants", "keys", "sums", "state", "partials",
)  # fmt: skip
"""`Job` of aggregate.cu; each field takes 8 bytes."""

PACKED: Final = np.dtype((np.void, 8 * len(JOB)))
"""A `Job` as CuPy takes it fastest: it looks at every field of a structure at each launch."""

ALIGNED: Final = 256
"""Bytes to whose multiples parts of an array are aligned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Which levels are aggregated how.

    Parameters
    ----------
    small : int
        Levels of at most so many vertices and arcs take one launch and one read-back.
    chunk : int
        Arcs whose rows have room at a time: so many at least, or a quarter of the level's.
    arcs_a_slot : int
        The tables of giants have a slot for so many arcs of the level, and so many at least
        as the widest community needs.
    """

    small: int = 1 << 19
    chunk: int = 1 << 22
    arcs_a_slot: int = 16


LIMITS: Final = Limits()


def slots_for(communities: int) -> int:
    """Return the slots of a table for so many distinct communities (`table.cuh`)."""
    return 32 if communities <= 16 else 2 << (communities - 1).bit_length()


class Job:
    """Arguments of the kernels, and the arrays behind them."""

    def __init__(self, kernels: Kernels, memory: DeviceAllocator, level: GpuLevel) -> None:
        self.kernels = kernels
        self.memory = memory
        self.level = level
        self.names: list[str] = []
        self.partials = 0
        self.values = dict.fromkeys(JOB, 0)
        self.state = self.scratch("state", STATE.itemsize, np.uint8)
        self.state.data.memset_async(0, STATE.itemsize)
        given = ("offsets", "targets", "weights", "loops", "degrees")
        self.set(n=level.vertices, **{name: getattr(level, name) for name in given})

    def set(self, **values: Any) -> None:
        """Set arguments: numbers, arrays, or None for a null pointer."""
        for name, value in values.items():
            self.values[name] = value if isinstance(value, int) else _address(value)

    def scratch(self, name: str, size: int, dtype: Any, group: Group = "scratch") -> Any:
        """Return an array that `close` frees, set as the argument of its name."""
        array = self.memory.empty(f"aggregate {name}", group, size, dtype)
        self.names.append(f"aggregate {name}")
        self.set(**{name: array})
        return array

    def carve(self, **sizes: int) -> None:
        """Set arguments to parts, of so many bytes, of one array that `close` frees."""
        rounded = {name: -(-size // ALIGNED) * ALIGNED for name, size in sizes.items()}
        whole = self.memory.empty("aggregate", "scratch", sum(rounded.values()), np.uint8)
        self.names.append("aggregate")
        at = _address(whole)
        for name, size in rounded.items():
            self.values[name] = at
            at += size

    def drop(self, *names: str) -> None:
        """Free arrays before the end."""
        for name in names:
            self.names.remove(f"aggregate {name}")
            self.memory.free(f"aggregate {name}")

    def close(self) -> None:
        """Free what is left."""
        self.memory.free(*self.names)
        self.names.clear()

    def prepare(self, name: str) -> tuple[Any, int]:
        """Return a kernel and its grid; there is a partial sum for each block of it."""
        kernel = self.kernels.get("aggregate", name, self.level.types)
        return kernel, grid_for(self.kernels, kernel, self.level)

    def launch(self, name: str) -> None:
        """Run a kernel, with room for a partial sum of each block."""
        kernel, blocks = self.prepare(name)
        if not self.values["partials"] or 0 < self.partials < blocks:
            if self.partials:
                self.drop("partials")
            self.scratch("partials", blocks, np.uint64)
            self.partials = blocks
        packed = np.frombuffer(struct.pack(f"{len(JOB)}Q", *self.values.values()), PACKED)
        kernel((blocks,), (THREADS,), (packed.reshape(()),))

    def read(self) -> Any:
        """Wait for the device and return its `State`."""
        return self.state.get().view(STATE)[0]


def aggregate(
    kernels: Kernels, memory: DeviceAllocator, level: GpuLevel, limits: Limits = LIMITS
) -> GpuLevel:
    """Return the next level; vertices that share a label (or part) become one.

    Overwrites `labels` (or `parts`) with the vertices' numbers on the next level, and leaves
    them as `numbers`.
    """
    n, arcs = level.vertices, level.arcs
    numbers = level.labels if level.parts is None else level.parts
    job = Job(kernels, memory, level)
    job.set(numbers=numbers)
    small = max(n, arcs) <= limits.small
    coarse = at_once(job, level) if small else in_chunks(job, level, limits)
    if level.parts is not None:
        tag = f"{coarse.cycle}.{coarse.number}"
        coarse.start = memory.empty(f"start.{tag}", "community", coarse.vertices, np.uint32)
        carry_labels(kernels, memory, level, numbers, coarse.start)
    level.numbers, level.parts = numbers, None
    return coarse


def at_once(job: Job, level: GpuLevel) -> GpuLevel:
    """Aggregate a small level with one launch; arrays are as long as they could have to be."""
    n, arcs, number = level.vertices, level.arcs, level.number + 1
    empty, sums = job.memory.empty, level.sums
    width = np.dtype(sums).itemsize
    middles, giants, slots = tables(width, n, arcs, arcs)
    job.carve(
        members=4 * (n + 1),
        starts=4 * (n + 1),
        before=8 * (n + 1),
        rooms=8 * (n + 1),
        room_targets=4 * arcs,
        room_weights=width * arcs,
        middles=4 * middles,
        giants=4 * giants,
        keys=4 * slots,
        sums=width * slots,
        partials=8 * job.prepare("aggregate_small")[1],
    )
    job.set(capacity=slots)
    arrays = {
        "offsets": empty(f"offsets.{number}", "graph", n + 1, np.int64),
        "targets": empty(f"targets.{number}", "graph", arcs, np.uint32),
        "weights": empty(f"weights.{number}", "graph", arcs, sums),
        "loops": empty(f"loops.{number}", "graph", n, sums),
        "degrees": empty(f"degrees.{number}", "community", n, sums),
    }
    job.set(**{f"new_{name}": array for name, array in arrays.items()})
    job.launch("aggregate_small")
    state = job.read()
    job.close()
    k, kept = int(state["vertices"]), int(state["arcs"])
    sizes = {"offsets": k + 1, "targets": kept, "weights": kept, "loops": k, "degrees": k}
    return finish(level, state, {name: arrays[name][:size] for name, size in sizes.items()})


def in_chunks(job: Job, level: GpuLevel, limits: Limits) -> GpuLevel:
    """Aggregate a large level, a stretch of communities at a time, in arrays of exact length."""
    memory, number, sums = job.memory, level.number + 1, level.sums
    empty, n = memory.empty, level.vertices
    job.scratch("members", n + 1, np.uint32)
    job.scratch("starts", n + 1, np.uint32)
    job.scratch("before", n + 1, np.int64)
    job.launch("group_members")
    k = int(job.read()["vertices"])
    offsets = empty(f"offsets.{number}", "graph", k + 1, np.int64)
    loops = empty(f"loops.{number}", "graph", k, sums)
    degrees = empty(f"degrees.{number}", "community", k, sums)
    chunk = max(limits.chunk, -(-level.arcs // 4), -(-level.arcs // (BOUNDS - 1)), 1)
    job.set(k=k, chunk=chunk, new_offsets=offsets, new_loops=loops, new_degrees=degrees)
    job.scratch("rooms", k + 1, np.int64)
    job.launch("sum_members")
    state = job.read()

    job.scratch("room_targets", int(state["chunk_room"]), np.uint32)
    job.scratch("room_weights", int(state["chunk_room"]), sums)
    widest = int(state["widest_room"])
    width = np.dtype(sums).itemsize
    middles, giants, slots = tables(width, k, widest, level.arcs)
    if slots:
        slots = max(slots, level.arcs // limits.arcs_a_slot)
    job.scratch("middles", middles, np.uint32)
    job.scratch("giants", giants, np.uint32)
    job.scratch("keys", slots, np.uint32, "hash")
    job.scratch("sums", slots, sums, "hash")
    job.set(capacity=slots)
    bounds = sorted({0, *state["bounds"].tolist()})
    chunks = list(pairwise(bounds))
    pieces = list[tuple[str, Any, Any]]()
    base = 0
    for first, last in chunks:
        tag = f"{number}" if len(chunks) == 1 else f"{number}.{first}"
        if first:
            (job.state.data + TICKETS).memset_async(0, 16)
        job.set(first=first, last=last, base=base)
        job.launch("sum_arcs")
        state = job.read()
        size = int(state["arcs"]) - base
        targets = empty(f"targets.{tag}", "graph", size, np.uint32)
        weights = empty(f"weights.{tag}", "graph", size, sums)
        job.set(new_targets=targets, new_weights=weights)
        job.launch("move_arcs")
        pieces.append((tag, targets, weights))
        base += size
    job.close()
    targets, weights = pieces[0][1:]
    if len(pieces) > 1:
        del targets, weights
        parts = [(tag, piece) for tag, piece, _ in pieces]
        others = [(tag, piece) for tag, _, piece in pieces]
        pieces.clear()
        targets = join(memory, "targets", number, parts, base)
        weights = join(memory, "weights", number, others, base)
    arrays = {"offsets": offsets, "targets": targets, "weights": weights, "loops": loops}
    return finish(level, state, {**arrays, "degrees": degrees})


def tables(width: int, k: int, widest: int, arcs: int) -> tuple[int, int, int]:
    """Return the entries that lists and tables need, for communities too large for a warp.

    Parameters
    ----------
    width : int
        Bytes of a sum.
    k, widest, arcs : int
        Communities, most arcs of one, and arcs of all; or more.

    Returns
    -------
    middles, giants, slots : int
        Communities for a block, and for the grid; slots of the largest giant's table.
    """
    # The fewest arcs with which a table of a warp or a block can turn out too small.
    block = SLOTS[width] // 4 * 3
    warp = block // 8
    slots = slots_for(min(k, widest)) if widest >= block else 0
    return min(k, arcs // warp) + 1, min(k, arcs // block) + 1, slots


def join(
    memory: DeviceAllocator, name: str, number: int, pieces: list[tuple[str, Any]], size: int
) -> Any:
    """Return pieces as one array; empties the list, and so frees them."""
    whole = memory.empty(f"{name}.{number}", "graph", size, pieces[0][1].dtype)
    at = 0
    while pieces:
        tag, piece = pieces.pop(0)
        if len(piece):
            whole[at:].data.copy_from_device_async(piece.data, piece.nbytes)
        at += len(piece)
        memory.free(f"{name}.{tag}")
    return whole


def finish(level: GpuLevel, state: Any, arrays: dict[str, Any]) -> GpuLevel:
    """Return the next level."""
    return GpuLevel(
        cycle=level.cycle,
        number=level.number + 1,
        vertices=int(state["vertices"]),
        arcs=int(state["arcs"]),
        sums=level.sums,
        inside=int(state["inside"]),
        squares=squares(state),
        widest=int(state["widest"]),
        **arrays,
    )


def prepare(kernels: Kernels, memory: DeviceAllocator, level: GpuLevel) -> None:
    """Set `inside`, `squares` and `widest` of a level in which every vertex is alone."""
    job = Job(kernels, memory, level)
    job.launch("sum_level")
    state = job.read()
    job.close()
    level.inside, level.widest = int(state["inside"]), int(state["widest"])
    level.squares = squares(state)


def squares(state: Any) -> int:
    """Return a sum of 128 bits from its three parts."""
    low, middle, high = state["squares"].tolist()
    return int(low + (middle << 32) + (high << 64))


def _address(array: Any) -> int:
    address: int = 0 if array is None else array.data.ptr
    return address
