"""Ouroboros on a GPU: `malloc` and `free` for threads of kernels of one's own.

The allocator is `louvain_um/gpu/ouroboros/ouroboros.cuh`; this is its face on the host. (Winter,
Mlakar, Parger, Steinberger: Ouroboros, ICS 2020.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from louvain_um.dynamic.stores.ouro_heap import CHUNKS, PAGES, HeapShape
from louvain_um.errors import MemoryBudgetError, OptionError, check_choice
from louvain_um.gpu.runtime.launch import Struct, layout, pointers

HEADERS: Final = Path(__file__).parents[2] / "gpu/ouroboros"
"""Folder of ``ouroboros.cuh`` and of what it includes."""

VARIANTS: Final = ("s-p", "s-c", "va-p", "va-c", "vl-p", "vl-c")
"""Queues as rings (s), virtualised arrays (va) or lists (vl), of pages (p) or of chunks (c)."""

LEAST_BYTES: Final = 1 << 20
LEAST_CHUNKS: Final = 32
LEAST_RING: Final = 1 << 10
DEFAULT_RING: Final = 1 << 20
"""Entries of a ring of pages, unless the heap is small; it holds a chunk's pages at least."""

SEMAPHORE: Final = np.dtype(
    {
        "names": ["value", "grants", "orders", "begun", "failures"],
        "formats": [np.int64, np.int64, np.uint64, np.uint64, np.uint64],
        "itemsize": 128,
    }
)
QUEUE: Final = np.dtype(
    {
        "names": ["available", "room", "front", "back", "segments"],
        "formats": [SEMAPHORE, SEMAPHORE, np.uint64, np.uint64, np.uint64],
        "offsets": [0, 128, 256, 384, 512],
        "itemsize": 640,
    }
)


def control_of(classes: int) -> np.dtype[Any]:
    """Return `Control` of ouroboros.cuh, as far as the host reads it, for sizes of pages."""
    kinds = np.uint64, np.uint32, np.uint32, np.uint32, np.uint64, np.uint64, (QUEUE, classes)
    return np.dtype(
        {
            "names": ["bytes", "kind", "classes", "chunks", "cut", "free", "queues"],
            "formats": [*kinds],
            "offsets": [0, 8, 12, 136, 144, 256, 384],
            "itemsize": 384 + classes * QUEUE.itemsize,
        }
    )


def most_chunks(shape: HeapShape) -> int:
    """Return how many chunks a heap may have: an entry of a queue of pages has 32 bits."""
    return (1 << 32) // shape.most_pages - 1


LAYOUT: Final = layout(
    **pointers("memory"), bytes=np.uint64, kind=np.uint32, chunks=np.uint32,
    free_entries=np.uint64, entries=np.uint64, free_at=np.uint64, entries_at=np.uint64,
    chunks_at=np.uint64,
)  # fmt: skip
"""`Layout` of ouroboros.cu."""

HEAP: Final = layout(**pointers("control"))
"""`Ouroboros` of ouroboros.cuh, all variants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeapStatistics:
    """What a heap's memory holds, in chunks and in pages.

    Parameters
    ----------
    nbytes : int
        The whole memory.
    chunks : int
        Chunks that it has room for.
    page_chunks : tuple of int
        Chunks cut into pages of each size, `shape.page_bytes`.
    queue_chunks : int
        Chunks that hold entries of queues.
    free_pages : tuple of int
        Pages of each size that are free on chunks cut for it.
    shape : HeapShape
        Sizes of chunks and pages.
    """

    nbytes: int
    chunks: int
    page_chunks: tuple[int, ...]
    queue_chunks: int
    free_pages: tuple[int, ...]
    shape: HeapShape = field(default_factory=HeapShape)

    @property
    def used_pages(self) -> tuple[int, ...]:
        """Pages of each size that are allocated."""
        return tuple(
            chunks * (self.shape.chunk // size) - free
            for chunks, size, free in zip(
                self.page_chunks, self.shape.page_bytes, self.free_pages, strict=True
            )
        )

    @property
    def used_bytes(self) -> int:
        """Bytes of allocated pages."""
        sizes = self.shape.page_bytes
        return sum(count * size for count, size in zip(self.used_pages, sizes, strict=True))

    @property
    def free_chunks(self) -> int:
        """Chunks that hold nothing."""
        return self.chunks - sum(self.page_chunks) - self.queue_chunks

    @property
    def overhead_bytes(self) -> int:
        """Bytes that can never be a page's: headers, rings, tables, and chunks of queues."""
        return self.nbytes - (self.chunks - self.queue_chunks) * self.shape.chunk

    @property
    def usable_share(self) -> float:
        """Share of the memory that pages can have."""
        return 1 - self.overhead_bytes / self.nbytes


class Ouroboros:
    """A heap in the memory of the current GPU, for kernels that include ``ouroboros.cuh``.

    A kernel takes `argument` by value, as the type `struct`, and calls
    ``void* malloc(unsigned long long bytes) const`` and ``void free(void*) const``. Memory is
    aligned to 16 bytes. `malloc` returns null if no memory is left, and for 0 bytes or more than a
    chunk has. It needs compute capability 7.0, where threads of a warp wait for each other.

    Parameters
    ----------
    nbytes : int
        Bytes to manage, taken at once: at least 1 MiB and 32 chunks, and at most 64 GiB, or with
        a larger `page` as many times more.
    variant : str
        One of `VARIANTS`.
    memory : uint8[nbytes] on the device, optional
        What to manage; by default memory of its own.
    ring : int, optional
        Entries of each ring, for ``"s-p"``: free pages that one size's queue holds, a power of two
        of at least 1024. Others are marked in their chunks, which takes longer. Default: 2²⁰, and
        fewer in small heaps, for at most 2 % of the memory.
    chunk : int
        Bytes of a chunk, and of the largest page: a power of two from 1024 to 65536.
    page : int
        Bytes of the smallest page: a power of two from 16 to 512.

    Attributes
    ----------
    argument : void[()]
        What kernels take.
    handle : Struct
        The same, for launches of this package.
    chunks : int
        Chunks that the memory has room for.
    struct : str
        Its type in kernels, as ``OuroVLP``.
    include : str
        A line to put before a kernel.
    options : tuple of str
        Options to compile it with.

    Raises
    ------
    OptionError
        No such variant, or a size out of bounds.
    MemoryBudgetError
        The device has less memory free.

    Examples
    --------
    >>> import cupy  # doctest: +SKIP
    >>> from louvain_um.dynamic.stores.ouroboros import Ouroboros
    >>> heap = Ouroboros(1 << 28, "va-p")  # doctest: +SKIP
    >>> code = heap.include + '''
    ... extern "C" __global__ void fill(OuroVAP heap, int** rows) {
    ...   const int own = blockIdx.x * blockDim.x + threadIdx.x;
    ...   rows[own] = (int*)heap.malloc(4 * (own % 100 + 1));
    ... }'''  # doctest: +SKIP
    >>> fill = cupy.RawKernel(code, "fill", options=heap.options)  # doctest: +SKIP
    >>> rows = cupy.zeros(1 << 16, cupy.uint64)  # doctest: +SKIP
    >>> fill((256,), (256,), (heap.argument, rows))  # doctest: +SKIP
    >>> heap.statistics().used_bytes  # doctest: +SKIP
    16987328
    """

    def __init__(
        self,
        nbytes: int,
        variant: str = "vl-p",
        *,
        ring: int | None = None,
        chunk: int = 8192,
        page: int = 16,
        memory: Any = None,
        device: Any = None,
    ) -> None:
        check_choice("variant", variant, VARIANTS)
        if ring is not None and (ring < LEAST_RING or ring & (ring - 1)):
            raise OptionError("ring", ring, f"must be a power of two of at least {LEAST_RING}")
        for name, value, known in (("chunk", chunk, CHUNKS), ("page", page, PAGES)):
            if value not in known:
                raise OptionError(name, value, f"must be one of {', '.join(map(str, known))}")
        self.shape = HeapShape(chunk=chunk, page=page)
        self.variant, self.ring = variant, ring
        self.struct = f"Ouro{variant.replace('-', '').upper()}"
        self.include = '#include "ouroboros.cuh"\n'
        sizes = f"-DOUROBOROS_CHUNK={chunk}", f"-DOUROBOROS_PAGE={page}"
        self.options = ("--std=c++17", f"-I{HEADERS}", *(sizes if self.shape.front else ()))
        self._device = device or _cuda()
        self._place(int(nbytes), memory)
        self.reinitialise()

    def reinitialise(self, nbytes: int | None = None) -> None:
        """Begin anew, with all memory free: what was allocated is void.

        Parameters
        ----------
        nbytes : int, optional
            Bytes to manage from now on. Kernels take the new `argument`.

        Raises
        ------
        OptionError
            A size out of bounds.
        MemoryBudgetError
            The device has less memory free. The heap then is as it was.
        """
        if nbytes is not None:
            self._place(int(nbytes), None)
        self._launch("clear_heap", "", self.chunks * 32, self._layout)
        self._launch("begin_heap", "", 1, self._layout)

    def moved(self, memory: Any) -> None:
        """Go on in other memory, to which all of the heap has been copied.

        Addresses of what was allocated move by the same distance. Kernels take the new `argument`.

        Parameters
        ----------
        memory : uint8[nbytes] on the device
        """
        self._place(self.nbytes, memory)
        self._launch("move_heap", "", 1, self._layout)

    def malloc(self, sizes: Any) -> Any:
        """Allocate memory from the host: many pieces at once, by a thread each.

        Parameters
        ----------
        sizes : uint64[n] on the device
            Bytes of each.

        Returns
        -------
        uint64[n] on the device
            Addresses; 0 where there was no memory.
        """
        sizes = self._device.xp.ascontiguousarray(sizes, np.uint64)
        found = self._device.xp.zeros(sizes.size, np.uint64)
        count = np.uint64(sizes.size)
        self._launch("malloc_each", self.struct, sizes.size, self.handle, count, sizes, found)
        return found

    def free(self, addresses: Any) -> None:
        """Free memory from the host.

        Parameters
        ----------
        addresses : uint64[n] on the device
            As kernels' or this class' `malloc` returned them; those of 0 are passed over.
        """
        addresses = self._device.xp.ascontiguousarray(addresses, np.uint64)
        count = np.uint64(addresses.size)
        self._launch("free_each", self.struct, addresses.size, self.handle, count, addresses)

    def statistics(self) -> HeapStatistics:
        """Return what the memory holds, while no kernel uses the heap."""
        xp = self._device.xp
        kinds, marked = xp.zeros(64, np.uint64), xp.zeros(64, np.uint64)
        self._launch("survey_heap", "", self.chunks, self.handle, kinds, marked)
        classes = len(self.shape.page_bytes)
        layout = control_of(classes)
        control = self._device.get(self._memory[: layout.itemsize]).view(layout)[0]
        counts = [int(count) for count in self._device.get(kinds)]
        free = [int(count) for count in self._device.get(marked)]
        if self.variant.endswith("p"):
            # Those in a queue of pages are marked nowhere.
            queued = control["queues"]["available"]["value"]
            free[: len(queued)] = [int(f + q) for f, q in zip(free, queued, strict=False)]
        return HeapStatistics(
            nbytes=self.nbytes,
            chunks=self.chunks,
            page_chunks=tuple(counts[:classes]),
            queue_chunks=counts[33],
            free_pages=tuple(free[:classes]),
            shape=self.shape,
        )

    def _place(self, nbytes: int, memory: Any) -> None:
        """Divide memory, taken here if none is given."""
        places = _places(nbytes, self.variant, self.ring, self.shape)
        self._memory = self._empty(nbytes) if memory is None else memory
        self.nbytes, self.chunks = nbytes, places["chunks"]
        address = np.uint64(self._device.address(self._memory))
        self._layout = Struct(LAYOUT, memory=address, bytes=nbytes, **places)
        self.handle = Struct(HEAP, control=address)
        self.argument = self.handle.argument

    def _launch(self, kernel: str, types: str, items: int, *args: Any) -> None:
        self._device.launch("ouroboros", kernel, types, items, *args, front=self.shape.front)

    def _empty(self, nbytes: int) -> Any:
        """Return memory of the device."""
        try:
            return self._device.xp.empty(nbytes, np.uint8)
        except MemoryError:  # of CuPy, too
            free = self._device.free_bytes()
            remedy = "ask for fewer bytes, or free other memory of the device"
            raise MemoryBudgetError(nbytes, free, [("heap", nbytes)], remedy) from None

    def __repr__(self) -> str:
        return f"Ouroboros({self.nbytes}, {self.variant!r})"


def _cuda() -> Any:
    """Return the current device."""
    from louvain_um.gpu.dynamic.cuda import CudaDevice
    from louvain_um.gpu.runtime.device import pick

    pick("cuda")
    return CudaDevice()


def _places(nbytes: int, variant: str, ring: int | None, shape: HeapShape) -> dict[str, int]:
    """Return how memory is divided: fields of `LAYOUT`."""
    stride, least = shape.stride, max(LEAST_BYTES, LEAST_CHUNKS * shape.stride)
    if nbytes < least:
        raise OptionError("nbytes", nbytes, f"must be at least {least}")
    control = control_of(len(shape.page_bytes)).itemsize
    chunks, least = (nbytes - control) // stride, max(LEAST_RING, shape.most_pages)
    queueing, what = variant.split("-")
    while True:
        free_entries = 1 << (chunks - 1).bit_length()
        if queueing == "s":
            fitting = 1 << ((4 * chunks).bit_length() - 1)
            entries = ring or max(least, min(fitting, DEFAULT_RING))
            entries = free_entries if what == "c" else entries
        else:
            # More chunks than the queue's entries fill, however many pages are free.
            most = 4 * chunks // (shape.page if what == "p" else shape.chunk) + 64
            entries = 1 << (most - 1).bit_length() if queueing == "va" else 1
        entries_at = control + 4 * free_entries
        end = entries_at + len(shape.page_bytes) * entries * (4 if queueing == "s" else 8)
        chunks_at = -(-end // 128) * 128
        excess = chunks_at + chunks * stride - nbytes
        if excess <= 0:
            break
        chunks -= -(-excess // stride)
        if chunks < LEAST_CHUNKS:
            raise OptionError("ring", entries, f"leaves no memory of {nbytes} bytes for chunks")
    if chunks > most_chunks(shape):
        raise OptionError("nbytes", nbytes, f"must be at most {most_chunks(shape) * stride}")
    return {
        "kind": ("s", "va", "vl").index(queueing),
        "chunks": chunks,
        "free_entries": free_entries,
        "entries": entries,
        "free_at": control,
        "entries_at": entries_at,
        "chunks_at": chunks_at,
    }
