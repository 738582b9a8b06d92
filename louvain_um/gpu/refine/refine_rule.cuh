// The rule of refinement, and the steps around deciding: start alone, weigh, apply joins.
#pragma once
#include "changes.cuh"
#include "deal_rows.cuh"
#include "decide.cuh"
#include "enqueue.cuh"
#include "sums.cuh"

// Whether a sub-community is well connected: its weight to the rest of its community is at least
// what is expected at random (Traag et al. 2019, §3).
template <class A>
__device__ __forceinline__ bool well_connected(A external, A total, A community_total,
                                               double rate) {
  return __ull2double_rn(external) >= __dmul_rn(__dmul_rn(rate, __ull2double_rn(total)),
                                                __ull2double_rn(community_total - total));
}

// What is known of a sub-community: the sum of its degrees, and its weight to the rest of its
// community. Both are looked up together, at random places.
template <class A>
struct alignas(2 * sizeof(A)) Part {
  A total, external;
};

__device__ __forceinline__ void add_to_part(Part<u32>* part, u32 total, u32 external) {
  // One word: no total becomes too large for its half, and what carries out of the other is lost.
  reduce_add((u64*)part, (u64)external << 32 | total);
}
__device__ __forceinline__ void add_to_part(Part<u64>* part, u64 total, u64 external) {
  reduce_add(&part->total, total);
  reduce_add(&part->external, external);
}

// The labels of a vertex's neighbours are the sub-communities of its own community; those of other
// communities do not count.
template <class W, class A>
struct RefineRule {
  using Accumulator = A;
  static constexpr bool unweighted = ::unweighted<W>;
  static constexpr bool wants_best_weight = true, extended = false, bounded = false;
  // Whether no vertex has a loop and every arc weighs 1, and the host may have where rows begin.
  static constexpr bool compact = unweighted && !same<W, Unweighted>;
  const i64* offsets;
  const u32* targets;
  const W* weights;
  const A* degrees;
  const u32* labels;   // community per vertex
  const A* totals;     // sum of degrees per community
  u32* refined;        // sub-community per vertex
  Part<A>* parts;  // per sub-community
  u8* sub_sizes;       // vertices per sub-community: 0, 1, or 2 for more
  u32* queue;
  u32* proposed;        // per entry of the queue: sub-community to join, EMPTY for none
  A* weight_to_target;  // per entry of the queue: weight to the proposed sub-community
  double rate;          // resolution / 2m
  u32 seed;
  u32 salt;
  u32 sub_rounds;
  u32 sub_round;  // the one at work

  struct Vertex {
    u32 own;
    u32 community;
    A community_total;
    double pull;
    bool idle;
  };

  __device__ __forceinline__ A degree(i64 v) const {
    return degree_of(weights, degrees, offsets, v);
  }

  // A vertex is idle unless it is alone in its sub-community and well connected.
  __device__ __forceinline__ Vertex vertex(u32 v) const {
    // Of a vertex that has joined others, nothing is left.
    if (sub_sizes[v] != 1) return {v, EMPTY, 0, 0.0, true};
    u32 community = labels[v];
    // Its degree: alone, it is all of its sub-community. The host may have where its row begins.
    const Part<A> part = parts[v];
    const A community_total = totals[community];
    bool idle = !well_connected(part.external, part.total, community_total, rate);
    return {v, community, community_total, __dmul_rn(rate, __ull2double_rn(part.total)), idle};
  }

  __device__ __forceinline__ u32 label(const Vertex& x, u32 u) const {
    return labels[u] == x.community ? refined[u] : EMPTY;
  }

  // A sub-community of one vertex is not eligible while that vertex may move itself.
  __device__ __forceinline__ Choice choice(const Vertex& x, u32 sub, A weight) const {
    const Part<A> part = parts[sub];
    Choice it = {score_of(weight, x.pull, part.total), sub};
    if (it.score <= 0.0 || (sub_sizes[sub] == 1 && bucket(sub, salt, sub_rounds) == sub_round) ||
        !well_connected(part.external, part.total, x.community_total, rate))
      it.community = EMPTY;
    return it;
  }

  __device__ __forceinline__ void propose(u32 i, const Vertex&, Choice best, A, A best_weight,
                                         Tally&) const {
    proposed[i] = best.community;
    weight_to_target[i] = best_weight;
  }
};
static_assert(sizeof(RefineRule<u32, u32>) == 120, "mirrored by REFINE_RULE in refine/refine.py");

// Returns the weight of a thread's arcs among low..high - 1 inside the community `own`.
template <u32 G, class S>
__device__ __forceinline__ typename S::Accumulator weigh_row(const S& s, i64 low, i64 high,
                                                             u32 rank, u32 own) {
  typename S::Accumulator inside = 0;
  for (i64 j = low + rank; j < high; j += G)
    if (s.labels[target_at(s.targets, s.weights, j)] == own) inside += weight_at(s.weights, j);
  return inside;
}

// Sets the external weight of the vertices in queue[begin:end), each alone: the weight of its arcs
// inside its community. A group of G threads per vertex.
template <u32 G, class S>
__device__ void weigh_rows(const S& s, u32 begin, u32 end) {
  const u32 groups = gridDim.x * (THREADS / G), rank = threadIdx.x % G;
  using A = typename S::Accumulator;
  for (u32 first = begin + blockIdx.x * (THREADS / G); first < end; first += groups) {
    u32 i = first + threadIdx.x / G;
    A external = 0;
    u32 v = i < end ? s.queue[i] : 0;
    if (i < end) {
      const auto [low, high] = row_of(s.weights, s.offsets, v);
      external = weigh_row<G>(s, low, high, rank, s.labels[v]);
    }
    if constexpr (G == THREADS)
      external = block_sum(external);
    else
      for (int d = G / 2; d; d >>= 1) external += __shfl_xor_sync(FULL, external, d);
    if (i < end && rank == 0) s.parts[v].external = external;
  }
}

// The same for vertices of at most T arcs, by T / 4 lanes each.
template <u32 T, class S>
__device__ void weigh_short_rows(const S& s, u32 begin, u32 end) {
  using A = typename S::Accumulator;
  constexpr u32 G = T / ARCS_A_LANE, step = WARP / G;
  const u32 lane = threadIdx.x % WARP;
  for (u32 first = begin + grid_thread() / WARP * step; first < end;
       first += grid_threads() / WARP * step) {
    const u32 i = first + lane / G, v = i < end ? s.queue[i] : 0, own = s.labels[v];
    const Row row = i < end ? row_of(s.weights, s.offsets, v) : Row{0, 0};
    u32 target[ARCS_A_LANE];
    A weight[ARCS_A_LANE], inside = 0;
    read_arcs<T>(s, row, target, weight);
#pragma unroll
    for (u32 q = 0; q < ARCS_A_LANE; ++q)
      if (target[q] != EMPTY && s.labels[target[q]] == own) inside += weight[q];
#pragma unroll
    for (u32 d = G / 2; d; d >>= 1) inside += __shfl_xor_sync(FULL, inside, d);
    if (i < end && lane % G == 0) s.parts[v].external = inside;
  }
}

// The same for a queue whose bins begin at from[0], from[1], …; hubs' are 0 before.
template <class S, class A>
__device__ void weigh_bins(const S& s, const u32* from, Shared<A>& shared) {
  deal_rows(
      s, from[HUB], from[BLOCK], shared, [](u32) { return true; },
      [&](u32 i, i64 low, i64 high) {
        const u32 v = s.queue[i];
        A inside = weigh_row<THREADS>(s, low, high, threadIdx.x, s.labels[v]);
        inside = block_sum(inside);
        if (threadIdx.x == 0 && inside) atomicAdd(&s.parts[v].external, inside);
      });
  weigh_rows<THREADS>(s, from[BLOCK], from[PER_WARP]);
  weigh_rows<WARP>(s, from[PER_WARP], from[TILE32]);
  weigh_short_rows<32>(s, from[TILE32], from[TILE16]);
  weigh_short_rows<16>(s, from[TILE16], from[TILE8]);
  weigh_short_rows<8>(s, from[TILE8], from[TILE4]);
  weigh_short_rows<4>(s, from[TILE4], from[BINS]);
}

// Adds the doubled weight inside all communities, and the squares of their totals, to `sums`; each
// vertex is alone, and weighed. Inlined, it would take registers from all that follows.
template <class A>
__device__ __noinline__ void sum_communities(i64 n, const Part<A>* parts, const A* loops,
                                             const A* totals, RelabelResult* sums) {
  u64 inside = 0;
  Squares squares;
  for (i64 v = grid_thread(); v < n; v += grid_threads()) {
    inside += parts[v].external;
    if (loops) inside += 2 * (u64)loops[v];
    squares.add(totals[v]);
  }
  squares.publish(sums->squares);
  inside = block_sum(inside);
  if (threadIdx.x == 0 && inside) atomicAdd(&sums->inside, inside);
}

// Makes every vertex a sub-community of its own.
template <class S>
__device__ void begin_refinement(const S& s, i64 n, i64 thread, i64 threads) {
  for (i64 v = thread; v < n; v += threads) {
    s.refined[v] = v;
    s.parts[v] = {s.degree(v), 0};
    s.sub_sizes[v] = 1;
    if constexpr (S::extended)
      if (s.second) s.sub_seconds[v] = s.second[v];
  }
}

// Applies the proposals of queue[begin:end), for the threads of the grid. The sub-community that a
// vertex leaves was its alone, and is empty: its entries stay as they are, unused. Where there may be
// many, changes are added up in the block's table, if it is given.
template <class S>
__device__ void apply_joins(const S& s, u32 begin, u32 end, i64 thread, i64 threads,
                            Shared<typename S::Accumulator>* block = nullptr) {
  using A = typename S::Accumulator;
  const bool many = block && end - begin >= gridDim.x * CHANGES_A_BLOCK;
  const Changes<A> changes = {block};
  auto put = [&](u32 sub, const A(&change)[2]) {
    s.sub_sizes[sub] = 2;  // whoever it was joined by: no vertex of it leaves again
    add_to_part(s.parts + sub, change[0], change[1]);
  };
  for (i64 i = begin + thread; i < end; i += threads) {
    u32 target = s.proposed[i];
    if (target == EMPTY) continue;
    u32 v = s.queue[i];
    s.refined[v] = target;
    s.sub_sizes[v] = 0;
    const Part<A> part = s.parts[v];
    const A joined[] = {part.total, part.external - (A)2 * s.weight_to_target[i]};
    if (!many || !changes.add(target, joined)) put(target, joined);
    if constexpr (S::extended)
      if (s.second) atomicAdd(s.sub_seconds + target, s.second[v]);
  }
  if (many) changes.template flush<2>(put);
}
