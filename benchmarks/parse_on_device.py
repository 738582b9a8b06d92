"""Text to labels with lines parsed on a GPU, compared with the reader, which all cores share.

    python benchmarks/parse_on_device.py [--graphs lfr22] [--runs 4] [--out FILE]

A prototype: threads copy a CSV file of two ids a line to pinned memory, from which chunks follow
each other to the device; one kernel counts the newlines of each tile of text, a scan numbers the
lines, and another kernel parses each line in the thread that meets its first newline. It notes
the first line that is nothing but two ids, which a reader would leave to the host. Both ways find
the same labels, or the program ends with an error.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from common import kept, machine, save
from end_to_end import edges_of, written

import louvain_um as lu

CODE = r"""
#define TILE 4096
#define OVER 64
typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ u32 newlines(uint4 x) {
  u32 n = 0, words[4] = {x.x, x.y, x.z, x.w};
  for (int i = 0; i < 4; ++i) n += __popc(__vcmpeq4(words[i], 0x0a0a0a0au)) >> 3;
  return n;
}

extern "C" __global__ void count(const uint4* text, long long first, u32* counts) {
  const long long tile = first + blockIdx.x;
  const u32 n = __reduce_add_sync(~0u, newlines(text[tile * (TILE / 16) + threadIdx.x]));
  if (threadIdx.x % 32 == 0) atomicAdd(counts + tile, n);
}

extern "C" __global__ void parse(const unsigned char* text, long long tiles, const long long* ends,
                                 long long lines, u32* u, u32* v, u64* bad) {
  __shared__ __align__(16) unsigned char s[TILE + OVER];
  __shared__ u32 sums[8];
  for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const uint4* from = (const uint4*)(text + tile * TILE);
    const uint4 mine = from[threadIdx.x];
    ((uint4*)s)[threadIdx.x] = mine;
    const u32 after = TILE / 16 + threadIdx.x;
    if (threadIdx.x < OVER / 16) ((uint4*)s)[after] = from[after];
    const u32 n = newlines(mine), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 sum = n;
    for (int d = 1; d < 32; d <<= 1) {
      const u32 other = __shfl_up_sync(~0u, sum, d);
      if (lane >= d) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    long long line = (tile ? ends[tile - 1] : 0) + sum - n;
    for (u32 i = 0; i < warp; ++i) line += sums[i];
    for (u32 i = threadIdx.x * 16, left = n; left; ++i) {
      if (s[i] != 10) continue;
      --left;
      u32 p = i + 1;
      u64 ids[2];
      bool good = true;
      for (int end = 0; end < 2; ++end) {
        const u32 begin = p;
        ids[end] = 0;
        while (s[p] - 48u < 10u && p < TILE + OVER - 1) ids[end] = ids[end] * 10 + (s[p++] - 48u);
        good = good && p > begin && p - begin <= 10 && ids[end] < 0xfffffffeull;
        good = good && (end ? s[p] == 10 || s[p] == 13 : s[p] == ',');
        p += !end;
      }
      if (line < lines) {
        if (!good) atomicMin(bad, (u64)(tile * TILE + i));
        u[line] = ids[0];
        v[line] = ids[1];
      }
      ++line;
    }
    __syncthreads();
  }
}
"""
TILE, CHUNK, PARTS, BUFFERS = 4096, 16 << 20, 8, 4
"""Bytes of a tile and of a chunk; threads that copy a chunk; chunks that are in pinned memory."""


class DeviceReader:
    """Reads files of one kind: a header, then lines of two ids and a comma."""

    def __init__(self) -> None:
        module = cupy.RawModule(code=CODE, options=("--std=c++17",))
        self.count, self.parse = module.get_function("count"), module.get_function("parse")
        self.pinned = [cupy.cuda.alloc_pinned_memory(CHUNK) for _ in range(BUFFERS)]
        self.views = [memoryview(np.frombuffer(each, np.uint8, CHUNK)) for each in self.pinned]
        self.pool = ThreadPoolExecutor(os.cpu_count())

    def filling(self, file: int, chunk: int, size: int) -> list[Future[None]]:
        """Begin to copy a chunk to its buffer."""
        begin, view = chunk * CHUNK, self.views[chunk % BUFFERS]
        end = min(CHUNK, size - begin)

        def copy(low: int, high: int) -> None:
            while low < high:
                low += os.preadv(file, [view[low:high]], begin + low)

        part = -(-end // PARTS)
        return [self.pool.submit(copy, a, min(a + part, end)) for a in range(0, end, part)]

    def read(self, path: Path) -> tuple[Any, Any]:
        """Return the ends of all edges, on the device."""
        file, size = os.open(path, os.O_RDONLY), path.stat().st_size
        tiles, chunks = -(-size // TILE), -(-size // CHUNK)
        text, counts = cupy.empty((tiles + 1) * TILE, np.uint8), cupy.zeros(tiles, np.uint32)
        text[size:] = 0
        stream, copied = cupy.cuda.get_current_stream(), dict[int, Any]()
        filling = {c: self.filling(file, c, size) for c in range(min(BUFFERS - 1, chunks))}
        for c in range(chunks):
            for part in filling.pop(c):
                part.result()
            n = min(CHUNK, size - c * CHUNK)
            to = text.data.ptr + c * CHUNK
            cupy.cuda.runtime.memcpyAsync(to, self.pinned[c % BUFFERS].ptr, n, 1, stream.ptr)
            copied[c] = stream.record()
            self.count((-(-n // TILE),), (256,), (text, np.int64(c * CHUNK // TILE), counts))
            if (following := c + BUFFERS - 1) < chunks:
                if c:
                    copied.pop(c - 1).synchronize()
                filling[following] = self.filling(file, following, size)
        os.close(file)
        ends = cupy.cumsum(counts, dtype=np.int64)
        lines = int(ends[-1]) - 1
        u, v = cupy.empty(lines, np.uint32), cupy.empty(lines, np.uint32)
        bad = cupy.full(1, 2**64 - 1, np.uint64)
        arguments = text, np.int64(tiles), ends, np.int64(lines), u, v, bad
        self.parse((1024,), (256,), arguments)
        if int(bad[0]) < size:
            raise SystemExit(f"{path}: not two ids after byte {int(bad[0])}")
        return u, v


def fastest(work: Callable[[], Any], runs: int) -> tuple[float, Any]:
    """Return the seconds of the fastest of some runs after the first, and what it returns."""
    found, taken = work(), []
    for _ in range(runs):
        begin = time.perf_counter()
        found = work()
        cupy.cuda.Device().synchronize()
        taken.append(time.perf_counter() - begin)
    return round(min(taken), 4), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--graphs", nargs="+", default=["lfr22"])
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    record = kept("parse_on_device", given.out, "cuda") | {"machine": machine(), "rows": []}
    reader = DeviceReader()
    for graph in given.graphs:
        with tempfile.TemporaryDirectory() as folder:
            path = written(Path(folder), *edges_of(graph, None))["csv"]
            parsed, _ = fastest(lambda path=path: reader.read(path), given.runs)
            there, found = fastest(
                lambda path=path: lu.louvain(reader.read(path), device="cuda"), given.runs
            )
            here, expected = fastest(lambda path=path: lu.louvain(path, device="cuda"), given.runs)
            if not np.array_equal(found.labels, expected.labels):
                raise SystemExit(f"{graph}: other labels, or ids with gaps")
            row = {"graph": graph, "bytes": path.stat().st_size, "parsed": parsed}
            record["rows"].append(row | {"device": there, "reader": here})
            print(record["rows"][-1], flush=True)
            save("parse_on_device", record, given.out, "cuda")


if __name__ == "__main__":
    main()
