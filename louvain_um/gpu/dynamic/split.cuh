// Which parts of communities a batch separated, from the ends of the edges that it removed.
//
// Ends that still share a neighbour in their community are not separated. Otherwise a warp searches
// from each end; a community that a search cannot tell of is read whole (follow.cu). What is found
// depends on neither the order of edges nor that of threads. cpu/dynamic/split.py finds the same.
#pragma once
#include "follow.cuh"

// Members, and about as many arcs, up to which a part is searched for.
#define MOST_PART WARP
#define MOST_PART_ARCS 1024
// What a search found that did not come to the end of a part.
#define HELD 0
#define UNKNOWN (-1)

// Whether a row contains a target.
__device__ __forceinline__ bool contains(const Follow& f, Row row, u32 target) {
  const u32 at = last_at_most(f.targets + row.low, row.arcs(), target);
  return row.arcs() && f.targets[row.low + at] == target;
}

// Whether two vertices are neighbours.
__device__ __forceinline__ bool adjacent(const Follow& f, u32 u, u32 v) {
  const Row row = f.spans[u], other = f.spans[v];
  return row.arcs() < other.arcs() ? contains(f, row, v) : contains(f, other, u);
}

// Whether an edge inside a community is gone, and that community's name.
__device__ __forceinline__ bool was_removed(const Follow& f, i64 e, u32& own) {
  const u32 u = f.u[e], v = f.v[e];
  if (u == v || f.after[e] != 0) return false;
  own = name_before(f, u);
  return own == name_before(f, v);
}

// Calls visit(item, own) for items of edges that are gone from inside a community `own`; item k is of
// edge k / each. Whole warps call, and visit for the same item; few items go to many warps.
template <class F>
__device__ __forceinline__ void visit_removed(const Follow& f, u32 each, F visit) {
  const i64 items = each * f.edges, warps = grid_threads() / WARP;
  const i64 width = max((i64)1, min(items / warps, (i64)WARP));
  for (i64 low = grid_thread() / WARP * width; low < items; low += warps * width) {
    const i64 item = low + lane_index();
    u32 own = EMPTY;
    const bool mine = lane_index() < width && item < items && was_removed(f, item / each, own);
    for (u32 left = __ballot_sync(FULL, mine); left; left &= left - 1) {
      const u32 lane = __ffs(left) - 1;
      visit(low + lane, __shfl_sync(FULL, own, lane));
    }
  }
}

// Whether u and v share a neighbour in their community. Whole warps call, with the same vertices.
__device__ __forceinline__ bool held_together(const Follow& f, u32 u, u32 v, u32 own, u64& checked) {
  Row row = f.spans[u], other = f.spans[v];
  if (other.arcs() < row.arcs()) {
    const Row swap = row;
    row = other;
    other = swap;
  }
  for (i64 low = row.low; low < row.high; low += WARP) {
    const i64 j = low + lane_index();
    bool found = false;
    if (j < row.high) {
      ++checked;
      const u32 target = f.targets[j];
      found = name_before(f, target) == own && contains(f, other, target);
    }
    if (__any_sync(FULL, found)) return true;
  }
  return false;
}

// Flags as LOOSE the communities that lost an edge which may have held them together.
__device__ __forceinline__ void flag_loosened(const Follow& f, u64& checked) {
  visit_removed(f, 1, [&](i64 e, u32 own) {
    if (held_together(f, f.u[e], f.v[e], own, checked) || lane_index()) return;
    f.flags[own] = LOOSE;
    f.counts->loosened = 1;
  });
}

// Vertices by their arcs, then by descending number.
__device__ __forceinline__ u64 rank_of(const Follow& f, u32 v) {
  return (u64)f.spans[v].arcs() << 32 | (u32)~v;
}

// Makes v, which has this rank, the anchor of `own` unless that ranks higher; own EMPTY has none. Whole
// warps call.
__device__ __forceinline__ void raise_anchor(const Follow& f, u32* anchors, u32 own, u32 v,
                                             u64 rank) {
  // One lane for each community.
  u64 best = rank;
  const u32 peers = __match_any_sync(FULL, own);
  for (u32 left = peers; __any_sync(FULL, left != 0); left &= left - 1) {
    const u64 other = __shfl_sync(FULL, rank, left ? __ffs(left) - 1 : 0);
    if (left && other > best) best = other;
  }
  if (own == EMPTY || rank != best) return;
  u32 seen = *(volatile u32*)(anchors + own);
  while (rank > rank_of(f, seen)) {
    const u32 was = atomicCAS(anchors + own, seen, v);
    if (was == seen) break;
    seen = was;
  }
}

// Makes anchors[own] the member of `own` that ranks highest, for flagged communities; any member
// before. Whole warps; several vertices at a time, as each waits for the memory four times.
__device__ __forceinline__ void find_anchors(const Follow& f, u32* anchors) {
  for (i64 low = grid_thread(); low - lane_index() < f.n; low += AT_ONCE * grid_threads()) {
    u32 own[AT_ONCE], known[AT_ONCE];
    u64 rank[AT_ONCE];
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      const i64 v = low + k * grid_threads();
      own[k] = v < f.n ? name_before(f, v) : EMPTY;
    }
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k)
      if (own[k] != EMPTY && !f.flags[own[k]]) own[k] = EMPTY;
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      const u32 v = low + k * grid_threads();
      rank[k] = own[k] == EMPTY ? 0 : rank_of(f, v);
      known[k] = own[k] == EMPTY ? EMPTY : anchors[own[k]];  // or one before it, from a cache
    }
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k)
      if (own[k] != EMPTY && rank[k] <= rank_of(f, known[k])) own[k] = EMPTY;
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k)
      if (__any_sync(FULL, own[k] != EMPTY))
        raise_anchor(f, anchors, own[k], low + k * grid_threads(), rank[k]);
  }
}

// Searches the part of community `own` that holds u, breadth first. Returns HELD if it reaches the
// anchor or a neighbour of it, UNKNOWN beyond the limits, else the members of the part; lane k has
// the k-th in `member` then. Whole warps call, with the same vertices.
__device__ __forceinline__ int search_part(const Follow& f, u32 u, u32 own, u32 anchor, u32& member,
                                           u64& checked) {
  member = lane_index() == 0 ? u : EMPTY;
  if (u == anchor) return HELD;
  u32 found = 1, read = 0;
  bool fits = true;
  for (u32 done = 0; done < found; ++done) {
    const Row row = f.spans[__shfl_sync(FULL, member, done)];
    for (i64 low = row.low; low < row.high; low += WARP) {
      if (read >= MOST_PART_ARCS) return UNKNOWN;
      read += min(row.high - low, (i64)WARP);
      const i64 j = low + lane_index();
      u32 v = EMPTY;
      if (j < row.high) {
        ++checked;
        v = f.targets[j];
        if (name_before(f, v) != own) v = EMPTY;
      }
      const bool near = v != EMPTY && (v == anchor || adjacent(f, v, anchor));
      if (__any_sync(FULL, near)) return HELD;
      bool fresh = v != EMPTY;
      for (u32 k = 0; k < found; ++k) fresh &= __shfl_sync(FULL, member, k) != v;
      for (u32 left = __ballot_sync(FULL, fresh); left; left &= left - 1) {
        const u32 next = __shfl_sync(FULL, v, __ffs(left) - 1);
        if (found == MOST_PART) {
          fits = false;
          break;
        }
        if (lane_index() == found) member = next;
        ++found;
      }
    }
  }
  return fits ? (int)found : UNKNOWN;
}

// Searches from the ends of removed edges in flagged communities. Members of parts that fell off are
// marked, and `first` names these; a name that its community loses becomes EMPTY in `names`.
__device__ __forceinline__ void search_ends(const Follow& f, const u32* anchors, u32* names,
                                            u64& checked) {
  visit_removed(f, 2, [&](i64 end, u32 own) {
    if (!f.flags[own]) return;
    u32 member;
    const u32 u = end % 2 ? f.v[end / 2] : f.u[end / 2];
    const int found = search_part(f, u, own, anchors[own], member, checked);
    if (found == UNKNOWN && lane_index() == 0) {
      f.flags[own] = FALLEN;
      f.counts->flagged = 1;
    }
    // As many lanes have a member; none unless the search came to an end.
    const bool mine = (int)lane_index() < found;
    u32 smallest = mine ? member : EMPTY;
    for (u32 d = WARP / 2; d; d /= 2) smallest = min(smallest, __shfl_xor_sync(FULL, smallest, d));
    if (!mine) return;
    f.first[member] = smallest;
    f.marks[member] |= FELL;
    if (member != own) return;
    names[own] = EMPTY;
    f.counts->unnamed = 1;
  });
}
