"""Ouroboros: a heap of chunks, cut into pages of powers of two, and queues of what is free.

Two things vary. Queues hold single free pages, or chunks that have some. And a queue is a ring of
fixed size, or virtualised: its entries lie in chunks of the same heap, found through an array of
chunk numbers, or linked. (Winter, Mlakar, Parger, Steinberger: Ouroboros, ICS 2020.)

This is its bookkeeping on the host, for the stores of `ouro.py`: the same chunks, headers and
queues, without concurrency. The allocator of a GPU is `louvain_um.dynamic.stores.ouroboros`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from louvain_um.dynamic.stores.blocks import Queue
from louvain_um.dynamic.stores.store import I64, U32

CHUNKS: Final = tuple(1 << k for k in range(10, 17))
"""Sizes of chunks that there may be, in bytes."""

PAGES: Final = tuple(1 << k for k in range(4, 10))
"""Sizes of smallest pages that there may be, in bytes."""


@dataclass(frozen=True, kw_only=True)
class HeapShape:
    """Sizes of a heap's parts, in bytes.

    Parameters
    ----------
    chunk : int
        One of `CHUNKS`.
    page : int
        The smallest page, one of `PAGES`; others are as large by powers of two, up to a chunk.

    Examples
    --------
    >>> from louvain_um.dynamic.stores.ouro_heap import HeapShape
    >>> HeapShape().stride, HeapShape(chunk=65536).stride, len(HeapShape(page=256).page_bytes)
    (8320, 66176, 6)
    """

    chunk: int = 8192
    page: int = 16

    @classmethod
    def of(cls, options: Mapping[Any, Any]) -> HeapShape:
        """Return what options of a store say of the heap."""
        return cls(**{name: options[name] for name in ("chunk", "page") if name in options})

    @property
    def most_pages(self) -> int:
        """Pages of a chunk, at most."""
        return self.chunk // self.page

    @property
    def header(self) -> int:
        """Bytes before the pages of a chunk: 40, a bit for each page, and unused ones."""
        return -(-(40 + 4 * -(-self.most_pages // 32)) // 128) * 128

    @property
    def stride(self) -> int:
        """Bytes from one chunk to the next."""
        return self.chunk + self.header

    @cached_property
    def page_bytes(self) -> tuple[int, ...]:
        """Sizes of pages. Longer rows take several chunks in a row."""
        return tuple(self.page << k for k in range(self.most_pages.bit_length()))

    @cached_property
    def capacities(self) -> I64:
        """Words that a page or a run of chunks of each class holds."""
        runs = [(self.stride << k) - self.header for k in range(1, 21)]
        return np.array([*self.page_bytes, *runs], np.int64) // 4

    @property
    def front(self) -> str:
        """What is defined before the kernels of such a heap; nothing for the usual one."""
        if self == HeapShape():
            return ""
        return f"#define OUROBOROS_CHUNK {self.chunk}\n#define OUROBOROS_PAGE {self.page}\n"


RING_ENTRIES: Final = 1 << 16
"""Entries of a ring of fixed size."""

Queueing = Literal["s", "va", "vl"]


class Heap:
    """Chunks by number, and runs of neighbouring ones: those freed last are used first."""

    def __init__(self, shape: HeapShape) -> None:
        self.chunks, self.chunk_words = 0, shape.chunk // 4
        self.runs: dict[int, list[int]] = {1: []}

    @property
    def free(self) -> list[int]:
        """Free single chunks."""
        return self.runs[1]

    def take(self, count: int = 1) -> int:
        """Return a chunk, or the first of `count` neighbouring ones."""
        if self.runs.get(count):
            return self.runs[count].pop()
        self.chunks += count
        return self.chunks - count

    def give(self, chunk: int, count: int = 1) -> None:
        """Free a chunk, or neighbouring ones, for a run of the same length."""
        self.runs.setdefault(count, []).append(chunk)


class HeapQueue(Queue):
    """A queue of a heap: a ring outside it, doubled when full as at a new start; or chunks."""

    # Chunks are taken as the queue grows, and freed as it drains; an array of their numbers finds
    # them, or they lead on from one to the next.

    def __init__(self, heap: Heap, how: Queueing) -> None:
        super().__init__(RING_ENTRIES if how == "s" else 1)
        self.heap, self.how, self.segments = heap, how, deque[int]()

    def extend(self, items: U32) -> None:
        """Append items."""
        super().extend(items)
        words, begin = self.heap.chunk_words, self.front // self.heap.chunk_words
        while self.how != "s" and (begin + len(self.segments)) * words < self.back:
            self.segments.append(self.heap.take())

    def pop(self, count: int) -> U32:
        """Take the first items; a segment that they leave is freed."""
        before, items = self.front // self.heap.chunk_words, super().pop(count)
        for _ in range(min(self.front // self.heap.chunk_words - before, len(self.segments))):
            self.heap.give(self.segments.popleft())
        return items

    @property
    def nbytes(self) -> int:
        """Bytes outside the heap: the ring, the array of numbers, or both ends of the chain."""
        if self.how == "s":
            return self.ring.nbytes
        return 8 if self.how == "vl" else 4 * max(1, len(self.segments))


class PageAllocator:
    """Pages of any class: taken from queues of pages, or of chunks with free pages."""

    def __init__(
        self, queueing: Queueing, *, by_chunk: bool, shape: HeapShape = HeapShape()
    ) -> None:
        self.heap, self.shape, self.by_chunk = Heap(shape), shape, by_chunk
        self.classes, self.per_chunk = len(shape.page_bytes), shape.most_pages
        self.stride, self.header = shape.stride // 4, shape.header // 4
        self.queues = [HeapQueue(self.heap, queueing) for _ in shape.page_bytes]
        self.masks: dict[int, NDArray[np.bool_]] = {}
        """Free pages of each chunk that is cut into pages: the mask in its header."""

    def take(self, size_class: int, count: int) -> I64:
        """Return the first word of each of `count` pages."""
        if size_class >= self.classes:
            run = 1 << (size_class - self.classes + 1)
            chunks = np.array([self.heap.take(run) for _ in range(count)], np.int64)
            return chunks * self.stride + self.header
        take = self._take_of_chunks if self.by_chunk else self._take_pages
        return self._begins(take(size_class, count).astype(np.int64), size_class)

    def give(self, size_class: int, begins: I64) -> None:
        """Free pages by their first words."""
        chunks = begins // self.stride
        if size_class >= self.classes:
            for chunk in chunks.tolist():
                self.heap.give(chunk, 1 << (size_class - self.classes + 1))
            return
        places = begins - chunks * self.stride - self.header
        places //= self.shape.capacities[size_class]
        if not self.by_chunk:
            pages = chunks * self.per_chunk + places
            self.queues[size_class].extend(pages.astype(np.uint32))
            return
        for chunk, place in zip(chunks.tolist(), places.tolist(), strict=True):
            mask = self.masks[chunk]
            if not mask.any():
                self.queues[size_class].extend(np.array([chunk], np.uint32))
            mask[place] = True
        self._release(size_class)

    def _take_pages(self, size_class: int, count: int) -> U32:
        """Take pages from their queue; cut new chunks if it runs out."""
        queue, pages = self.queues[size_class], self.per_chunk >> size_class
        while len(queue) < count:
            chunk = self.heap.take()
            queue.extend((chunk * self.per_chunk + np.arange(pages)).astype(np.uint32))
        return queue.pop(count)

    def _take_of_chunks(self, size_class: int, count: int) -> U32:
        """Take pages of the chunk at the queue's front; it leaves the queue with its last page."""
        queue, pages = self.queues[size_class], self.per_chunk >> size_class
        found: list[U32] = [np.zeros(0, np.uint32)]
        while count:
            if not len(queue):
                chunk = self.heap.take()
                self.masks[chunk] = np.ones(pages, np.bool_)
                queue.extend(np.array([chunk], np.uint32))
            chunk = int(queue.peek(1)[0])
            mask = self.masks[chunk]
            places = np.flatnonzero(mask)[:count]
            mask[places] = False
            if not mask.any():
                queue.pop(1)
            found.append((chunk * self.per_chunk + places).astype(np.uint32))
            count -= len(places)
        return np.concatenate(found)

    def _release(self, size_class: int) -> None:
        """Return chunks at the queue's front to the heap if all their pages are free."""
        queue = self.queues[size_class]
        while len(queue) > 1 and self.masks[chunk := int(queue.peek(1)[0])].all():
            queue.pop(1)
            del self.masks[chunk]
            self.heap.give(chunk)

    def free_begins(self, size_class: int) -> I64:
        """Return the first words of all free pages of a class."""
        if size_class >= self.classes:
            run = 1 << (size_class - self.classes + 1)
            chunks = np.array(self.heap.runs.get(run, []), np.int64)
            return chunks * self.stride + self.header
        queue = self.queues[size_class]
        if self.by_chunk:
            chunks = queue.peek(len(queue)).astype(np.int64)
            pages = [c * self.per_chunk + np.flatnonzero(self.masks[int(c)]) for c in chunks]
            held = np.concatenate([np.zeros(0, np.int64), *pages])
        else:
            held = queue.peek(len(queue)).astype(np.int64)
        return self._begins(held, size_class)

    def _begins(self, pages: I64, size_class: int) -> I64:
        """Return the first words of pages by their numbers."""
        begins = pages // self.per_chunk * self.stride + self.header
        found: I64 = begins + pages % self.per_chunk * self.shape.capacities[size_class]
        return found

    @property
    def queue_bytes(self) -> int:
        """Bytes of queues outside the heap."""
        return sum(queue.nbytes for queue in self.queues)
