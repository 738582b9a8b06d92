// Targets in fewer bytes: those of 24 bits written by adjacent warps, read by lanes and by whole warps.
#include "cuda.h"  // first: it stands in for CUDA

#include "walk_arcs.cuh"
#include "warp_read_row.cuh"

// Packs targets, of which each warp takes `range` at a time.
extern "C" void pack_targets(int blocks, i64 n, i64 range, const u32* given, u32* packed) {
  fibres::launch(blocks, [=] {
    for (i64 low = grid_thread() / WARP * range; low < n;
         low += grid_threads() / WARP * range) {
      const i64 high = min(low + range, n);
      for (i64 first = low; first < high; first += WARP) {
        const i64 mine = first + lane_index();
        const u32 target = mine < high ? given[mine] : EMPTY;
        put_targets24(packed, first, (u32)min(high - first, (i64)WARP), target);
      }
    }
  });
}

// Reads the targets of arcs low..high - 1 one by one, by lanes that help each other, and by lines.
template <class W>
static void read(const u32* targets, const W* type, i64 low, i64 high, u32* single, u32* by_lanes,
                 u32* lines) {
  fibres::launch(1, [=] {
    for (i64 j = low + grid_thread(); j < high; j += grid_threads())
      single[j] = target_at(targets, type, j);
    // Rows of seven arcs.
    for (i64 first = low + warp_index() * WARP; first < high; first += grid_threads()) {
      const i64 j = first + lane_index(), end = min(low + (j - low) / 7 * 7 + 7, high);
      const bool follows = j + 1 < end && lane_index() < WARP - 1;
      const u32 target = target_of_lane(targets, type, j, j < high, follows);
      if (j < high) by_lanes[j] = target;
    }
    const i64 step = grid_threads() / WARP * LINE;
    for (i64 j = begin_read(type, low, high) + warp_index() * LINE; j < high; j += step) {
      u32 target[LANE_ARCS];
      read_targets(targets, type, j, low, high, target);
      for (int q = 0; q < LANE_ARCS; ++q) {
        const i64 k = j + q * WARP + lane_index();
        if (k >= low && k < high) lines[k] = target[q];
      }
    }
  });
}

extern "C" void read_short(const u32* targets, i64 low, i64 high, u32* single, u32* by_lanes,
                           u32* lines) {
  read(targets, (const Weights8Targets24*)nullptr, low, high, single, by_lanes, lines);
}

extern "C" void read_packed(const u32* targets, const void* heads, i64 low, i64 high, u32* single,
                            u32* by_lanes, u32* lines) {
  read(targets, (const Packed*)heads, low, high, single, by_lanes, lines);
}
