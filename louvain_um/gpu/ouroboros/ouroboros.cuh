// Ouroboros: malloc and free for threads of a kernel, in six variants.
//
//   extern "C" __global__ void example(OuroVLP heap) {
//     int* numbers = (int*)heap.malloc(100 * sizeof(int));  // null: no memory is left
//     if (numbers) { ...; heap.free(numbers); }
//   }
//
// Pages of 16 bytes to 8 KiB (OUROBOROS_PAGE, OUROBOROS_CHUNK), powers of two, are cut from chunks; a
// queue per size leads to those that are free. It is a ring (S), or lies in chunks itself, found
// through an array (VA) or along links (VL); it holds pages (P), or chunks with free pages (C).
// (Winter, Mlakar, Parger, Steinberger: Ouroboros, ICS 2020.) Free pages for which a queue has no
// room are marked in their chunk's header, and the chunk is put on a stack: no page is lost.
#pragma once
#include "queues.cuh"

namespace ouroboros {

struct Control {
  u64 bytes;  // of the whole memory
  u32 kind;   // of queues: 0 rings, 1 arrays, 2 lists
  u32 classes;
  Chunks chunks;
  Queue queues[CLASSES];
};

// What both ways to find pages have in common.
template <class Where>
struct Pages {
  Chunks& chunks;
  Queue& queue;

  __device__ u32 pages() const { return pages_of(queue.size_class); }
  __device__ u64 parked_tag() const { return tagged(PARKED, 0, queue.size_class); }

  // Puts a chunk with free pages on the stack, by the thread that may.
  __device__ void park(u32 chunk) {
    atomicAdd(&chunks.header(chunk).state, parked_tag());
    chunks.push(&queue.parked, chunk);
  }

  // Returns a page of the chunk on top of the stack; NONE if there is no stack, or none is free.
  __device__ u32 take_parked() {
    const u32 chunk = (u32)load(&queue.parked);
    bool last;
    if (chunk == NONE || !chunks.take_counted(chunk, parked_tag(), parked_tag(), last)) return NONE;
    return chunk * MOST_PAGES + chunks.unmark(chunk, queue.size_class);
  }

  // Removes chunks without free pages from the top of the stack; returns the pages on the next.
  __device__ u64 uncover() {
    while (true) {
      const u32 top = (u32)load(&queue.parked);
      if (top == NONE) return 0;
      if (const u64 count = load(&chunks.header(top).state) & COUNT) return count;
      const u32 chunk = chunks.pop(&queue.parked);
      if (chunk == NONE) return 0;
      u64* state = &chunks.header(chunk).state;
      if (atomicCAS(state, parked_tag(), OUT) != parked_tag()) chunks.push(&queue.parked, chunk);
    }
  }

  // Writes items to positions that are this thread's, several at a time.
  template <class F>
  __device__ void put(u64 position, u32 count, F item) {
    constexpr u32 TOGETHER = 8;
    for (u32 done = 0; done < count;) {
      const u32 left = (u32)Where::run(queue, position + done);
      const u32 run = count - done < left ? count - done : left;
      const Entry entry = Where::to_fill(chunks, queue, position + done);
      for (u32 begin = 0; begin < run; begin += TOGETHER) {
        u32 late = 0;
#pragma unroll
        for (u32 i = 0; i < TOGETHER; ++i) {
          if (begin + i < run && atomicCAS(entry.at + begin + i, NONE, item(done + begin + i)) != NONE)
            late |= 1u << i;
        }
        for (Wait wait; late; late &= late - 1) {
          const u32 i = begin + __ffs(late) - 1;
          while (atomicCAS(entry.at + i, NONE, item(done + i)) != NONE) wait();
        }
      }
      Where::filled(chunks, queue, entry, run);
      done += run;
    }
  }
};

// Queues of pages: an entry is chunk · MOST_PAGES + page.
template <class Where>
struct QueueOfPages : Pages<Where> {
  using Pages<Where>::chunks;
  using Pages<Where>::queue;

  __device__ u32 take() {
    u32 parked = NONE;
    const bool queued = queue.available.acquire(
        1, this->pages(), [&] { return grow(); },
        [&] { return (parked = this->take_parked()) != NONE; });
    if (!queued) return parked;
    const u64 position = add_together(&queue.front, 1);
    const Entry entry = Where::to_empty(chunks, queue, position);
    u32 item;
    Wait wait;
    while ((item = atomicExch(entry.at, NONE)) == NONE) wait();
    __threadfence();
    Where::emptied(chunks, queue, entry, position);
    return item;
  }

  __device__ void give(u32 chunk, u32 page) {
    if (Where::acquire_room(chunks, queue, 1)) {
      const u64 position = add_together(&queue.back, 1);
      this->put(position, 1, [=](u32) { return chunk * MOST_PAGES + page; });
      queue.available.release_one();
      return;
    }
    chunks.mark(chunk, page);
    if (add_together(&chunks.header(chunk).state, 1) == OUT) this->park(chunk);
  }

 private:
  // Makes pages available, if any can be; returns how many.
  __device__ u64 grow() {
    if (const u64 parked = this->uncover()) return parked;
    const u32 chunk = chunks.take(), count = this->pages();
    if (chunk == NONE) return 0;
    chunks.cut_into_pages(chunk, queue.size_class);
    if (Where::acquire_room(chunks, queue, count)) {
      const u64 position = atomicAdd(&queue.back, (u64)count);
      queue.available.release(count);
      this->put(position, count, [=](u32 page) { return chunk * MOST_PAGES + page; });
    } else {
      chunks.mark_all(chunk, queue.size_class);
      this->park(chunk);
    }
    return count;
  }
};

// Queues of chunks with free pages: threads take pages of the first ones that they find some on,
// and the one that takes the last page removes the chunk.
template <class Where>
struct QueueOfChunks : Pages<Where> {
  using Pages<Where>::chunks;
  using Pages<Where>::queue;

  __device__ u32 take() {
    u32 parked = NONE;
    const bool queued = queue.available.acquire(
        1, this->pages(), [&] { return grow(); },
        [&] { return (parked = this->take_parked()) != NONE; });
    if (!queued) return parked;
    // There is a page for this thread on one of the chunks in the queue.
    for (Wait wait;; wait()) {
      const u64 back = load(&queue.back);
      for (u64 position = load(&queue.front); position < back; ++position) {
        u32* at = Where::peek(chunks, queue, position);
        const u32 chunk = at ? load(at) : NONE;
        bool last;
        if (chunk < chunks.count && chunks.take_counted(chunk, tag(position), OUT, last)) {
          if (last) remove(chunk, position);
          const u32 page = chunks.unmark(chunk, queue.size_class);
          __threadfence();
          return chunk * MOST_PAGES + page;
        }
      }
    }
  }

  __device__ void give(u32 chunk, u32 page) {
    chunks.mark(chunk, page);
    const u64 before = add_together(&chunks.header(chunk).state, 1), where = before & WHERE;
    if (where == QUEUED) {
      queue.available.release_one();
      if ((before & COUNT) + 1 == this->pages()) give_back(chunk);
    } else if (where == OUT && (before & COUNT) == 0) {
      if (!enqueue(chunk)) this->park(chunk);
    }
  }

 private:
  // The tag of a chunk at a position; a chunk is nowhere else while its state has it.
  __device__ u64 tag(u64 position) const { return tagged(QUEUED, position, queue.size_class); }

  // Removes a chunk from its position, and the first positions of the queue if they are empty.
  __device__ void remove(u32 chunk, u64 position) {
    const Entry entry = Where::to_empty(chunks, queue, position);
    Wait wait;
    while (atomicCAS(entry.at, chunk, REMOVED) != chunk) wait();
    while (true) {
      __threadfence();
      const u64 first = load(&queue.front);
      u32* at = Where::peek(chunks, queue, first);
      if (!at || load(at) != REMOVED || atomicCAS(&queue.sweeping, 0ull, 1ull)) return;
      sweep();
      __threadfence();
      atomicExch(&queue.sweeping, 0ull);
    }
  }

  // By one thread at a time, so that the first position stays what it is.
  __device__ void sweep() {
    const u64 back = load(&queue.back);
    for (u64 first = load(&queue.front); first < back; ++first) {
      if (Where::peek(chunks, queue, first) == nullptr) break;
      const Entry entry = Where::to_empty(chunks, queue, first);
      if (load(entry.at) != REMOVED) break;
      atomicExch(entry.at, NONE);
      atomicExch(&queue.front, first + 1);
      Where::emptied(chunks, queue, entry, first);
    }
  }

  // Adds a chunk with free pages, by the thread that may; returns how many, 0 without room.
  __device__ u64 enqueue(u32 chunk) {
    if (!Where::acquire_room(chunks, queue, 1)) return 0;
    const u64 position = add_together(&queue.back, 1);
    const u64 count = atomicAdd(&chunks.header(chunk).state, tag(position)) & COUNT;
    this->put(position, 1, [=](u32) { return chunk; });
    queue.available.release(count);
    return count;
  }

  // Makes pages available, if any can be; returns how many.
  __device__ u64 grow() {
    if (const u64 parked = this->uncover()) return parked;
    const u32 chunk = chunks.take();
    if (chunk == NONE) return 0;
    chunks.cut_into_pages(chunk, queue.size_class);
    chunks.mark_all(chunk, queue.size_class);
    if (!enqueue(chunk)) this->park(chunk);
    return this->pages();
  }

  // Gives a chunk back whose pages are all free, for pages of any size; but not the last one.
  __device__ void give_back(u32 chunk) {
    const u64 pages = this->pages();
    if ((i64)load(&queue.available.value) < 2 * (i64)pages) return;
    if (!queue.available.try_acquire(pages)) return;
    u64* at = &chunks.header(chunk).state;
    const u64 state = load(at);
    if ((state & COUNT) != pages || (state & WHERE) != QUEUED ||
        atomicCAS(at, state, OUT) != state) {
      queue.available.release(pages);
      return;
    }
    remove(chunk, position_of(state));
    for (u32 word = 0; word < MASKS; ++word) chunks.header(chunk).mask[word] = 0;
    chunks.give(chunk);
  }
};

}  // namespace ouroboros

// A heap: what kernels take by value.
template <class Queues>
struct Ouroboros {
  ouroboros::Control* control;

  // Returns memory of at least so many bytes, aligned to 16; null if there is none, or for 0 or
  // more than a chunk has.
  __device__ void* malloc(unsigned long long bytes) const {
    using namespace ouroboros;
    if (bytes == 0 || bytes > CHUNK) return nullptr;
    const u32 size_class = 32 - __clz((u32)(bytes - 1) / LEAST);
    const u32 page = Queues{control->chunks, control->queues[size_class]}.take();
    if (page == NONE) return nullptr;
    return control->chunks.data(page / MOST_PAGES) + (page % MOST_PAGES) * bytes_of(size_class);
  }

  // Frees memory that `malloc` of this heap returned, or does nothing for null.
  __device__ void free(void* memory) const {
    using namespace ouroboros;
    if (memory == nullptr) return;
    const Chunks& chunks = control->chunks;
    const u64 at = (char*)memory - chunks.first;
    const u32 chunk = (u32)(at / STRIDE), size_class = load(&chunks.header(chunk).kind);
    const u32 page = (u32)(at % STRIDE - HEADER) / bytes_of(size_class);
    __threadfence();
    Queues{control->chunks, control->queues[size_class]}.give(chunk, page);
  }
};

using OuroSP = Ouroboros<ouroboros::QueueOfPages<ouroboros::Ring>>;
using OuroSC = Ouroboros<ouroboros::QueueOfChunks<ouroboros::Ring>>;
using OuroVAP = Ouroboros<ouroboros::QueueOfPages<ouroboros::Array>>;
using OuroVAC = Ouroboros<ouroboros::QueueOfChunks<ouroboros::Array>>;
using OuroVLP = Ouroboros<ouroboros::QueueOfPages<ouroboros::List>>;
using OuroVLC = Ouroboros<ouroboros::QueueOfChunks<ouroboros::List>>;
