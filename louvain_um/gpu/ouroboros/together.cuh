// Atomics of threads that come together, and waiting: what Ouroboros' queues are made of.
#pragma once

namespace ouroboros {

using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

constexpr u32 NONE = ~0u;

// Reads what other threads of the device wrote; it is not moved out of loops.
template <class T>
__device__ __forceinline__ T load(const T* at) {
  return __ldcv(at);
}

// Waits for other threads, each time longer, up to some microseconds: thousands of threads that
// look at one word hold up those that are to write it.
struct Wait {
#ifdef __CUDA_ARCH__
  u32 nanoseconds = 32;
  __device__ __forceinline__ void operator()() {
    __nanosleep(nanoseconds);
    if (nanoseconds < 4096) nanoseconds *= 2;
  }
#else
  void operator()() const { __nanosleep(0); }  // emulated
#endif
};

__device__ __forceinline__ u32 lane() {
#ifdef __CUDA_ARCH__
  u32 own;
  asm("mov.u32 %0, %%laneid;" : "=r"(own));
  return own;
#else
  return threadIdx.x % 32;
#endif
}

// The lanes of a warp that are here with the same key: any subset may come together.
struct Peers {
  u32 mask, rank, count;
  int leader;

  __device__ __forceinline__ explicit Peers(u64 key)
      : mask(__match_any_sync(__activemask(), key)),
        rank(__popc(mask & ((1u << lane()) - 1))),
        count(__popc(mask)),
        leader(__ffs(mask) - 1) {}
  __device__ __forceinline__ bool leads() const { return rank == 0; }
  template <class T>
  __device__ __forceinline__ T from_leader(T value) const {
    return __shfl_sync(mask, value, leader);
  }
};

// atomicAdd of 1 or -1, by one lane for all peers; returns what it would if they came in turn.
__device__ __forceinline__ u64 add_together(u64* at, i64 each) {
  const Peers peers((u64)at + each);
  u64 before = 0;
  if (peers.leads()) before = atomicAdd(at, (u64)(each * peers.count));
  return peers.from_leader(before) + each * peers.rank;
}

// Takes 1 from a number unless it is 0.
__device__ __forceinline__ bool take_one(u64* at) {
  while (true) {
    const u64 held = load(at);
    if (held == 0) return false;
    const Peers peers((u64)at);
    u32 taken = 0;
    if (peers.leads()) {
      const u64 most = held < peers.count ? held : peers.count;
      if (atomicCAS(at, held, held - most) == held) taken = (u32)most;
    }
    if (peers.rank < peers.from_leader(taken)) return true;
  }
}

}  // namespace ouroboros
