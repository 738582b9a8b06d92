// Steps of a level whose rows are dealt over devices of one host.
//
// Every device has the labels, totals, sizes and states of all vertices, and the arcs of its own. It
// queues and decides for its own vertices (vertex_blocks.cu, where its rows are one block), and
// applies what all devices have proposed, read in place from their memory. Sums are of integers, so
// that all devices end with the same state. No device writes another's memory.

#include "move_rule.cuh"
#include "refine_rule.cuh"

// Begins a sweep: no vertex is active for the next one yet.
__global__ void begin_own_sweep(i64 n, u8* next_active, Control* control) {
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  if (thread == 0) {
    control->round_begin = control->tail = 0;
    control->gain[0] = 0;
    control->moves[0] = 0;
  }
  for (i64 v = thread; v < n; v += threads) next_active[v] = 0;
}

// Applies the moves that one device has proposed in a sub-round: the queue, the proposals and the
// span, which says where in the queue the sub-round begins and ends, are that device's.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5) apply_span(MoveRule<W, A> s, const u32* span) {
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  apply_moves(s, span[0], span[BINS], thread, threads);
}

// The same for refinement.
template <class W, class A>
__global__ void __launch_bounds__(THREADS, 5) join_span(RefineRule<W, A> s, const u32* span) {
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  apply_joins(s, span[0], span[BINS], thread, threads);
}

// Makes active what is in `flags`, of another device or of this one; `first` clears the others.
__global__ void merge_active(i64 n, u8* active, const u8* flags, u32 first) {
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  for (i64 v = thread; v < n; v += threads) {
    u8 flag = flags[v];
    if (first || flag) active[v] = flag;
  }
}

// Adds `base` to the first `count` offsets.
__global__ void shift_offsets(i64 count, i64* offsets, i64 base) {
  const i64 thread = blockIdx.x * (i64)THREADS + threadIdx.x, threads = gridDim.x * (i64)THREADS;
  for (i64 i = thread; i < count; i += threads) offsets[i] += base;
}
