// Beginning an Ouroboros heap, looking at it, and malloc and free for callers on the host.
#include "ouroboros.cuh"

// How a heap's memory is divided: `Layout` of louvain_um/dynamic/stores/ouroboros.py.
struct Layout {
  char* memory;
  unsigned long long bytes;
  unsigned kind, chunks;
  unsigned long long free_entries, entries;  // of the ring of free chunks; of each ring or table
  unsigned long long free_at, entries_at, chunks_at;  // in bytes from the memory's begin
};

namespace ouroboros {

// What the host reads: `CONTROL` and `QUEUE` of louvain_um/dynamic/stores/ouroboros.py.
static_assert(sizeof(Queue) == 640 && sizeof(Control) == 384 + CLASSES * 640, "the host's");

__device__ inline u64 thread() { return blockIdx.x * (u64)blockDim.x + threadIdx.x; }
__device__ inline u64 threads() { return gridDim.x * (u64)blockDim.x; }

// Notes where the heap's arrays are.
__device__ inline void point(const Layout& layout) {
  Control& control = *(Control*)layout.memory;
  control.chunks.first = layout.memory + layout.chunks_at;
  control.chunks.free.ring = (u32*)(layout.memory + layout.free_at);
  char* entries = layout.memory + layout.entries_at;
  for (u32 k = 0; k < CLASSES; ++k) {
    control.queues[k].ring = (u32*)entries + k * layout.entries;
    control.queues[k].table = (u64*)entries + k * layout.entries;
  }
}

}  // namespace ouroboros

// Clears all that is not data.
extern "C" __global__ void clear_heap(Layout layout) {
  using namespace ouroboros;
  u32* words = (u32*)(layout.memory + layout.free_at);
  const u64 count = (layout.chunks_at - layout.free_at) / 4;
  for (u64 i = thread(); i < count; i += threads()) words[i] = NONE;
  const u32 each = HEADER / 4;
  for (u64 i = thread(); i < (u64)layout.chunks * each; i += threads()) {
    ((u32*)(layout.memory + layout.chunks_at + i / each * STRIDE))[i % each] = i % each ? 0 : FREE;
  }
}

// Begins the heap, by one block.
extern "C" __global__ void begin_heap(Layout layout) {
  using namespace ouroboros;
  Control& control = *(Control*)layout.memory;
  Chunks& chunks = control.chunks;
  if (threadIdx.x == 0) {
    control.bytes = layout.bytes;
    control.kind = layout.kind;
    control.classes = CLASSES;
    point(layout);
    chunks.count = layout.chunks;
    chunks.cut = 0;
    chunks.free.count = chunks.free.front = chunks.free.back = 0;
    chunks.free.mask = layout.free_entries - 1;
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x >= CLASSES) return;
  Queue& queue = control.queues[threadIdx.x];
  queue.size_class = threadIdx.x;
  queue.available.begin(0);
  queue.room.begin(0);
  queue.front = queue.back = queue.segments = queue.sweeping = 0;
  queue.reading = queue.writing = queue.last = 0;
  queue.parked = EMPTY_STACK;
  queue.mask = layout.entries - 1;
  if (layout.kind == 0) Ring::begin(chunks, queue);
  if (layout.kind == 1) Array::begin(chunks, queue);
  if (layout.kind == 2) List::begin(chunks, queue);
}

// Lets a heap go on in memory to which it has been copied, by one thread.
extern "C" __global__ void move_heap(Layout layout) {
  if (ouroboros::thread() == 0) ouroboros::point(layout);
}

// Counts chunks by what they are, and the free pages marked in headers by class; while no kernel
// uses the heap.
extern "C" __global__ void survey_heap(const ouroboros::Control* control, unsigned long long* kinds,
                                       unsigned long long* marked) {
  using namespace ouroboros;
  const Chunks& chunks = control->chunks;
  const u64 cut = chunks.cut < chunks.count ? chunks.cut : chunks.count;
  for (u64 chunk = thread(); chunk < cut; chunk += threads()) {
    const Chunk& own = chunks.header((u32)chunk);
    atomicAdd(&kinds[own.kind], 1ull);
    if (own.kind < CLASSES && own.state & COUNT) atomicAdd(&marked[own.kind], own.state & COUNT);
  }
}

template <class Heap>
__global__ void malloc_each(Heap heap, unsigned long long count, const unsigned long long* bytes,
                            void** found) {
  using namespace ouroboros;
  for (u64 i = thread(); i < count; i += threads()) found[i] = heap.malloc(bytes[i]);
}

template <class Heap>
__global__ void free_each(Heap heap, unsigned long long count, void* const* found) {
  using namespace ouroboros;
  for (u64 i = thread(); i < count; i += threads()) heap.free(found[i]);
}
