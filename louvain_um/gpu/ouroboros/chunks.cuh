// Ouroboros' memory: chunks with a header each, those free, and the pages free on one. Sizes are those
// of `HeapShape` in dynamic/stores/ouro_heap.py, which defines them in front where they are others.
#pragma once
#include "semaphore.cuh"

#ifndef OUROBOROS_CHUNK
#define OUROBOROS_CHUNK 8192
#endif
#ifndef OUROBOROS_PAGE
#define OUROBOROS_PAGE 16
#endif
#ifndef OUROBOROS_ENTRIES
#define OUROBOROS_ENTRIES (OUROBOROS_CHUNK / 4)
#endif

namespace ouroboros {

constexpr u32 CHUNK = OUROBOROS_CHUNK, LEAST = OUROBOROS_PAGE;
constexpr u32 MOST_PAGES = CHUNK / LEAST, MASKS = (MOST_PAGES + 31) / 32;
constexpr u32 HEADER = (40 + 4 * MASKS + 127) / 128 * 128, STRIDE = CHUNK + HEADER;
// Entries of a queue that lie in one chunk.
constexpr u32 ENTRIES = OUROBOROS_ENTRIES;

__device__ constexpr u32 log2_of(u32 x) { return x <= 1 ? 0 : 1 + log2_of(x / 2); }
// Pages of class k take LEAST · 2^k bytes.
constexpr u32 CLASSES = log2_of(MOST_PAGES) + 1;

__device__ __forceinline__ u32 bytes_of(u32 size_class) { return LEAST << size_class; }
__device__ __forceinline__ u32 pages_of(u32 size_class) { return MOST_PAGES >> size_class; }

// What a chunk is; below CLASSES, pages of that class.
constexpr u32 FREE = 32, QUEUE = 33;

// The state of a chunk with pages: how many are marked as free, in 16 bits; where the chunk is
// found; and a tag, its class and its position there. An OUT chunk with free pages is about to be
// put somewhere, by the thread that freed the first.
constexpr u64 COUNT = 0xFFFF, OUT = 0, QUEUED = 1ull << 16, PARKED = 2ull << 16, WHERE = 3ull << 16;
constexpr u32 TAG = 18;

__device__ __forceinline__ u64 tagged(u64 where, u64 position, u32 size_class) {
  return where | (position * 16 + size_class) << TAG;
}
__device__ __forceinline__ u64 position_of(u64 state) { return state >> TAG >> 4; }

struct Chunk {
  u32 kind;
  u32 next;           // the chunk below on a stack
  u64 state;
  u64 segment;        // of chunks that hold a queue: its queue and number
  u32 link;           // the segment after it
  u32 taken, filled;  // entries of the segment taken from it, and put into it
  u32 padding;
  u32 mask[MASKS];    // free pages, one bit each
};
static_assert(sizeof(Chunk) <= HEADER, "the header holds a chunk's data");

// A stack of chunks, linked through their headers: its changes in the upper half, the top below.
using Stack = u64;
constexpr Stack EMPTY_STACK = NONE;

// Free chunks, or other things by number: a ring with room for all.
struct alignas(128) FreeChunks {
  u64 count;
  u64 front, back;
  u32* ring;
  u64 mask;

  // Returns the one that was freed first; NONE if none is free.
  __device__ u32 take() {
    if (!take_one(&count)) return NONE;
    u32* at = &ring[add_together(&front, 1) & mask];
    u32 number;
    Wait wait;
    while ((number = atomicExch(at, NONE)) == NONE) wait();
    __threadfence();
    return number;
  }

  __device__ void give(u32 number) {
    __threadfence();
    u32* at = &ring[add_together(&back, 1) & mask];
    Wait wait;
    while (atomicCAS(at, NONE, number) != NONE) wait();
    add_together(&count, 1);
  }
};

struct alignas(128) Chunks {
  char* first;  // the first chunk's header
  u32 count;    // chunks that the memory holds
  u32 padding;
  u64 cut;      // chunks used so far; beyond the count where threads found no more
  FreeChunks free;

  __device__ __forceinline__ Chunk& header(u32 chunk) const {
    return *(Chunk*)(first + (u64)chunk * STRIDE);
  }
  __device__ __forceinline__ char* data(u32 chunk) const {
    return first + (u64)chunk * STRIDE + HEADER;
  }
  __device__ __forceinline__ u32* entry(u32 chunk, u32 place) const {
    return (u32*)data(chunk) + place;
  }

  // Returns a chunk, NONE if there is no more.
  __device__ u32 take() {
    const u32 again = free.take();
    if (again != NONE) return again;
    if (load(&cut) >= count) return NONE;
    const u64 fresh = add_together(&cut, 1);
    return fresh < count ? (u32)fresh : NONE;
  }

  __device__ void give(u32 chunk) {
    header(chunk).kind = FREE;
    free.give(chunk);
  }

  __device__ void push(Stack* stack, u32 chunk) {
    Stack top = load(stack);
    while (true) {
      atomicExch(&header(chunk).next, (u32)top);
      __threadfence();
      const Stack seen = atomicCAS(stack, top, ((top >> 32) + 1) << 32 | chunk);
      if (seen == top) return;
      top = seen;
    }
  }

  __device__ u32 pop(Stack* stack) {
    Stack top = load(stack);
    while ((u32)top != NONE) {
      const u32 next = load(&header((u32)top).next);
      const Stack seen = atomicCAS(stack, top, ((top >> 32) + 1) << 32 | next);
      if (seen == top) break;
      top = seen;
    }
    __threadfence();
    return (u32)top;
  }

  // Marks a page as free, before it is counted.
  __device__ void mark(u32 chunk, u32 page) {
    atomicOr(&header(chunk).mask[page / 32], 1u << page % 32);
    __threadfence();
  }

  // Takes a page from the count of a chunk if its state has this tag; whatever led to the chunk may
  // be outdated. `last` is true for one of those that took the last pages: the state of the chunk
  // is then `left`.
  __device__ bool take_counted(u32 chunk, u64 tag, u64 left, bool& last) {
    u64* at = &header(chunk).state;
    const u64 state = load(at), held = state & COUNT;
    const bool here = held && (state & ~COUNT) == tag;
    const Peers peers((u64)at + here);
    u32 taken = 0;
    last = false;
    if (here && peers.leads()) {
      const u64 most = held < peers.count ? held : peers.count;
      if (atomicCAS(at, state, most == held ? left : state - most) == state) {
        taken = (u32)most;
        last = most == held;
      }
    }
    return peers.rank < peers.from_leader(taken);
  }

  // Takes a free page that was taken from the count, so that there is one. Lanes begin at
  // different bits.
  __device__ u32 unmark(u32 chunk, u32 size_class) {
    __threadfence();
    u32* mask = header(chunk).mask;
    const u32 words = (pages_of(size_class) + 31) / 32, turn = lane();
    for (u32 word = turn % words;; word = (word + 1) % words) {
      u32 seen = load(&mask[word]);
      while (seen) {
        const u32 bit = (__ffs(__funnelshift_r(seen, seen, turn)) - 1 + turn) % 32;
        const u32 before = atomicAnd(&mask[word], ~(1u << bit));
        if (before >> bit & 1) return word * 32 + bit;
        seen = before;
      }
    }
  }

  // Makes a chunk one of pages of a class.
  __device__ void cut_into_pages(u32 chunk, u32 size_class) {
    header(chunk).kind = size_class;
    __threadfence();
  }

  // Marks all pages of a chunk as free and counts them; it must be put somewhere.
  __device__ void mark_all(u32 chunk, u32 size_class) {
    Chunk& own = header(chunk);
    const u32 pages = pages_of(size_class);
    for (u32 word = 0; word * 32 < pages; ++word) {
      own.mask[word] = pages - word * 32 >= 32 ? ~0u : (1u << pages % 32) - 1;
    }
    __threadfence();
    atomicExch(&own.state, (u64)pages);
  }
};

}  // namespace ouroboros
