"""Tests of Ouroboros' paper: how long it takes to give threads memory, and to be written to.

Work generation: each thread of a kernel asks for 4 to 64 bytes and fills them. The baseline is what
programs without an allocator do: sizes are summed (a scan), and a second kernel fills the pieces,
which then lie side by side. Write access: a kernel writes to all pieces again, where they are. A
third is its paper's on changing rows: in one kernel each thread asks for a piece of another size,
copies and frees its own; sizes of a page of the same class stay. Then all is freed by a thread per
piece. Milliseconds, medians after one run that warms up. `share` is what pages can use of the
heap's memory. `stores_papers.py --allocator` measures it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
from common import device_seconds

from louvain_um.dynamic.stores.ouroboros import VARIANTS, Ouroboros

THREADS = 1_000_000
HEAP = 2 << 30
KERNELS = """
typedef long long i64;
#define FIRST blockIdx.x * (i64)blockDim.x + threadIdx.x
#define FOR_EACH(i) for (i64 i = FIRST; i < count; i += gridDim.x * (i64)blockDim.x)
__device__ void fill(unsigned* piece, unsigned words, unsigned value) {
  for (unsigned k = 0; piece && k < words; ++k) piece[k] = value + k;
}
extern "C" __global__ void rewrite(unsigned** pieces, const unsigned* words, i64 count) {
  FOR_EACH(i) fill(pieces[i], words[i], 1);
}
extern "C" __global__ void place(unsigned* memory, const i64* ends, unsigned** pieces,
                                 const unsigned* words, i64 count) {
  FOR_EACH(i) fill(pieces[i] = memory + ends[i] - words[i], words[i], i);
}
"""
ALLOCATED = """
extern "C" __global__ void generate(HEAP heap, unsigned** pieces, const unsigned* words,
                                    i64 count) {
  FOR_EACH(i) fill(pieces[i] = (unsigned*)heap.malloc(4 * words[i]), words[i], i);
}
extern "C" __global__ void update(HEAP heap, unsigned** pieces, const unsigned* words,
                                  const unsigned* after, unsigned* lost, i64 count) {
  FOR_EACH(i) {
    unsigned* own = pieces[i];
    if (!own || __clz(words[i] * 4 - 1) == __clz(after[i] * 4 - 1)) continue;
    unsigned* piece = pieces[i] = (unsigned*)heap.malloc(4 * after[i]);
    for (unsigned k = 0; piece && k < min(words[i], after[i]); ++k) piece[k] = own[k];
    if (!piece || *piece != 1) atomicAdd(lost, 1u);
    heap.free(own);
  }
}
extern "C" __global__ void release(HEAP heap, unsigned** pieces, i64 count) {
  FOR_EACH(i) if (pieces[i]) heap.free(pieces[i]);
}
"""


def milliseconds(calls: dict[str, Callable[[], Any]], runs: int) -> dict[str, float]:
    """Return medians of the time of each call on the device, one after the other."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(runs + 1):
        for name, call in calls.items():
            taken[name].append(1e3 * device_seconds(call))
    return {f"{name}_ms": median(times[1:]) for name, times in taken.items()}


def variants(args: argparse.Namespace, batches: list[int]) -> Iterator[dict[str, Any]]:
    """Yield a row for the baseline and for each variant of Ouroboros."""
    import cupy

    threads, runs = min(THREADS, 2 * args.vertices), args.runs
    low, high = map(int, args.allocator.split(","))
    sizes = {"chunk": args.chunk, "page": args.page}
    about = {"threads": threads, "low_bytes": low, "high_bytes": high, **sizes}
    rng = cupy.random.default_rng(0)
    words, after = rng.integers(low // 4, high // 4 + 1, (2, threads)).astype(np.uint32)
    lost = cupy.zeros(1, np.uint32)
    pieces, count = cupy.zeros(threads, np.uint64), np.int64(threads)
    grid = (cupy.cuda.Device().attributes["MultiProcessorCount"] * 8,), (256,)
    total = int(words.sum())

    def kernel(name: str, heap: Ouroboros | None = None) -> Callable[..., None]:
        text = KERNELS
        if heap is not None:
            text = heap.include + text + ALLOCATED.replace("HEAP", heap.struct)
        options = ("--std=c++17",) if heap is None else heap.options
        made = cupy.RawKernel(text, name, options=options)
        return lambda *args: made(*grid, args)

    memory, place, rewrite = cupy.empty(total, np.uint32), kernel("place"), kernel("rewrite")
    calls: dict[str, Callable[[], Any]] = {
        "generate": lambda: place(memory, cupy.cumsum(words, dtype=np.int64), pieces, words, count),
        "write": lambda: rewrite(pieces, words, count),
    }
    yield about | {"variant": "scan", **milliseconds(calls, runs), "share": 1.0}
    for variant in VARIANTS:
        heap = Ouroboros(HEAP, variant, **sizes)
        names = "generate", "update", "release"
        generate, update, release = (kernel(name, heap) for name in names)
        calls = {
            "generate": lambda h=heap, go=generate: go(h.argument, pieces, words, count),
            "write": lambda: rewrite(pieces, words, count),
            "update": lambda h=heap, go=update: go(h.argument, pieces, words, after, lost, count),
            "release": lambda h=heap, go=release: go(h.argument, pieces, count),
        }
        row = about | {"variant": variant, **milliseconds(calls, runs)}
        assert bool(pieces.all()), f"{variant}: no memory is left"
        assert not lost.any(), f"{variant}: a piece was not copied"
        assert sum(heap.statistics().used_pages) == 0, f"{variant}: pages are lost"
        yield row | {"share": heap.chunks * sizes["chunk"] / heap.nbytes}
