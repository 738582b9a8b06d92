// Where the entries of a queue lie: in a ring, or in chunks of the heap, found through an array or
// along links.
//
// Positions count on and are handed out in order, to those that hold a unit of `room`, or of what
// the queue holds. `to_fill` and `to_empty` return the entry at such a position; `peek` returns
// that at any position, or null: it may be outdated, and is read only.
#pragma once
#include "chunks.cuh"

namespace ouroboros {

// What a queue has instead of an entry's value: nothing, or nothing any more.
constexpr u32 REMOVED = NONE - 1;

struct alignas(128) Queue {
  Semaphore available;  // free pages that the queue leads to
  Semaphore room;       // entries that may be added
  alignas(128) u64 front;
  alignas(128) u64 back;
  alignas(128) u64 segments;  // chunks that were appended
  u64 reading, writing, last;  // segments: the first one with entries, with gaps, and the last
  u64 sweeping;
  Stack parked;  // chunks with free pages for which the queue has no room
  u32* ring;
  u64* table;
  u64 mask;
  u32 size_class, padding;
};

struct Entry {
  u32* at;
  u32 chunk;
};

__device__ __forceinline__ u64 segment(u32 number, u32 chunk) { return (u64)number << 32 | chunk; }

// A chunk becomes a segment of a queue without entries.
__device__ inline void begin_segment(Chunks& chunks, u32 chunk, u32 size_class, u32 number) {
  u64* entries = (u64*)chunks.entry(chunk, 0);
  for (u32 i = 0; i < ENTRIES / 2; ++i) entries[i] = ~0ull;
  Chunk& own = chunks.header(chunk);
  own.kind = QUEUE;
  own.link = NONE;
  own.taken = own.filled = 0;
  own.segment = segment(number, size_class + 1);
  __threadfence();
}

// The entries of a ring that was there from the start; if it is full, pages are parked.
struct Ring {
  __device__ static bool acquire_room(Chunks&, Queue& queue, u64 units) {
    return queue.room.try_acquire(units);
  }
  // Adjacent entries from this position on.
  __device__ static u64 run(Queue& queue, u64 position) {
    return queue.mask + 1 - (position & queue.mask);
  }
  __device__ static Entry to_fill(Chunks&, Queue& queue, u64 position) {
    return {&queue.ring[position & queue.mask], NONE};
  }
  __device__ static Entry to_empty(Chunks& chunks, Queue& queue, u64 position) {
    return to_fill(chunks, queue, position);
  }
  __device__ static u32* peek(Chunks& chunks, Queue& queue, u64 position) {
    return to_fill(chunks, queue, position).at;
  }
  __device__ static void filled(Chunks&, Queue&, Entry, u32) {}
  __device__ static void emptied(Chunks&, Queue& queue, Entry, u64) { queue.room.release_one(); }
  __device__ static void begin(Chunks&, Queue& queue) { queue.room.begin(queue.mask + 1); }
};

// Entries in chunks, whose numbers are in a table. A number in front of each tells a segment from
// an older one at the same place.
struct Array {
  __device__ static bool acquire_room(Chunks& chunks, Queue& queue, u64 units) {
    return queue.room.acquire(
        units, ENTRIES, [&] { return append(chunks, queue); }, [] { return false; });
  }
  __device__ static u64 run(Queue&, u64 position) { return ENTRIES - position % ENTRIES; }
  __device__ static Entry to_fill(Chunks& chunks, Queue& queue, u64 position) {
    const u32 number = (u32)(position / ENTRIES);
    u64 found;
    Wait wait;
    while (found = load(place(queue, number)), (u32)(found >> 32) != number || (u32)found == NONE)
      wait();
    __threadfence();
    return {chunks.entry((u32)found, position % ENTRIES), (u32)found};
  }
  __device__ static Entry to_empty(Chunks& chunks, Queue& queue, u64 position) {
    return to_fill(chunks, queue, position);
  }
  __device__ static u32* peek(Chunks& chunks, Queue& queue, u64 position) {
    const u64 found = load(place(queue, (u32)(position / ENTRIES)));
    if ((u32)(found >> 32) != (u32)(position / ENTRIES) || (u32)found == NONE) return nullptr;
    return chunks.entry((u32)found, position % ENTRIES);
  }
  __device__ static void filled(Chunks&, Queue&, Entry, u32) {}
  __device__ static void emptied(Chunks& chunks, Queue& queue, Entry entry, u64 position) {
    if (atomicAdd(&chunks.header(entry.chunk).taken, 1u) != ENTRIES - 1) return;
    atomicExch(place(queue, (u32)(position / ENTRIES)), ~0ull);
    chunks.give(entry.chunk);
  }
  __device__ static void begin(Chunks& chunks, Queue& queue) { append(chunks, queue); }

 private:
  __device__ static u64* place(Queue& queue, u32 number) {
    return &queue.table[number & queue.mask];
  }
  __device__ static u64 append(Chunks& chunks, Queue& queue) {
    if (load(place(queue, (u32)load(&queue.segments))) != ~0ull) return 0;  // the table is full
    const u32 chunk = chunks.take();
    if (chunk == NONE) return 0;
    const u32 number = (u32)atomicAdd(&queue.segments, 1ull);
    begin_segment(chunks, chunk, queue.size_class, number);
    Wait wait;
    while (atomicCAS(place(queue, number), ~0ull, segment(number, chunk)) != ~0ull) wait();
    queue.room.release(ENTRIES);
    return ENTRIES;
  }
};

// Entries in chunks, each of which links to the next one.
//
// Threads walk from the segment of `reading` or `writing` along links to that of their position. A
// segment of which every entry has been read is freed at once, and its chunk may get another use: a
// thread whose walk has reached it finds another number in the chunk's header, and begins anew.
// `reading` and `writing` have moved on to later segments before one is freed.
struct List {
  __device__ static bool acquire_room(Chunks& chunks, Queue& queue, u64 units) {
    return queue.room.acquire(
        units, ENTRIES, [&] { return append(chunks, queue); }, [] { return false; });
  }
  __device__ static u64 run(Queue&, u64 position) { return ENTRIES - position % ENTRIES; }
  __device__ static Entry to_fill(Chunks& chunks, Queue& queue, u64 position) {
    return find(chunks, queue, &queue.writing, position, true);
  }
  __device__ static Entry to_empty(Chunks& chunks, Queue& queue, u64 position) {
    return find(chunks, queue, &queue.reading, position, true);
  }
  __device__ static u32* peek(Chunks& chunks, Queue& queue, u64 position) {
    return find(chunks, queue, &queue.reading, position, false).at;
  }
  __device__ static void filled(Chunks& chunks, Queue& queue, Entry entry, u32 count) {
    if (atomicAdd(&chunks.header(entry.chunk).filled, count) == ENTRIES - count) {
      advance(chunks, queue);
    }
  }
  __device__ static void emptied(Chunks& chunks, Queue& queue, Entry entry, u64) {
    if (atomicAdd(&chunks.header(entry.chunk).taken, 1u) == ENTRIES - 1) advance(chunks, queue);
  }
  __device__ static void begin(Chunks& chunks, Queue& queue) {
    const u32 chunk = chunks.take();
    begin_segment(chunks, chunk, queue.size_class, 0);
    queue.reading = queue.writing = queue.last = segment(0, chunk);
    queue.segments = 1;
    queue.room.begin(ENTRIES);
  }

 private:
  // Reads the segment after one; false if that one is in other use by now.
  __device__ static bool next(Chunks& chunks, Queue& queue, u64 from, u64& to) {
    Chunk& own = chunks.header((u32)from);
    const u32 link = load(&own.link);
    __threadfence();
    to = segment((u32)(from >> 32) + 1, link);
    return load(&own.segment) == segment((u32)(from >> 32), queue.size_class + 1);
  }

  __device__ static Entry find(Chunks& chunks, Queue& queue, const u64* from, u64 position,
                               bool waits) {
    const u32 number = (u32)(position / ENTRIES);
    u64 at = load(from), after;
    Wait wait;
    while ((u32)(at >> 32) != number) {
      if ((int)(number - (u32)(at >> 32)) < 0) return {nullptr, NONE};
      if (!next(chunks, queue, at, after)) {
        at = load(from);
      } else if ((u32)after != NONE) {
        at = after;
      } else if (waits) {
        wait();
      } else {
        return {nullptr, NONE};
      }
    }
    __threadfence();
    return {chunks.entry((u32)at, position % ENTRIES), (u32)at};
  }

  __device__ static u64 append(Chunks& chunks, Queue& queue) {
    const u32 chunk = chunks.take();
    if (chunk == NONE) return 0;
    const u32 number = (u32)atomicAdd(&queue.segments, 1ull);
    begin_segment(chunks, chunk, queue.size_class, number);
    u64 before;
    Wait wait;
    while (before = load(&queue.last), (u32)(before >> 32) != number - 1) wait();
    atomicExch(&chunks.header((u32)before).link, chunk);
    atomicExch(&queue.last, segment(number, chunk));
    advance(chunks, queue);
    queue.room.release(ENTRIES);
    return ENTRIES;
  }

  // Moves both ends past segments that are full, or read out. Called by the thread that makes one so
  // and by the thread that links one; each goes on until the ends need not move.
  __device__ static void advance(Chunks& chunks, Queue& queue) {
    u64 after;
    while (true) {
      __threadfence();
      const u64 at = load(&queue.writing);
      if (load(&chunks.header((u32)at).filled) < ENTRIES) break;
      if (!next(chunks, queue, at, after)) continue;
      if ((u32)after == NONE) break;
      atomicCAS(&queue.writing, at, after);
    }
    while (true) {
      __threadfence();
      const u64 at = load(&queue.reading);
      if (load(&chunks.header((u32)at).taken) < ENTRIES) break;
      if (!next(chunks, queue, at, after)) continue;
      if ((u32)after == NONE) break;
      atomicCAS(&queue.writing, at, after);
      if (atomicCAS(&queue.reading, at, after) != at) continue;
      atomicExch(&chunks.header((u32)at).segment, 0ull);
      chunks.give((u32)at);
    }
  }
};

}  // namespace ouroboros
