// Kernel blocking (Hope, Nag and Qasem, section 4.4): a loop over an array that lives on the host.
//
//   blocked_for(i, count, sizeof *data, pages_per_warp) sum += data[i];
//
// A warp takes a set of consecutive pages and goes over it in steps of 32 elements, one a lane; its
// next set lies beyond those of all other warps. So at any time different warps touch different
// pages, whose faults or bus reads overlap, and no page is needed by two warps. Steps are unrolled:
// their reads are in flight together.
//
// Every index 0 ... count - 1 comes once, in one thread. Blocks are one-dimensional and of whole
// warps; any grid will do. The array begins at a page, and an element is not larger than one. The
// loop is two nested ones: `break` ends a set.
#pragma once

struct BlockedSets {
  unsigned long long begin, end, count, set, stride;

  __device__ __forceinline__ BlockedSets(unsigned long long elements, unsigned item_bytes,
                                         unsigned pages)
      : count(elements) {
    const unsigned long long warps = blockDim.x / 32;
    set = 4096ull * (pages ? pages : 1) / item_bytes;
    stride = set * warps * gridDim.x;
    begin = set * (blockIdx.x * warps + threadIdx.x / 32);
    bound();
  }

  __device__ __forceinline__ void bound() { end = begin + set < count ? begin + set : count; }

  __device__ __forceinline__ void next() {
    begin += stride;
    bound();
  }
};

#define blocked_for(index, count, item_bytes, pages_per_warp)                           \
  for (BlockedSets sets_(count, item_bytes, pages_per_warp); sets_.begin < sets_.count; \
       sets_.next())                                                                    \
    _Pragma("unroll 8") for (unsigned long long index = sets_.begin + threadIdx.x % 32; \
                             index < sets_.end; index += 32)
