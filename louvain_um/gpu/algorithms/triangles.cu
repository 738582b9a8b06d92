// Triangles of each vertex (Schank, Wagner, 2005): arcs lead to the end of higher degree, and each
// triangle is found where the rows of two neighbours intersect. Cooperative.
#include "linked_rows.cuh"

// Whether u comes after v in the order of degrees, ties by number.
template <class R>
__device__ __forceinline__ bool is_above(const R& rows, i64 v, i64 u) {
  const i64 own = rows.length(v), other = rows.length(u);
  return other > own || (other == own && u > v);
}

// Whether a value is in ascending entries low..high - 1.
__device__ __forceinline__ bool contains(const u32* entries, i64 low, i64 high, u32 value) {
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if (entries[middle] < value)
      low = middle + 1;
    else
      high = middle;
  }
  return entries[low] == value;
}

// begins: n + 1 entries. upward: one entry per edge, and one more. counts: n entries, 0 before, as
// are the barrier and the claimed rows in `state`.
template <template <class> class Rows>
__global__ void BOUNDS triangles(Rows<Unweighted> rows, i64* begins, u32* upward, i64* partials,
                                 u64* counts, u64* state) {
  const i64 n = rows.n;
  const u32 lane = lane_index();
  Barrier* barrier = (Barrier*)state;
  fold_rows(
      rows, 0ll, [&](i64) { return true; },
      [&](i64 v, i64 arc) { return i64(is_above(rows, v, rows.targets[arc])); },
      [](i64 a, i64 b) { return a + b; }, [&](i64 v, i64 count) { begins[v] = count; });
  grid_sync(barrier);
  grid_scan<i64>(n, [=](i64 v) { return begins[v]; }, begins, partials, barrier);
  grid_sync(barrier);
  for (i64 v = grid_thread() / WARP; v < n; v += grid_threads() / WARP) {
    i64 at = begins[v];
    const i64 length = rows.length(v);
    auto row = rows.walk(v);
    if (lane < length) row.forward(lane);
    for (i64 i = lane; i - lane < length; i += WARP) {
      const u32 u = i < length ? rows.targets[row.entry()] : 0;
      const bool kept = i < length && is_above(rows, v, u);
      if (i + WARP < length) row.forward(WARP);
      const u32 votes = __ballot_sync(FULL, kept);
      if (kept) upward[at + __popc(votes & lanes_below())] = u;
      at += __popc(votes);
    }
  }
  grid_sync(barrier);
  while (true) {
    // Rows differ too much for a fixed share: warps claim one at a time.
    i64 u = 0;
    if (lane == 0) u = atomicAdd(state + 1, 1);
    u = __shfl_sync(FULL, u, 0);
    if (u >= n) break;
    const i64 low = begins[u], high = begins[u + 1];
    u64 own = 0;
    for (i64 a = low; a < high; ++a) {
      const u32 v = upward[a];
      u64 found = 0;
      for (i64 b = begins[v] + lane; b < begins[v + 1]; b += WARP) {
        const u32 w = upward[b];
        if (!contains(upward, low, high - 1, w)) continue;
        atomicAdd(counts + w, 1);
        found += 1;
      }
      found = warp_sum(found);
      if (lane == 0 && found) atomicAdd(counts + v, found);
      own += found;
    }
    if (lane == 0 && own) atomicAdd(counts + u, own);
  }
}
