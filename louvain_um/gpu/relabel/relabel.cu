// Communities between levels: relabelling them for the next level, their sums, splitting them into
// connected parts, and numbering them by size.
//
// Vertices are dealt to threads in turns, arcs to warps; entries per community are written by
// atomics that commute, so that no result depends on the order of threads. Kernels marked
// cooperative hold the whole grid.
#include "columns.cuh"
#include "search.cuh"
#include "union_find.cuh"
#include "walk_arcs.cuh"

#define BOUNDS __launch_bounds__(THREADS, 4)
// Arcs that a warp takes at a time.
#define RANGE_ARCS 1024

// Visits all arcs, 32 rows per warp: visit(arc, v) with v the arc's source, or with arc -1.
template <class W, class F>
__device__ __forceinline__ void visit_rows(i64 n, const i64* offsets, const W* weights, F visit) {
  for (i64 v = grid_thread(); v - lane_index() < n; v += grid_threads()) {
    const Row row = v < n ? row_of(weights, offsets, v) : Row{0, 0};
    u32 total;
    walk_lanes(u32(row.arcs()), row.low, total, [&](const i64* at, const u32* owner, u32) {
#pragma unroll
      for (int d = 0; d < DEPTH; ++d) visit(at[d], __shfl_sync(FULL, (u32)v, owner[d]));
      return true;
    });
  }
}

// The same where rows follow each other and begin where offsets of 64 bits say: one range of arcs
// per warp.
template <class W, class F>
__device__ __forceinline__ void visit_all_arcs(i64 n, const i64* offsets, const W* weights,
                                               F visit) {
  if constexpr (lengths_in_offsets<W> || same<W, PackedOffsets32>)
    return visit_rows(n, offsets, weights, visit);
  const i64 arcs = offsets[n], range = warp_range(arcs, RANGE_ARCS);
  for (i64 low = grid_thread() / WARP * range; low < arcs;
       low += grid_threads() / WARP * range) {
    u32 mine = 0;
    auto source = [&](i64 v) {
      mine = v;
      return offsets[v];
    };
    walk_rows(offsets, find_row(offsets, 0, n, low), n, low, min(low + range, arcs), source,
              [&](const i64* at, const u32* owner, i64) {
#pragma unroll
                for (int d = 0; d < DEPTH; ++d) visit(at[d], __shfl_sync(FULL, mine, owner[d]));
                return true;
              });
  }
}

// Leiden's next level starts in the communities of this one: new_start[s] becomes the smallest
// refined community in the community of refined community s. numbers[v] is the refined community
// of v; `first` has one entry per vertex. Counts the communities. Cooperative.
__global__ void BOUNDS relabel_communities(i64 n, const u32* labels, const u32* numbers, u32* first,
                                           u32* new_start, RelabelResult* result) {
  for (i64 v = grid_thread(); v < n; v += grid_threads()) first[v] = EMPTY;
  grid_sync(&result->barrier);
  for (i64 v = grid_thread(); v < n; v += grid_threads()) {
    u32* smallest = first + labels[v];
    u32 number = numbers[v];
    // A plain read saves most vertices of a large community the atomic.
    if (*(volatile u32*)smallest > number) atomicMin(smallest, number);
  }
  grid_sync(&result->barrier);
  u64 communities = 0;
  for (i64 v = grid_thread(); v < n; v += grid_threads()) {
    new_start[numbers[v]] = first[labels[v]];
    communities += first[v] != EMPTY;
  }
  communities = block_sum(communities);
  if (threadIdx.x == 0 && communities) atomicAdd(&result->communities, communities);
}

// Sums the communities that a level starts in. totals: degree sums by label; used: whether a label
// has members; both with one entry per vertex. Cooperative.
template <class W, class A>
__global__ void BOUNDS sum_communities(i64 n, const i64* offsets, const u32* targets,
                                       const W* weights, const A* loops, const A* degrees,
                                       const u32* start, A* totals, u32* used,
                                       RelabelResult* result) {
  const i64 thread = grid_thread(), threads = grid_threads();
  for (i64 v = thread; v < n; v += threads) totals[v] = used[v] = 0;
  grid_sync(&result->barrier);
  u64 inside = 0;
  for (i64 v = thread; v - lane_index() < n; v += threads) {
    u32 c = v < n ? start[v] : EMPTY;
    u32 peers = __match_any_sync(FULL, c);
    A sum = sum_of_peers(peers, v < n ? degree_of(weights, degrees, offsets, v) : A(0));
    if (c == EMPTY) continue;
    if (loops) inside += 2 * (u64)loops[v];
    if (lane_index() != __ffs(peers) - 1) continue;
    if (sum) reduce_add(totals + c, sum);
    used[c] = 1;
  }
  visit_all_arcs(n, offsets, weights, [&](i64 arc, u32 v) {
    if (arc >= 0 && start[target_at(targets, weights, arc)] == start[v])
      inside += weight_at(weights, arc);
  });
  inside = block_sum(inside);
  if (threadIdx.x == 0 && inside) atomicAdd(&result->inside, inside);
  grid_sync(&result->barrier);
  Squares squares;
  u64 communities = 0;
  for (i64 c = thread; c < n; c += threads) {
    squares.add(totals[c]);
    communities += used[c];
  }
  squares.publish(result->squares);
  communities = block_sum(communities);
  if (threadIdx.x == 0 && communities) atomicAdd(&result->communities, communities);
}

// Adds each vertex' mass to that of its community; `sums` is 0 before.
__global__ void BOUNDS add_masses(i64 n, const u64* masses, const u32* numbers, u64* sums) {
  for (i64 v = grid_thread(); v - lane_index() < n; v += grid_threads()) {
    const u32 c = v < n ? numbers[v] : EMPTY, peers = __match_any_sync(FULL, c);
    const u64 sum = sum_of_peers(peers, v < n ? masses[v] : 0ull);
    if (c != EMPTY && lane_index() == __ffs(peers) - 1 && sum) atomicAdd(sums + c, sum);
  }
}

// Adds up, of each community, its arcs' weight inside (loops twice) and its total degree, and if
// `parts` names the connected part of each vertex by its smallest member, its arcs inside and its
// parts: the rows of `sums`, each with an entry per community, 0 before. A warp takes a row.
// `weights`, `loops` and `parts` may be null.
__global__ void BOUNDS weigh_communities(i64 n, i64 communities, const i64* offsets,
                                         const u32* targets, const void* weights, i64 type,
                                         const u64* loops, const u32* labels, const u32* parts,
                                         u64* sums) {
  for (i64 v = grid_thread() / WARP; v < n; v += grid_threads() / WARP) {
    const u32 own = labels[v], lane = lane_index();
    u64 within = lane == 0 && loops ? 2 * loops[v] : 0, degree = within, joined = 0;
    for (i64 j = offsets[v] + lane; j < offsets[v + 1]; j += WARP) {
      const u64 weight = weights ? integer_at(weights, type, j) : 1;
      degree += weight;
      if (labels[targets[j]] != own) continue;
      within += weight;
      ++joined;
    }
    within = warp_sum(within);
    degree = warp_sum(degree);
    joined = warp_sum(joined);
    if (lane) continue;
    if (within) atomicAdd(sums + own, within);
    if (degree) atomicAdd(sums + communities + own, degree);
    if (!parts) continue;
    if (joined) atomicAdd(sums + 2 * communities + own, joined);
    if (parts[v] == v) atomicAdd(sums + 3 * communities + own, 1ull);
  }
}

// Adds, for each arc, whether both ends are in the same community.
__global__ void BOUNDS count_together(i64 n, const i64* offsets, const u32* targets,
                                      const u32* labels, u32* counts) {
  visit_all_arcs(n, offsets, (const Unweighted*)0, [&](i64 arc, u32 v) {
    if (arc >= 0) counts[arc] += labels[targets[arc]] == labels[v];
  });
}

// Writes each vertex' largest count << 32 | ~target, of the smallest target; 0 without arcs. A warp
// takes a row.
__global__ void BOUNDS strongest_arcs(i64 n, const i64* offsets, const u32* targets,
                                      const u32* counts, u64* strongest) {
  for (i64 v = grid_thread() / WARP; v < n; v += grid_threads() / WARP) {
    u64 most = 0;
    for (i64 j = offsets[v] + lane_index(); j < offsets[v + 1]; j += WARP)
      most = max(most, (u64)counts[j] << 32 | (u32)~targets[j]);
    most = warp_max(most);
    if (lane_index() == 0) strongest[v] = most;
  }
}

// Clears the counts of arcs below `least`, unless one end has chosen the other (EMPTY: none). Adds
// arcs that are left with fewer than `all` to `undecided`.
__global__ void BOUNDS drop_weak(i64 n, const i64* offsets, const u32* targets, const u32* chosen,
                                 u32 least, u32 all, u32* counts, u64* undecided) {
  u64 differing = 0;
  visit_all_arcs(n, offsets, (const Unweighted*)0, [&](i64 arc, u32 v) {
    if (arc < 0) return;
    const u32 u = targets[arc], count = counts[arc];
    if (count < least && chosen[v] != u && chosen[u] != v)
      counts[arc] = 0;
    else
      differing += count < all;
  });
  differing = block_sum(differing);
  if (threadIdx.x == 0 && differing) atomicAdd(undecided, differing);
}

// How a level's targets are kept, other than in 32 bits each.
#define SORTED_ROWS 1    // Packed, PackedWeights16
#define SHORT_OFFSETS 2  // PackedOffsets32
#define SHORT_TARGETS 3  // Weights8Targets24

// Joins the two ends of every arc inside a community.
template <class W>
__device__ void join_ends(i64 n, const i64* offsets, const u32* targets, const W* weights,
                          const u32* labels, u32* parents) {
  visit_all_arcs(n, offsets, weights, [&](i64 arc, u32 v) {
    if (arc < 0) return;
    u32 u = target_at(targets, weights, arc);
    if (u >= v || labels[u] != labels[v]) return;
    join_parts(parents, u, v);
  });
}

// Gives each connected part of a community its smallest member as label, in place. A vertex without
// arcs is a part of its own. Parents are never greater than their children, so that the root of a
// part is its smallest member. Parts that hold fixed vertices stay one; `fixed` may be null, and
// `first` is scratch with one entry per vertex. `form` says how targets are kept (FORMS of
// relabel.py); `heads` are those of packed ones. Cooperative.
__global__ void BOUNDS split_communities(i64 n, const i64* offsets, const u32* targets,
                                         const void* heads, u32 form, const u64* fixed, u32* first,
                                         u32* labels, u32* parents, RelabelResult* result) {
  for (i64 v = grid_thread(); v < n; v += grid_threads()) parents[v] = v;
  grid_sync(&result->barrier);
  if (form == SORTED_ROWS)
    join_ends(n, offsets, targets, (const Packed*)heads, labels, parents);
  else if (form == SHORT_OFFSETS)
    join_ends(n, offsets, targets, (const PackedOffsets32*)heads, labels, parents);
  else if (form == SHORT_TARGETS)
    join_ends(n, offsets, targets, (const Weights8Targets24*)0, labels, parents);
  else
    join_ends(n, offsets, targets, (const Unweighted*)0, labels, parents);
  if (fixed) {
    for (i64 v = grid_thread(); v < n; v += grid_threads()) first[v] = EMPTY;
    grid_sync(&result->barrier);
    for (i64 v = grid_thread(); v < n; v += grid_threads())
      if (fixed[v]) atomicMin(first + labels[v], (u32)v);
    grid_sync(&result->barrier);
    for (i64 v = grid_thread(); v < n; v += grid_threads())
      if (fixed[v]) join_parts(parents, first[labels[v]], v);
  }
  grid_sync(&result->barrier);
  for (i64 v = grid_thread(); v < n; v += grid_threads()) labels[v] = root_of(parents, v);
}

// Sets each community's size and smallest member (`first`), both with one entry per name, and
// result->communities. Cooperative.
__global__ void BOUNDS size_communities(i64 n, i64 names, const u32* labels, u32* sizes, u32* first,
                                        RelabelResult* result) {
  const i64 thread = grid_thread(), threads = grid_threads();
  for (i64 c = thread; c < names; c += threads) {
    sizes[c] = 0;
    first[c] = EMPTY;
  }
  grid_sync(&result->barrier);
  for (i64 v = thread; v - lane_index() < n; v += threads) {
    u32 c = v < n ? labels[v] : EMPTY;
    u32 peers = __match_any_sync(FULL, c);
    if (c == EMPTY || lane_index() != __ffs(peers) - 1) continue;
    reduce_add(sizes + c, (u32)__popc(peers));
    if (*(volatile u32*)(first + c) > v) atomicMin(first + c, (u32)v);
  }
  grid_sync(&result->barrier);
  u64 communities = 0;
  for (i64 c = thread; c < names; c += threads) communities += first[c] != EMPTY;
  communities = block_sum(communities);
  if (threadIdx.x == 0 && communities) atomicAdd(&result->communities, communities);
}

// Sets one key per community, in any order; ascending keys are descending sizes, ties by smallest
// member. Counts result->communities down.
__global__ void BOUNDS key_communities(i64 names, const u32* sizes, const u32* first, u64* keys,
                                       RelabelResult* result) {
  for (i64 c = grid_thread(); c - lane_index() < names; c += grid_threads()) {
    const u32 smallest = c < names ? first[c] : EMPTY;
    const u32 used = __ballot_sync(FULL, smallest != EMPTY), count = __popc(used);
    u64 end = 0;
    if (lane_index() == 0 && count) end = atomicAdd(&result->communities, 0 - (u64)count);
    end = __shfl_sync(FULL, end, 0);
    if (smallest == EMPTY) continue;
    keys[end - 1 - __popc(used >> lane_index() >> 1)] = (u64)~sizes[c] << 32 | smallest;
  }
}

// Renumbers labels by the order of sorted keys; `places` has one entry per name. Cooperative.
__global__ void BOUNDS number_communities(i64 n, i64 communities, const u64* keys, u32* places,
                                          u32* labels, RelabelResult* result) {
  for (i64 i = grid_thread(); i < communities; i += grid_threads())
    places[labels[(u32)keys[i]]] = i;
  grid_sync(&result->barrier);
  for (i64 v = grid_thread(); v < n; v += grid_threads()) labels[v] = places[labels[v]];
}

// Sets labels[v] to map[from[v]]; a null map or `from` is the identity.
__global__ void BOUNDS follow(i64 n, const u32* map, const u32* from, u32* labels) {
  for (i64 v = grid_thread(); v < n; v += grid_threads()) {
    u32 x = from ? from[v] : v;
    labels[v] = map ? map[x] : x;
  }
}

// Sums statistics of degrees: stats[0] becomes the largest, stats[1] the sum of their squares,
// stats[2] the number of vertices without arcs, stats[3] the arcs of vertices of degree above
// `hub_degree`. All are 0 before.
__global__ void BOUNDS survey_degrees(i64 n, const i64* offsets, u64 hub_degree, u64* stats) {
  u64 max_degree = 0, squares = 0, isolated = 0, hub_arcs = 0;
  for (i64 v = grid_thread(); v < n; v += grid_threads()) {
    u64 degree = offsets[v + 1] - offsets[v];
    max_degree = max(max_degree, degree);
    squares += degree * degree;
    isolated += degree == 0;
    hub_arcs += degree > hub_degree ? degree : 0;
  }
  max_degree = warp_max(max_degree);
  squares = block_sum(squares);
  isolated = block_sum(isolated);
  hub_arcs = block_sum(hub_arcs);
  if (lane_index() == 0 && max_degree) atomicMax(stats, max_degree);
  if (threadIdx.x == 0) {
    atomicAdd(stats + 1, squares);
    atomicAdd(stats + 2, isolated);
    atomicAdd(stats + 3, hub_arcs);
  }
}

// Whether an arc joins two vertices; targets are ascending within a row. The shorter row is searched.
__device__ bool joined_by_arc(const i64* offsets, const u32* targets, u32 u, u32 v) {
  if (offsets[u + 1ll] - offsets[u] > offsets[v + 1ll] - offsets[v]) {
    const u32 longer = u;
    u = v;
    v = longer;
  }
  const i64 low = offsets[u], high = offsets[u + 1ll];
  return targets[low + last_at_most(targets + low, (u32)(high - low), v)] == v;
}

// Counts pairs of neighbours that are drawn by numbers from 0 to 1: of each of three rows, one per
// pair. The first draws an arc, at whose end the others draw two neighbours. stats[0] becomes the
// number of pairs of two vertices, stats[1] that of pairs that are neighbours; both are 0 before.
__global__ void BOUNDS sample_wedges(i64 wedges, const i64* offsets, const u32* targets, i64 arcs,
                                     const double* draws, u64* stats) {
  u64 pairs = 0, joined = 0;
  for (i64 i = grid_thread(); i < wedges; i += grid_threads()) {
    const u32 centre = targets[(i64)(draws[i] * arcs)];
    const i64 row = offsets[centre], degree = offsets[centre + 1ll] - row;
    const i64 first = (i64)(draws[wedges + i] * degree);
    const i64 second = (i64)(draws[2 * wedges + i] * degree);
    if (first == second) continue;
    ++pairs;
    joined += joined_by_arc(offsets, targets, targets[row + first], targets[row + second]);
  }
  pairs = block_sum(pairs);
  joined = block_sum(joined);
  if (threadIdx.x == 0) {
    atomicAdd(stats, pairs);
    atomicAdd(stats + 1, joined);
  }
}

// A neighbour that a number from 0 to 1 draws.
__device__ u32 drawn_neighbour(const i64* offsets, const u32* targets, u32 v, double draw) {
  const i64 row = offsets[v], degree = offsets[v + 1ll] - row;
  return targets[row + (i64)(draw * degree)];
}

// Counts paths of three arcs, each around an arc that is drawn, and walks from where such arcs end,
// `walks` from the same vertex. stats[0] becomes the number of paths of four vertices, stats[1] that of
// paths whose ends an arc joins; both are 0 before. ends[i] is where walk i ends.
__global__ void BOUNDS sample_structure(i64 samples, i64 walks, i64 steps, const i64* offsets,
                                        const u32* targets, i64 arcs, const double* draws, u32* ends,
                                        u64* stats) {
  u64 paths = 0, joined = 0;
  for (i64 i = grid_thread(); i < samples; i += grid_threads()) {
    const double* draw = draws + i;
    const u32 u = targets[(i64)(*draw * arcs)];
    const u32 v = drawn_neighbour(offsets, targets, u, *(draw += samples));
    const u32 of_u = drawn_neighbour(offsets, targets, u, *(draw += samples));
    const u32 of_v = drawn_neighbour(offsets, targets, v, *(draw += samples));
    if (of_u != v && of_v != u && of_u != of_v) {
      ++paths;
      joined += joined_by_arc(offsets, targets, of_u, of_v);
    }
    u32 at = targets[(i64)(draws[i / walks] * arcs)];
    for (i64 step = 0; step < steps; ++step)
      at = drawn_neighbour(offsets, targets, at, *(draw += samples));
    ends[i] = at;
  }
  paths = block_sum(paths);
  joined = block_sum(joined);
  if (threadIdx.x == 0) {
    atomicAdd(stats, paths);
    atomicAdd(stats + 1, joined);
  }
}
