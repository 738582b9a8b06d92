// Minimum spanning forest by Borůvka's rounds. Writes edges, smaller end << 32 | larger end, in any
// order, and their weights. Edges are ordered by (weight, smaller end, larger end). Cooperative.
#include "linked_rows.cuh"

#define NONE 0xFFFFFFFFFFFFFFFFull  // no pair of ends, and more than any weight

// An arc of a row: the order of its weight and target is that of weight and ends.
struct Lightest {
  u64 weight;
  u32 target;
};

__device__ __forceinline__ Lightest lane_from(Lightest value, int lane) {
  return {__shfl_sync(FULL, value.weight, lane), __shfl_sync(FULL, value.target, lane)};
}

// Zero before. Rounds take turns with three counters, as in bfs.cu.
struct ForestState {
  Barrier barrier;
  u64 edges;
  u64 hooked[3];
};
static_assert(sizeof(ForestState) <= STATE_BYTES, "the control block holds it");

// Arrays have one entry per vertex; those by component are indexed by its root.
template <class W, template <class> class Rows>
__global__ void BOUNDS spanning_forest(Rows<W> rows, u32* component, u32* hook, u32* choice,
                                       u64* choice_weight, u64* weight, u64* pair, u64* edges,
                                       u64* edge_weights, ForestState* state) {
  const i64 n = rows.n, thread = grid_thread(), threads = grid_threads();
  Barrier* barrier = &state->barrier;
  for (i64 v = thread; v < n; v += threads) {
    component[v] = hook[v] = choice[v] = v;
    weight[v] = pair[v] = NONE;
  }
  grid_sync(barrier);
  for (u32 round = 0;; ++round) {
    // A vertex all of whose arcs are inside its component never gets another choice.
    fold_rows(
        rows, Lightest{NONE, EMPTY}, [&](i64 v) { return choice[v] != EMPTY; },
        [&](i64 v, i64 arc) {
          const u32 u = rows.targets[arc];
          const bool leaves = round == 0 || component[u] != component[v];
          return leaves ? Lightest{rows.weight(arc), u} : Lightest{NONE, EMPTY};
        },
        [](Lightest a, Lightest b) {
          return a.weight < b.weight || (a.weight == b.weight && a.target < b.target) ? a : b;
        },
        [&](i64 v, Lightest found) {
          choice[v] = found.target;
          choice_weight[v] = found.weight;
          u64* least = weight + component[v];
          if (found.weight < *(volatile u64*)least) atomicMin(least, found.weight);
        });
    grid_sync(barrier);
    for (i64 v = thread; v < n; v += threads) {
      const u32 u = choice[v], own = component[v];
      if (u == EMPTY || choice_weight[v] != weight[own]) continue;
      const u64 ends = (u64)min((u32)v, u) << 32 | max((u32)v, u);
      if (ends < *(volatile u64*)(pair + own)) atomicMin(pair + own, ends);
    }
    grid_sync(barrier);
    // Of two components that chose one edge, the larger root is hooked.
    u64 hooked = 0;
    for (i64 v = thread; v < n; v += threads) {
      const u64 ends = pair[v];
      if (ends == NONE) continue;
      const u32 a = component[ends >> 32], b = component[(u32)ends], other = a == v ? b : a;
      if (pair[other] == ends && v < other) continue;
      hook[v] = other;
      const u64 at = atomicAdd(&state->edges, 1);
      edges[at] = ends;
      edge_weights[at] = weight[v];
      hooked += 1;
    }
    hooked = block_sum(hooked);
    if (threadIdx.x == 0 && hooked) atomicAdd(&state->hooked[round % 3], hooked);
    if (thread == 0) state->hooked[(round + 1) % 3] = 0;
    grid_sync(barrier);
    if (*(volatile u64*)&state->hooked[round % 3] == 0) break;
    for (i64 v = thread; v < n; v += threads) {
      weight[v] = pair[v] = NONE;
      volatile u32* up = hook;
      u32 root = component[v], above = up[root];
      while (above != root) {
        // Halving: other threads may do the same, or read either value.
        const u32 top = up[above];
        up[root] = top;
        root = above;
        above = top;
      }
      component[v] = root;
    }
    grid_sync(barrier);
  }
}
