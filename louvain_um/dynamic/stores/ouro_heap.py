"""Ouroboros: a heap of chunks, cut into pages of 16 bytes to 8 KiB, and queues of what is free.

Two things vary. Queues hold single free pages, or chunks that have some. And a queue is a ring of
fixed size, or virtualised: its entries lie in chunks of the same heap, found through an array of
chunk numbers, or linked. (Winter, Mlakar, Parger, Steinberger: Ouroboros, ICS 2020.)

This is its bookkeeping on the host, for the stores of `ouro.py`: the same chunks, headers and
queues, without concurrency. The allocator of a GPU is `louvain_um.dynamic.ouroboros`.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from louvain_um.dynamic.stores.free_blocks import Queue
from louvain_um.dynamic.stores.store import I64, U32

CHUNK_WORDS: Final = 8192 // 4
HEADER_WORDS: Final = 128 // 4
STRIDE: Final = CHUNK_WORDS + HEADER_WORDS
"""Words from one chunk to the next: pages and a header."""

LEAST_WORDS: Final = 4
"""Words of the smallest page: 16 bytes."""

PAGE_CLASSES: Final = 10
"""Sizes of pages, 16 bytes · 2ᵏ up to a whole chunk. Longer rows take several chunks in a row."""

CAPACITIES: Final = np.array(
    [LEAST_WORDS << k for k in range(PAGE_CLASSES)]
    + [(STRIDE << k) - HEADER_WORDS for k in range(1, 21)],
    np.int64,
)
"""Words that a page or a run of chunks of each class holds."""

RING_ENTRIES: Final = 1 << 16
"""Entries of a ring of fixed size."""

Queueing = Literal["s", "va", "vl"]


class Heap:
    """Chunks by number, and runs of neighbouring ones: those freed last are used first."""

    def __init__(self) -> None:
        self.chunks = 0
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


class RingQueue(Queue):
    """A ring of fixed size, outside the heap; it is doubled when it is full, as at a new start."""

    def chunks(self) -> list[int]:
        """Return the chunks of the heap that hold the queue."""
        return []

    @property
    def nbytes(self) -> int:
        """Bytes outside the heap."""
        return self.ring.nbytes


class ChunkedQueue(Queue):
    """A queue whose entries lie in chunks of the heap: taken as it grows, freed as it drains.

    ``linked`` chunks lead on from one to the next; otherwise an array of chunk numbers finds them.
    """

    def __init__(self, heap: Heap, *, linked: bool) -> None:
        super().__init__()
        self.heap, self.linked, self.segments = heap, linked, deque[int]()

    def extend(self, items: U32) -> None:
        """Append items."""
        super().extend(items)
        begin = self.front // CHUNK_WORDS * CHUNK_WORDS
        while len(self.segments) * CHUNK_WORDS < self.back - begin:
            self.segments.append(self.heap.take())

    def pop(self, count: int) -> U32:
        """Take the first items; a segment that they leave is freed."""
        before, items = self.front // CHUNK_WORDS, super().pop(count)
        for _ in range(self.front // CHUNK_WORDS - before):
            self.heap.give(self.segments.popleft())
        return items

    def chunks(self) -> list[int]:
        """Return the chunks of the heap that hold the queue."""
        return list(self.segments)

    @property
    def nbytes(self) -> int:
        """Bytes outside the heap: the array of chunk numbers, or both ends of the chain."""
        return 8 if self.linked else 4 * max(1, len(self.segments))


class PageAllocator:
    """Pages of any class: taken from queues of pages, or of chunks with free pages."""

    def __init__(self, queueing: Queueing, *, by_chunk: bool) -> None:
        self.heap = Heap()
        self.by_chunk = by_chunk
        self.queues: list[RingQueue | ChunkedQueue] = [
            RingQueue(RING_ENTRIES)
            if queueing == "s"
            else ChunkedQueue(self.heap, linked=queueing == "vl")
            for _ in range(PAGE_CLASSES)
        ]
        self.masks: dict[int, NDArray[np.bool_]] = {}
        """Free pages of each chunk that is cut into pages: the mask in its header."""

    def take(self, size_class: int, count: int) -> I64:
        """Return the first word of each of `count` pages."""
        if size_class >= PAGE_CLASSES:
            run = 1 << (size_class - PAGE_CLASSES + 1)
            chunks = np.array([self.heap.take(run) for _ in range(count)], np.int64)
            return chunks * STRIDE + HEADER_WORDS
        take = self._take_of_chunks if self.by_chunk else self._take_pages
        pages = take(size_class, count).astype(np.int64)
        per_chunk = CHUNK_WORDS // LEAST_WORDS
        inside = pages % per_chunk * int(CAPACITIES[size_class])
        return pages // per_chunk * STRIDE + HEADER_WORDS + inside

    def give(self, size_class: int, begins: I64) -> None:
        """Free pages by their first words."""
        if size_class >= PAGE_CLASSES:
            run = 1 << (size_class - PAGE_CLASSES + 1)
            for chunk in (begins // STRIDE).tolist():
                self.heap.give(chunk, run)
            return
        chunks = begins // STRIDE
        places = (begins - chunks * STRIDE - HEADER_WORDS) // int(CAPACITIES[size_class])
        if not self.by_chunk:
            pages = chunks * (CHUNK_WORDS // LEAST_WORDS) + places
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
        queue, pages = self.queues[size_class], CHUNK_WORDS // int(CAPACITIES[size_class])
        per_chunk = CHUNK_WORDS // LEAST_WORDS
        while len(queue) < count:
            chunk = self.heap.take()
            queue.extend((chunk * per_chunk + np.arange(pages)).astype(np.uint32))
        return queue.pop(count)

    def _take_of_chunks(self, size_class: int, count: int) -> U32:
        """Take pages of the chunk at the queue's front; it leaves the queue with its last page."""
        queue, pages = self.queues[size_class], CHUNK_WORDS // int(CAPACITIES[size_class])
        per_chunk = CHUNK_WORDS // LEAST_WORDS
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
            found.append((chunk * per_chunk + places).astype(np.uint32))
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
        per_chunk, words = CHUNK_WORDS // LEAST_WORDS, int(CAPACITIES[size_class])
        if size_class >= PAGE_CLASSES:
            run = 1 << (size_class - PAGE_CLASSES + 1)
            chunks = np.array(self.heap.runs.get(run, []), np.int64)
            return chunks * STRIDE + HEADER_WORDS
        queue = self.queues[size_class]
        if self.by_chunk:
            chunks = queue.peek(len(queue)).astype(np.int64)
            pages = [c * per_chunk + np.flatnonzero(self.masks[int(c)]) for c in chunks]
            held = np.concatenate([np.zeros(0, np.int64), *pages])
        else:
            held = queue.peek(len(queue)).astype(np.int64)
        begins: I64 = held // per_chunk * STRIDE + HEADER_WORDS + held % per_chunk * words
        return begins

    @property
    def queue_bytes(self) -> int:
        """Bytes of queues outside the heap."""
        return sum(queue.nbytes for queue in self.queues)
