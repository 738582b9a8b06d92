// `intersect` of users: common neighbours of pairs of vertices, a warp per pair.
#include "row_view.cuh"

// pairs: 2 * count vertices. each: gets 1 added at every common neighbour, unless null.
__global__ void BOUNDS count_common(RowView<Unweighted> rows, const u32* pairs, i64 count,
                                    i64* counts, i64* each) {
  const u32 lane = lane_index();
  for (i64 p = grid_thread() / WARP; p < count; p += grid_threads() / WARP) {
    u32 a = pairs[2 * p], b = pairs[2 * p + 1];
    if (rows.length(a) > rows.length(b)) {
      const u32 swapped = a;
      a = b;
      b = swapped;
    }
    const i64 low = rows.begins[b], high = rows.ends[b];
    u64 found = 0;
    for (i64 arc = rows.begins[a] + lane; arc < rows.ends[a]; arc += WARP) {
      const u32 w = rows.targets[arc];
      i64 first = low, last = high;
      while (first < last) {
        const i64 middle = (first + last) / 2;
        if (rows.targets[middle] < w)
          first = middle + 1;
        else
          last = middle;
      }
      if (first == high || rows.targets[first] != w) continue;
      found += 1;
      if (each) atomicAdd((u64*)(each + w), 1);
    }
    found = warp_sum(found);
    if (lane == 0) counts[p] = found;
  }
}
