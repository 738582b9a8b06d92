// Shortest paths by a near and a far pile (Davidson and others, 2014). Writes distances, −1 where
// not reached, and the smallest neighbour on a shortest path as parent. Cooperative.
#include "linked_rows.cuh"

#define UNREACHED 0xFFFFFFFFFFFFFFFFull

// Zero before, but for `closest`. Rounds take turns with three counters, as in bfs.cu.
struct PathState {
  Barrier barrier;
  u64 near[3];
  u64 far[2];
  u64 closest[2];
};
static_assert(sizeof(PathState) <= STATE_BYTES, "the control block holds it");

// near, far: two piles of n vertices each. stamps: the last round for which a vertex was queued.
// is_far: whether it is on the far pile.
template <class W, template <class> class Rows>
__global__ void BOUNDS sssp(Rows<W> rows, u32 source, u64 width, u64* distances, i64* parents,
                            u32* near, u32* far, u32* stamps, u32* is_far, i64* before,
                            i64* partials, PathState* state) {
  const i64 n = rows.n, thread = grid_thread(), threads = grid_threads();
  Barrier* barrier = &state->barrier;
  for (i64 v = thread; v < n; v += threads) {
    distances[v] = v == source ? 0 : UNREACHED;
    stamps[v] = is_far[v] = 0;
  }
  if (thread == 0) {
    near[0] = source;
    state->closest[0] = state->closest[1] = UNREACHED;
  }
  grid_sync(barrier);
  u32 *next = near + n, *other = far + n, round = 0, raised = 0;
  u64 limit = width;
  i64 items = 1;
  while (true) {
    while (items) {
      u64* count = &state->near[(round + 1) % 3];
      scan_frontier(rows, near, items, before, partials, barrier);
      if (thread == 0) state->near[(round + 2) % 3] = 0;
      advance(rows, near, items, before, [&](u32 u, i64 arc, i64) {
        const u32 v = rows.targets[arc];
        const u64 length = *(volatile u64*)(distances + u) + rows.weight(arc);
        if (length >= distances[v] || atomicMin(distances + v, length) <= length) return;
        if (length < limit) {
          if (atomicMax(stamps + v, round + 1) <= round) next[atomicAdd(count, 1)] = v;
        } else if (atomicCAS(is_far + v, 0u, 1u) == 0) {
          far[atomicAdd(&state->far[raised % 2], 1)] = v;
        }
      });
      grid_sync(barrier);
      items = *(volatile u64*)count;
      u32* swapped = near;
      near = next;
      next = swapped;
      ++round;
    }
    // The near pile is empty: raise the limit above the closest vertex of the far one.
    const i64 waiting = *(volatile u64*)&state->far[raised % 2];
    u64 closest = UNREACHED;
    for (i64 i = thread; i < waiting; i += threads) {
      const u64 distance = distances[far[i]];
      if (distance >= limit && distance < closest) closest = distance;
    }
    if (closest != UNREACHED) atomicMin(&state->closest[raised % 2], closest);
    grid_sync(barrier);
    closest = *(volatile u64*)&state->closest[raised % 2];
    if (closest == UNREACHED) break;
    const u64 before_limit = limit;
    limit = closest + width < closest ? UNREACHED : closest + width;
    u64* count = &state->near[(round + 1) % 3];
    if (thread == 0) state->near[(round + 2) % 3] = 0;
    for (i64 i = thread; i < waiting; i += threads) {
      const u32 v = far[i];
      const u64 distance = distances[v];
      if (distance >= limit) {
        other[atomicAdd(&state->far[(raised + 1) % 2], 1)] = v;
        continue;
      }
      is_far[v] = 0;
      if (distance >= before_limit) next[atomicAdd(count, 1)] = v;
    }
    grid_sync(barrier);
    if (thread == 0) {
      // Everything was read; the next round, which begins with a barrier, fills them again.
      state->far[raised % 2] = 0;
      state->closest[raised % 2] = UNREACHED;
    }
    items = *(volatile u64*)count;
    u32* swapped = far;
    far = other;
    other = swapped;
    swapped = near;
    near = next;
    next = swapped;
    ++round;
    ++raised;
  }
  fold_rows(
      rows, EMPTY, [&](i64) { return true; },
      [&](i64 v, i64 arc) {
        const u32 u = rows.targets[arc];
        const bool shortest = distances[u] != UNREACHED && v != source &&
                              distances[u] + rows.weight(arc) == distances[v];
        return shortest ? u : EMPTY;
      },
      [](u32 a, u32 b) { return a < b ? a : b; },
      [&](i64 v, u32 parent) {
        parents[v] = v == source ? v : parent == EMPTY ? -1 : i64(parent);
      });
}
