"""Ouroboros' six variants beside CUDA's own malloc on a device, as Winter's thesis tests them.

    python benchmarks/ouroboros.py [--variants s-p,va-c,cuda] [--gib 10] [--runs 3] [--missing]
                                   [--out FILE]
    compute-sanitizer --tool memcheck python benchmarks/ouroboros.py --check

One thread per allocation. Milliseconds by CUDA events: `first` from a heap without pages, `again`
the median of later rounds, which reuse freed pages, `free` that of their deallocations. Usable is
the share of the heap's bytes, its queues included, that one kernel gets before malloc returns null;
`lacking` are the threads that got null elsewhere. Every figure is saved as it is found: results of
several calls, of which some were cut off, are joined in one file. `--check` runs little and prints
what is wrong.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import cupy
import numpy as np
from common import RESULTS, machine, save

from louvain_um.dynamic.ouroboros import HEADERS, PAGE_BYTES, VARIANTS, Ouroboros

THREADS = (1, 1 << 4, 1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20)
SCALED = (16, 64, 8192, 512)
"""CUDA's own malloc takes longest for 512 bytes."""
MIXED = (16, 64, 256, 1024, 4096, 8192)
MANY = 100_000
SMALL_HEAP = 64 << 20
ROUNDS = 20

CODE = """
extern "C" __global__ void nothing(Heap heap, unsigned n, const unsigned* bytes, void** found) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) found[i] = (void*)(bytes + i);
}
extern "C" __global__ void take(Heap heap, unsigned n, const unsigned* bytes, void** found) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) found[i] = heap.malloc(bytes[i]);
}
extern "C" __global__ void give(Heap heap, unsigned n, const unsigned* bytes, void** found) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) heap.free(found[i]);
}
extern "C" __global__ void churn(Heap heap, unsigned n, const unsigned* bytes, void** found) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (unsigned round = 0; round < 8; ++round) {
    unsigned* page = (unsigned*)heap.malloc(bytes[(i + round) % n]);
    if (!page) continue;
    *page = i;
    if (*(volatile unsigned*)page != i) atomicAdd((unsigned*)found, 1u);
    heap.free(page);
  }
}
"""
OWN = """
struct Heap {
  void* unused;
  __device__ void* malloc(size_t bytes) const { return ::malloc(bytes); }
  __device__ void free(void* memory) const { ::free(memory); }
};
"""


class Subject:
    """An allocator and kernels that use it."""

    def __init__(self, variant: str, nbytes: int) -> None:
        self.heap = None if variant == "cuda" else Ouroboros(nbytes, variant)
        front = f'#include "ouroboros.cuh"\nusing Heap = Ouro{variant.replace("-", "").upper()};'
        code = (OWN if self.heap is None else front) + CODE
        module = cupy.RawModule(code=code, options=("--std=c++17", f"-I{HEADERS}"))
        names = "nothing", "take", "give", "churn"
        self.kernels = {name: module.get_function(name) for name in names}
        self.variant = variant

    def begin(self, nbytes: int | None = None) -> None:
        if self.heap is not None:
            self.heap.reinitialise(nbytes)

    def run(self, name: str, bytes_: Any, found: Any) -> float:
        """Run a kernel; return its milliseconds."""
        argument = np.uint64(0) if self.heap is None else self.heap.argument
        args = argument, np.uint32(bytes_.size), bytes_, found
        blocks = -(-bytes_.size // 256)
        return timed(lambda: self.kernels[name]((blocks,), (256,), args))


def timed(call: Any) -> float:
    """Return the milliseconds of what is launched."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    call()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end))


def times(subject: Subject, bytes_: Any, runs: int) -> dict[str, float]:
    """Return the times of allocations and deallocations of these sizes."""
    subject.begin()
    found = cupy.zeros(bytes_.size, cupy.uint64)
    taken, given, nulls = [], [], 0
    for _ in range(runs + 1):
        taken.append(subject.run("take", bytes_, found))
        nulls = max(nulls, int((found == 0).sum()))
        given.append(subject.run("give", bytes_, found))
    all_of_it = {"first": taken[0], "again": median(taken[1:]), "free": median(given[1:])}
    return all_of_it | ({"lacking": nulls} if nulls else {})


def overlaps(bytes_: Any, found: Any) -> int:
    """Return how many pieces of memory begin before the one below ends."""
    order = cupy.argsort(found)
    begins, sizes = found[order], bytes_[order].astype(cupy.uint64)
    return int((begins[1:] < begins[:-1] + sizes[:-1]).sum())


def extent(subject: Subject, bytes_: Any, rounds: int) -> float:
    """Return the range of addresses after some rounds, by the bytes of pages."""
    subject.begin()
    found = cupy.zeros(bytes_.size, cupy.uint64)
    for _ in range(rounds):
        subject.run("take", bytes_, found)
        wide = int(found.max() - found.min()) + int(bytes_[0])
        subject.run("give", bytes_, found)
    return wide / int(bytes_.sum())


def usable(subject: Subject, size: int) -> dict[str, float]:
    """Return the share of a small heap that is allocated, also after all of it was freed."""
    subject.begin()
    bytes_ = cupy.full(SMALL_HEAP // size, size, cupy.uint32)
    found = cupy.zeros(bytes_.size, cupy.uint64)
    shares = []
    for _ in range(2):
        subject.run("take", bytes_, found)
        shares.append(int((found != 0).sum()) * size / SMALL_HEAP)
        subject.run("give", bytes_, found)
    return {"first": shares[0], "again": shares[1]}


def figures_of(
    subject: Subject, runs: int, nbytes: int
) -> Iterator[tuple[str, int | None, Callable[[], Any]]]:
    """Yield group and size of each of an allocator's figures, and what measures it."""
    heap = subject.heap
    runs = 1 if heap is None else runs
    rng = cupy.random.default_rng(1)

    def full(count: int, size: int) -> Any:
        return cupy.full(count, size, cupy.uint32)

    def any_up_to(most: int) -> Any:
        return rng.integers(4, most, MANY, endpoint=True).astype(cupy.uint32)

    def of_small_heap() -> dict[int, dict[str, float]]:
        subject.begin(SMALL_HEAP)
        shares = {size: usable(subject, size) for size in reversed(PAGE_BYTES)}
        subject.begin(nbytes)
        return shares

    kernels = subject.kernels
    yield "registers", None, lambda: {name: kernel.num_regs for name, kernel in kernels.items()}
    times(subject, full(256, 16), 1)
    if heap is not None:
        yield "begin_ms", None, lambda: median(timed(heap.reinitialise) for _ in range(runs))
        yield "overhead_bytes", None, lambda: heap.statistics().overhead_bytes
    for size in PAGE_BYTES:
        yield "sizes", size, lambda size=size: times(subject, full(MANY, size), runs)
    for n in THREADS:
        for size in SCALED:
            yield f"threads_{size}", n, lambda n=n, size=size: times(subject, full(n, size), runs)
    for most in MIXED:
        yield "mixed", most, lambda most=most: times(subject, any_up_to(most), runs)
    if heap is None:
        return
    for size in SCALED:
        yield (
            "extent",
            size,
            lambda size=size: [extent(subject, full(MANY, size), rounds) for rounds in (1, ROUNDS)],
        )
    yield "usable", None, of_small_heap


def check(subject: Subject, count: int) -> None:
    """Allocate, write and free on all sizes at once; raise if memory is lost or given twice."""
    rng = cupy.random.default_rng(2)
    divisors = 4 ** rng.integers(0, 7, count)
    bytes_ = (1 + rng.integers(0, 8192, count) // divisors).astype(cupy.uint32)
    found = cupy.zeros(count, cupy.uint64)
    for _ in range(3):
        subject.run("take", bytes_, found)
        assert (found != 0).all(), "no memory"
        assert overlaps(bytes_, found) == 0, "memory was given twice"
        subject.run("give", bytes_, found)
        errors = cupy.zeros(1, cupy.uint64)
        subject.run("churn", bytes_, errors)
        assert int(errors[0]) == 0, "memory was given to two threads"
    if subject.heap is not None:
        left = subject.heap.statistics()
        assert sum(left.used_pages) == 0, f"pages were lost: {left}"
        small = subject.heap.reinitialise(1 << 20) or cupy.full(1 << 17, 16, cupy.uint32)
        found = cupy.zeros(small.size, cupy.uint64)
        subject.run("take", small, found)
        got = int((found != 0).sum())
        stats = subject.heap.statistics()
        assert got == stats.used_pages[0], f"{got} pages, counted {stats}"
        assert overlaps(small[found != 0], found[found != 0]) == 0, "memory was given twice"
        subject.run("give", small, found)
        assert sum(subject.heap.statistics().used_pages) == 0, "pages were lost"
        print(f"{subject.variant}: whole; {got * 16 / (1 << 20):.3f} of a MiB usable", flush=True)


def main() -> None:
    """Measure or check, and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--variants", default=",".join((*VARIANTS, "cuda")))
    parser.add_argument("--gib", type=float, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--check", type=int, nargs="?", const=2048, metavar="THREADS")
    parser.add_argument("--missing", action="store_true", help="only what the file lacks")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    nbytes = (64 << 20) + 8192 * args.check if args.check else int(args.gib * (1 << 30))
    cupy.cuda.runtime.deviceSetLimit(2, nbytes)  # cudaLimitMallocHeapSize
    file, about = args.out or RESULTS / "ouroboros.json", machine()
    for variant in args.variants.split(","):
        subject = Subject(variant, nbytes)
        if args.check:
            check(subject, args.check)
            continue
        since = time.perf_counter()
        for group, size, measure in figures_of(subject, args.runs, nbytes):
            record = json.loads(file.read_text()) if file.exists() else {"allocators": {}}
            figures, key = record["allocators"].setdefault(variant, {}), group
            if size is not None:
                figures, key = figures.setdefault(group, {}), str(size)
            if args.missing and key in figures:
                continue
            figures[key] = measure()
            record |= {"machine": about, "heap_bytes": nbytes, "many": MANY}
            save("ouroboros", record, args.out)
            step = group if size is None else f"{group} {size:,}"
            print(f"{variant} {step} after {time.perf_counter() - since:.1f} s", flush=True)
        del subject
        cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
