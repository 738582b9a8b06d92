// Queueing the vertices of a sweep by sub-round and, within it, by degree bin.
//
// Every block counts its range of vertices, reserves room per key with one atomic each, and
// writes. The order of vertices within a key is free: no label depends on it. Vertices of degree 0
// are never queued.
#pragma once
#include "bins.cuh"
#include "packed.cuh"

// Queues the vertices of low..high - 1 that have arcs, from queue[at] on; fills shared.starts and
// adds their arcs, arcs_of(v), to control->visited. round_of(v, first) returns the sub-round of v,
// below `rounds`, or EMPTY; it is called twice per vertex, with `first` set the first time. Holds two
// barriers of the grid; control->counts is 0 before, and again after the grid's next barrier.
template <class A, class L, class R>
__device__ void enqueue(i64 low, i64 high, L arcs_of, u32 rounds, u32 at, R round_of, u32* queue,
                        Control* control, Shared<A>& shared) {
  const i64 begin = low + range_begin(high - low), end = low + range_end(high - low);
  const u32 n_keys = rounds * BINS;
  u64 arcs = 0;
  if (blockIdx.x == 0)
    for (u32 k = threadIdx.x; k < n_keys; k += THREADS) control->work[k] = 0;
  for (u32 k = threadIdx.x; k < n_keys; k += THREADS) shared.local[k] = 0;
  __syncthreads();
  for (i64 v = begin + threadIdx.x; v < end; v += THREADS) {
    u32 round = round_of(v, true);
    if (round == EMPTY) continue;
    const i64 degree = arcs_of(v);
    if (!degree) continue;
    arcs += degree;
    atomicAdd(shared.local + round * BINS + bin_of<A>(degree), 1u);
  }
  arcs = block_sum(arcs);
  for (u32 k = threadIdx.x; k < n_keys; k += THREADS)
    shared.base[k] = shared.local[k] ? atomicAdd(control->counts + k, shared.local[k]) : 0;
  if (threadIdx.x == 0 && arcs) atomicAdd(&control->visited, arcs);
  grid_sync(&control->barrier);
  for (u32 k = threadIdx.x; k < n_keys; k += THREADS) {
    shared.starts[k + 1] = ((volatile u32*)control->counts)[k];
    shared.local[k] = 0;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    shared.starts[0] = at;
    for (u32 k = 0; k < n_keys; ++k) shared.starts[k + 1] += shared.starts[k];
  }
  __syncthreads();
  for (i64 v = begin + threadIdx.x; v < end; v += THREADS) {
    u32 round = round_of(v, false);
    if (round == EMPTY) continue;
    const i64 degree = arcs_of(v);
    if (!degree) continue;
    u32 k = round * BINS + bin_of<A>(degree);
    queue[shared.starts[k] + shared.base[k] + atomicAdd(shared.local + k, 1u)] = v;
  }
  grid_sync(&control->barrier);
  if (blockIdx.x == 0)
    for (u32 k = threadIdx.x; k < n_keys; k += THREADS) control->counts[k] = 0;
}

// Tells how many arcs a vertex has, by where its row begins and ends.
template <class W>
__device__ __forceinline__ auto arcs_by(const i64* offsets, const W* weights) {
  return [=](i64 v) { return row_of(weights, offsets, v).arcs(); };
}
