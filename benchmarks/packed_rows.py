"""Reading rows over the bus: targets of 32 and 24 bits, by lanes and by whole cache lines.

    python benchmarks/packed_rows.py -o packed_rows.json

Rows with power-law lengths lie in host memory that the device reads (mapped next to device memory).
Each warp reads a row and looks up a label for every target, as the move phase does; or it reads the
arcs of 32 rows as one list, as aggregation does. Rows are a quarter of all in vertex order, all, or
half of all in random order.

* `words`: 32 bits, aligned groups of 32 arcs;
* `lanes`: 24 bits, two words per lane;
* `groups`: 24 bits, 24 words for 32 arcs, shuffled between lanes;
* `lines`: 24 bits, three whole lines for 128 arcs: the engine's method (`warp_read_row.cuh`);
* `list words`, `list lanes`: rows as one list.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import machine, save

from louvain_um.placement.memory.cuda_calls import HOST
from louvain_um.placement.memory.vmm import VmmRange

BLOCK = 2 << 20
VERTICES = 1 << 24
ROWS = 1 << 23

SOURCE = r"""
typedef unsigned u32; typedef unsigned long long u64; typedef long long i64;
#define FULL 0xffffffffu
enum Access { WORDS, LANES, GROUPS, LINES };
__device__ __forceinline__ u32 claim(u32* counter, u32 step) {
  u32 at = 0;
  if (threadIdx.x % 32 == 0) at = atomicAdd(counter, step);
  return __shfl_sync(FULL, at, 0);
}
__device__ __forceinline__ u32 target24(const u32* t, i64 k) {
  const u64 at = 3 * (u64)k;
  const u32* word = t + (at >> 2);
  return __funnelshift_r(__ldcs(word), __ldcs(word + 1), 8 * (at & 3)) & 0xffffff;
}
__device__ __forceinline__ u32 pick(const u32 (&w)[3], int q, u32 index) {
  const int first = 24 * q / 32, last = (24 * q + 23) / 32;
  u32 word = __shfl_sync(FULL, w[first], index % 32);
  if (last == first) return word;
  u32 next = __shfl_sync(FULL, w[last], index % 32);
  return index / 32 == first ? word : next;
}
template <int WAY>
__device__ __forceinline__ u32 visit(const u32* t, i64 low, i64 high, const u32* labels, u32 lane) {
  const u32 source = 3 * lane / 4, byte = 3 * lane % 4;
  const i64 first = 3 * low / 4, last = (3 * high - 1) / 4, align = WAY == LINES ? 128 : 32;
  u32 sum = 0;
  for (i64 j = low & -align; j < high; j += 128) {
    u32 x[4], w[4] = {0, 0, 0, 0}, line[3];
    if (WAY == LINES)
      for (int l = 0; l < 3; ++l) {
        const i64 word = j / 4 * 3 + 32 * l + lane;
        line[l] = word >= first && word <= last ? __ldcs(t + word) : 0;
      }
    if (WAY == GROUPS)
      for (int q = 0; q < 4; ++q) {
        const i64 word = (j / 32 + q) * 24 + lane;
        w[q] = lane < 24 && word >= first && word <= last ? __ldcs(t + word) : 0;
      }
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const i64 k = j + 32 * q + lane;
      const bool mine = k >= low && k < high;
      u32 a = 0, b = 0;
      if (WAY == GROUPS) {
        a = __shfl_sync(FULL, w[q], source);
        b = __shfl_sync(FULL, w[q], (source + 1) % 32);
      }
      if (WAY == LINES) {
        a = pick(line, q, 24 * q + source);
        b = pick(line, q, 24 * q + source + 1);
      }
      if (WAY == WORDS) x[q] = mine ? __ldcs(t + k) : 0;
      if (WAY == LANES) x[q] = mine ? target24(t, k) : 0;
      if (WAY >= GROUPS) x[q] = mine ? __funnelshift_r(a, b, 8 * byte) & 0xffffff : 0;
    }
#pragma unroll
    for (int q = 0; q < 4; ++q) sum += x[q] ? labels[x[q]] : 0;
  }
  return sum;
}
template <int WAY>
__global__ void __launch_bounds__(256, 5) rows(u32 n, const u32* order, const i64* offsets,
                                               const i64*, const u32* t, const u32* labels,
                                               u32* out, u32* counter) {
  const u32 lane = threadIdx.x % 32;
  u32 sum = 0, at = claim(counter, 1);
  while (at < n) {
    u32 next = claim(counter, 1), v = order[at];
    sum += visit<WAY>(t, offsets[v], offsets[v + 1], labels, lane);
    at = next;
  }
  if (sum) atomicAdd(out, sum);
}
template <int WAY>
__global__ void __launch_bounds__(256, 5) list(u32 n, const u32* order, const i64* offsets,
                                               const i64* before, const u32* t, const u32* labels,
                                               u32* out, u32* counter) {
  const u32 lane = threadIdx.x % 32;
  u32 sum = 0;
  for (u32 c = claim(counter, 32); c < n; c = claim(counter, 32)) {
    const i64 low = before[c], high = before[min(c + 32, n)];
    const i64 mine = before[min(c + lane, n)], source = offsets[order[min(c + lane, n - 1)]];
    for (i64 j = low; j < high; j += 128) {
      u32 x[4];
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const i64 k = j + 32 * q + lane;
        u32 row = 0;
        for (u32 step = 16; step; step >>= 1)
          if (__shfl_sync(FULL, mine, row + step) <= k) row += step;
        const i64 begin = __shfl_sync(FULL, mine, row), from = __shfl_sync(FULL, source, row);
        const i64 at = from + (k - begin);
        x[q] = k < high ? (WAY == LANES ? target24(t, at) : __ldcs(t + at)) : 0;
      }
#pragma unroll
      for (int q = 0; q < 4; ++q) sum += x[q] ? labels[x[q]] : 0;
    }
  }
  if (sum) atomicAdd(out, sum);
}
__global__ void make(i64 arcs, u32 n, u32* t) {
  for (i64 w = blockIdx.x * (i64)blockDim.x + threadIdx.x; w < arcs;
       w += (i64)gridDim.x * blockDim.x) {
    u64 x = w * 0x9E3779B97F4A7C15ull;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9ull;
    t[w] = u32((x ^ x >> 32) % (n - 1)) + 1;
  }
}
__global__ void pack(i64 arcs, const u32* t, u32* packed) {
  for (i64 w = blockIdx.x * (i64)blockDim.x + threadIdx.x; w < (3 * arcs + 3) / 4;
       w += (i64)gridDim.x * blockDim.x) {
    const i64 arc = 4 * w / 3;
    const u64 both = t[arc] | (u64)(arc + 1 < arcs ? t[arc + 1] : 0) << 24;
    packed[w] = both >> (4 * w % 3 * 8);
  }
}
"""

WAYS = {
    "words": "rows<WORDS>",
    "lanes": "rows<LANES>",
    "groups": "rows<GROUPS>",
    "lines": "rows<LINES>",
    "list words": "list<WORDS>",
    "list lanes": "list<LANES>",
}


def on_host(size: int) -> tuple[VmmRange, Any]:
    """Return host memory mapped for the device, and a view of it."""
    import cupy

    device = cupy.cuda.runtime.getDevice()
    parts = [(device, BLOCK), (HOST, -(-4 * size // BLOCK) * BLOCK)]
    memory = VmmRange("rows", parts, [device])
    plain = cupy.cuda.UnownedMemory(memory.address + BLOCK, 4 * size, memory)
    return memory, cupy.ndarray((size,), np.uint32, cupy.cuda.MemoryPointer(plain, 0))


def main() -> None:
    """Time every method in every order, on the host and on the device."""
    import cupy

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--out", type=Path)
    arguments = parser.parse_args()
    cupy.zeros(1)
    names = (*WAYS.values(), "make", "pack")
    module = cupy.RawModule(code=SOURCE, options=("-std=c++17",), name_expressions=names)
    random = np.random.default_rng(1)
    degrees = np.clip((random.pareto(1.5, ROWS) + 1) * 14, 8, 800).astype(np.int64)
    offsets = np.append(0, np.cumsum(degrees))
    arcs = int(offsets[-1])
    whole, packed = cupy.empty(arcs, np.uint32), cupy.zeros(3 * arcs // 4 + 2, np.uint32)
    module.get_function("make")((1024,), (256,), (np.int64(arcs), np.uint32(VERTICES), whole))
    module.get_function("pack")((1024,), (256,), (np.int64(arcs), whole, packed))
    memories, views = zip(*(on_host(array.size) for array in (whole, packed)), strict=True)
    views[0][...], views[1][...] = whole, packed
    labels, places = cupy.arange(VERTICES, dtype=np.uint32), cupy.asarray(offsets)
    mixed = np.arange(ROWS, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)
    orders = {
        "a quarter in order": np.flatnonzero(mixed % 4 == 0),
        "all in order": np.arange(ROWS),
        "half at random": random.permutation(ROWS)[: ROWS // 2],
    }
    results = []
    for order, chosen in orders.items():
        rows, count = cupy.asarray(chosen.astype(np.uint32)), int(degrees[chosen].sum())
        before = cupy.asarray(np.append(0, np.cumsum(degrees[chosen])))
        for where, sides in (("host", views), ("device", (whole, packed))):
            sums = set()
            for way, name in WAYS.items():
                kernel = module.get_function(name)
                narrow = "words" not in way
                seconds = []
                for _ in range(3):
                    out, counter = cupy.zeros(1, np.uint32), cupy.zeros(1, np.uint32)
                    cupy.cuda.Device().synchronize()
                    since = time.perf_counter()
                    kernel(
                        (660,),
                        (256,),
                        (
                            np.uint32(len(chosen)), rows, places, before, sides[narrow], labels,
                            out, counter,
                        ),
                    )  # fmt: skip
                    cupy.cuda.Device().synchronize()
                    seconds.append(time.perf_counter() - since)
                sums.add(int(out[0]))
                best = min(seconds)
                results.append(
                    {
                        "rows": order,
                        "memory": where,
                        "way": way,
                        "seconds": best,
                        "arcs_per_second": count / best,
                        "bytes_per_second": count * (3 if narrow else 4) / best,
                    }
                )
                print(results[-1], flush=True)
            assert len(sums) == 1, "every method reads the same targets"
    save("packed_rows", {"machine": machine(), "arcs": arcs, "results": results}, arguments.out)
    for memory in memories:
        memory.close()


if __name__ == "__main__":
    main()
