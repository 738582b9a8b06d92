"""CuPy with managed memory: a gather and a sum, repeated."""

import cupy as cp

cp.cuda.set_allocator(cp.cuda.MemoryPool(cp.cuda.malloc_managed).malloc)
table = cp.arange(1 << 26, dtype=cp.float32)
index = (cp.arange(1 << 25, dtype=cp.uint32) * 2654435761) % (1 << 26)
total = cp.zeros(1 << 25, dtype=cp.float32)
for _ in range(200):
    total += table[index]
print(f"{float(total[::1001].astype(cp.float64).sum()):.1f}")
