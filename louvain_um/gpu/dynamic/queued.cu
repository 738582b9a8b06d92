// Rows of a changing graph in pages of an Ouroboros heap, taken and freed by a thread per row.
//
// The heap begins where the pool of targets does, so that a page is a place in the pool; rows longer
// than its largest page lie behind it. Which page a thread gets depends on how threads meet: what
// the rows hold does not.
#include "batch.cuh"
#include "ouroboros.cuh"

// Returns the place of a new page in the pool of targets; -1 if there is none.
template <class Heap>
__device__ __forceinline__ i64 take_page(const Heap& heap, u32 size_class) {
  const void* page = heap.malloc(4 * capacity_of(size_class));
  return page ? ((const char*)page - (const char*)heap.control) / 4 : -1;
}

template <class Heap>
__device__ __forceinline__ void free_page(const Heap& heap, i64 place) {
  heap.free((u32*)heap.control + place);
}

// Takes a page for each of the touched rows that moves to one of the heap; counts those that found
// none, whose place is then -1.
template <class Heap>
__global__ void take_pages(const Batch b, Heap heap, i64 rows) {
  u64 lacking = 0;
  for (i64 r = grid_thread(); r < rows; r += grid_threads()) {
    if (b.rooms[r] >= 0 || b.wanted[r] >= b.queued) continue;
    b.pages[r] = take_page(heap, b.wanted[r]);
    lacking += b.pages[r] < 0;
  }
  add_counted(&b.counts->lacking, lacking);
}

// Frees the pages that touched rows left, below place `end`; or, to `undo` a batch before it was
// merged, those that were taken for it.
template <class Heap>
__global__ void free_pages(const Batch b, Heap heap, i64 rows, i64 undo, i64 end) {
  for (i64 r = grid_thread(); r < rows; r += grid_threads()) {
    if (b.rooms[r] >= 0) continue;
    if (undo) {
      if (b.wanted[r] < b.queued && b.pages[r] >= 0) free_page(heap, b.pages[r]);
    } else if (b.lengths[r] && b.from[r] < end) {
      free_page(heap, b.from[r]);
    }
  }
}

// Places all n rows: in pages of the heap those whose spans tell only lengths, others `shift` further
// behind. Counts those that found no page.
template <class Heap>
__global__ void place_rows(BatchCounts* counts, Heap heap, i64 n, i64 queued, i64 shift,
                           const u8* classes, Row* spans) {
  u64 lacking = 0;
  for (i64 v = grid_thread(); v < n; v += grid_threads()) {
    const i64 page = classes[v] < queued ? take_page(heap, classes[v]) : spans[v].low + shift;
    lacking += page < 0;
    spans[v] = {page, page + spans[v].arcs()};
  }
  add_counted(&counts->lacking, lacking);
}
