// Tools for kernels that span the whole grid: barriers, sums and scans across blocks.
//
// Such kernels are launched cooperatively, so that every block is resident and a barrier cannot
// wait for one that has not started. Sums and scans are of integers: their order does not matter.
#pragma once
#include "rules.cuh"

// Constants of the hardware are compile options: placement/hardware.py has them.
#define WARPS (THREADS / WARP)  // of a block
#define FULL 0xFFFFFFFFu

// A barrier's memory: zero before the first launch that uses it.
struct alignas(8) Barrier {
  u32 arrived;  // blocks that wait; the highest bit changes whenever all have come
};

// Waits until every thread of the grid has arrived; writes before it are visible after it.
__device__ __forceinline__ void grid_sync(Barrier* barrier) {
  __syncthreads();
  if (gridDim.x > 1 && threadIdx.x == 0) {
    // What all blocks add together flips the highest bit, whichever is last, and no other.
    const u32 flag = 0x80000000u, own = blockIdx.x ? 1 : flag - (gridDim.x - 1);
    __threadfence();
    const u32 before = atomicAdd(&barrier->arrived, own);
    while (((before ^ *(volatile u32*)&barrier->arrived) & flag) == 0) {
    }
    __threadfence();
  }
  __syncthreads();
}

// The thread's place in the grid, and the threads of the grid.
__device__ __forceinline__ i64 grid_thread() { return blockIdx.x * (i64)blockDim.x + threadIdx.x; }
__device__ __forceinline__ i64 grid_threads() { return gridDim.x * (i64)blockDim.x; }

// The elements of this thread, of 0 ... n - 1.
#define EACH(i, n) for (i64 i = grid_thread(), step_ = grid_threads(); i < (n); i += step_)

template <class T>
__device__ __forceinline__ T warp_sum(T value) {
  for (int d = WARP / 2; d; d >>= 1) value += __shfl_xor_sync(FULL, value, d);
  return value;
}

// Returns the sum of all threads' values to every thread of the block; T is u32, u64 or i64.
template <class T>
__device__ T block_sum(T value) {
  __shared__ T partial[WARP];
  value = warp_sum(value);
  __syncthreads();
  if (threadIdx.x % WARP == 0) partial[threadIdx.x / WARP] = value;
  __syncthreads();
  T sum = 0;
  for (u32 w = 0; w < blockDim.x / WARP; ++w) sum += partial[w];
  return sum;
}

// Returns the sum of the values of threads before this one; `total` becomes the block's sum.
template <class T>
__device__ T block_scan(T value, T& total) {
  __shared__ T partial[WARP];
  u32 lane = threadIdx.x % WARP;
  T inclusive = value;
  for (int d = 1; d < WARP; d <<= 1) {
    T other = __shfl_up_sync(FULL, inclusive, d);
    if (lane >= d) inclusive += other;
  }
  __syncthreads();
  if (lane == WARP - 1) partial[threadIdx.x / WARP] = inclusive;
  __syncthreads();
  T before = 0;
  total = 0;
  for (u32 w = 0; w < blockDim.x / WARP; ++w) {
    if (w < threadIdx.x / WARP) before += partial[w];
    total += partial[w];
  }
  return before + inclusive - value;
}

// The range of n items that this block owns: contiguous, in the order of blocks.
__device__ __forceinline__ i64 range_begin(i64 n) { return n * blockIdx.x / gridDim.x; }
__device__ __forceinline__ i64 range_end(i64 n) { return n * (blockIdx.x + 1) / gridDim.x; }

// Exclusive scan: calls put(i, from + value(0) + ... + value(i - 1), value(i)) for i in 0..n - 1,
// and put(n, the total, 0) once. `partials` has one T per block. `value` is called twice per i, and
// may read what put(i, …) writes. Holds one barrier of the grid; the caller needs another before it
// reads what was written.
template <class T, class F, class P>
__device__ void grid_scan_to(i64 n, F value, P put, T* partials, Barrier* barrier, T from = T(0)) {
  i64 begin = range_begin(n), end = range_end(n);
  T mine = 0;
  for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) mine += value(i);
  T sum = block_sum(mine);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
  grid_sync(barrier);
  T before = 0, all = 0;
  for (u32 b = threadIdx.x; b < gridDim.x; b += blockDim.x) {
    T part = ((volatile T*)partials)[b];
    all += part;
    if (b < blockIdx.x) before += part;
  }
  T base = from + block_sum(before);
  all = block_sum(all);
  for (i64 i = begin; i < end; i += blockDim.x) {
    T own = i + threadIdx.x < end ? value(i + threadIdx.x) : T(0), total;
    T offset = block_scan(own, total);
    if (i + threadIdx.x < end) put(i + threadIdx.x, base + offset, own);
    base += total;
  }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) put(n, from + all, T(0));
}

// The same, to an array: out[i] = from + value(0) + ... + value(i - 1) for i in 0..n. `value` may
// read `out`.
template <class T, class F>
__device__ void grid_scan(i64 n, F value, T* out, T* partials, Barrier* barrier, T from = T(0)) {
  grid_scan_to<T>(n, value, [=](i64 i, T sum, T) { out[i] = sum; }, partials, barrier, from);
}
