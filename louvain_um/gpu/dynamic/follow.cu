// Carrying a partition from one state of a changing graph to the next, as cpu/dynamic/inherit.py.
//
// Communities are named after their smallest member. A step reads what the steps before it wrote, in
// the order of this file; moving (gpu/move/move.cu) comes between `split_flagged` and
// `assign_names`. Sums are of integers and names are minima, so that the order of threads does not
// matter. All kernels but those that list are cooperative.
#include "split.cuh"

// Marks the ends of edges that lost weight inside a community or gained it between two, sums what
// that changes, and finds the parts that removed edges held (split.cuh). Members and degrees of
// communities follow from those before the batch: fewer atomics than to sum them. `whole` and
// `labels` are scratch, and `labels` has the names that communities keep for `split_flagged`.
__global__ void BOUNDS mark_changes(const Follow f) {
  for (i64 v = grid_thread(); v < f.n; v += grid_threads()) {
    f.marks[v] = f.flags[v] = 0;
    f.first[v] = v;
    const bool old = v < f.n_before;
    f.members[v] = old ? f.sizes_before[v] + !f.alive_before[v] : 1;  // a removed vertex is alone
    f.totals[v] = old ? f.masses_before[v] : 0;
  }
  grid_sync(&f.counts->barrier);
  i64 inside = 0;
  u64 turnover = 0, changed = 0, checked = 0;
  for (i64 low = grid_thread() - lane_index(); low < f.edges; low += grid_threads()) {
    const i64 e = low + lane_index();
    u32 u = 0, v = 0, own = EMPTY, other = EMPTY;
    i64 delta = 0;
    u64 weight = 0;  // its part of the turnover
    if (e < f.edges) {
      u = f.u[e], v = f.v[e];
      delta = f.after[e] - f.before[e];
      own = name_before(f, u), other = name_before(f, v);
      const bool same = own == other, against = same == (delta < 0);
      const u64 twice = 2 * (delta < 0 ? -delta : delta);
      inside += same ? 2 * delta : 0;
      turnover += against ? twice : 0;
      changed += twice;
      if (u != v && against) {
        f.marks[u] = f.marks[v] = MARKED;
        weight = twice / 2;
      }
    }
    add_by_peers(f.touched, weight ? u : EMPTY, weight);
    add_by_peers(f.touched, weight ? v : EMPTY, weight);
    add_by_peers(f.totals, own, (u64)delta);
    add_by_peers(f.totals, other, (u64)delta);
  }
  flag_loosened(f, checked);
  add_counted(&f.counts->inside, inside);
  add_counted(&f.counts->turnover, turnover);
  add_counted(&f.counts->changed, changed);
  grid_sync(&f.counts->barrier);
  if (*(volatile u64*)&f.counts->loosened) {
    for (i64 v = grid_thread(); v < f.n; v += grid_threads()) f.whole[v] = f.labels[v] = v;
    grid_sync(&f.counts->barrier);
    find_anchors(f, f.whole);
    grid_sync(&f.counts->barrier);
    search_ends(f, f.whole, f.labels, checked);
  }
  add_counted(&f.counts->checked, checked);
}

// Names the parts of communities after their smallest members: from `from`, which may be null for the
// names before the batch, to `to`, which may be the same. FALLEN communities become their connected
// parts; `first` holds each vertex itself before. After a batch, parts that fell off others are taken
// off, and their vertices are marked and wholly touched; members and degrees of communities go with
// their names.
__global__ void BOUNDS split_flagged(const Follow f, const u32* from, u32* to, i64 after_batch) {
  const auto name = [&](u32 v) { return from ? from[v] : name_before(f, v); };
  u64 checked = 0, marked = 0, split = 0;
  const bool any = f.counts->flagged, unnamed = after_batch && f.counts->unnamed;
  if (any) {
    visit_rows(
        f, [&](u32 v) { return f.flags[name(v)] == FALLEN; },
        [&](i64 at, u32 v) {
          if (at < 0) return;
          ++checked;
          const u32 u = f.targets[at];
          if (u < v && name(u) == name(v)) join_parts(f.first, u, v);
        });
    grid_sync(&f.counts->barrier);
  }
  if (unnamed) {
    find_smallest(f, [&](u32 v) { return f.marks[v] & FELL ? EMPTY : name(v); }, f.labels);
    grid_sync(&f.counts->barrier);
  }
  for (i64 low = grid_thread(); low - lane_index() < f.n; low += AT_ONCE * grid_threads()) {
    u32 own[AT_ONCE], named[AT_ONCE];
    u8 mark[AT_ONCE], flag[AT_ONCE];
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      const i64 v = low + k * grid_threads();
      own[k] = v < f.n ? name(v) : EMPTY;
      mark[k] = v < f.n && after_batch ? f.marks[v] : 0;
    }
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      flag[k] = any && own[k] != EMPTY ? f.flags[own[k]] : 0;
      named[k] = unnamed && own[k] != EMPTY ? f.labels[own[k]] : own[k];
    }
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      const i64 v = low + k * grid_threads();
      if (v - lane_index() >= f.n) break;
      const bool fallen = flag[k] == FALLEN;
      u32 part = named[k];
      if (fallen || mark[k] & FELL) part = root_of(f.first, v);
      const bool fell = fallen ? part != own[k] : mark[k] & FELL;
      const bool marks = mark[k] & MARKED || fell, left = part != own[k];
      if (v < f.n) to[v] = part;
      split += fell;
      if (!after_batch) continue;
      marked += marks;
      if (v < f.n) f.marks[v] = marks;
      if (fell) f.touched[v] |= WHOLLY;
      if (!__any_sync(FULL, left)) continue;
      const u64 degree = left ? f.degrees[v] : 0;
      add_by_peers(f.totals, left ? own[k] : EMPTY, (u64)0 - degree);
      add_by_peers(f.totals, left ? part : EMPTY, degree);
      add_by_peers(f.members, left ? own[k] : EMPTY, ~0u);
      add_by_peers(f.members, left ? part : EMPTY, 1u);
    }
  }
  add_counted(&f.counts->checked, checked);
  add_counted(&f.counts->marked, marked);
  add_counted(&f.counts->split, split);
}

// A vertex whose community has another name than before, or that was added, removed or revived; or
// all vertices that came from one community to another.
struct Differing {
  u32 vertex, name, name_before, living;   // living: now in bit 0, before in bit 1
  u32 size, size_before;                   // of `name`, living members after and before
  u32 old_size, old_size_before;           // of `name_before`
  u32 members, unused;                     // vertices; `degree` is theirs
  u64 degree, mass, mass_before, old_mass, old_mass_before;
};
static_assert(sizeof(Differing) == 80, "mirrored by DIFFERING in gpu/dynamic/follow_arrays.py");

// A vertex's community before, EMPTY if it was not there, and `living` as Differing has it.
struct Known {
  u32 name, living;
};

__device__ __forceinline__ Known known_of(const Follow& f, u32 v) {
  const bool old = v < f.n_before;
  return {old ? f.names[v] : EMPTY, u32(f.alive[v] | (old ? f.alive_before[v] << 1 : 0))};
}

// Whether a vertex that is now in the community `name` is one of these.
__device__ __forceinline__ bool differs(const Known& before, u32 name) {
  return before.name != name || (before.living != 0 && before.living != 3);
}

__device__ __forceinline__ Differing differing(const Follow& f, u32 v) {
  const u32 name = f.next_names[v];
  const auto [own, living] = known_of(f, v);
  Differing d = {v, name, own, living, f.sizes[name], 0, 0, 0, 1, 0,
                 f.degrees[v], f.masses[name], 0, 0, 0};
  if (name < f.n_before) d.size_before = f.sizes_before[name], d.mass_before = f.masses_before[name];
  if (own != EMPTY) {
    d.old_size = f.sizes[own], d.old_mass = f.masses[own];
    d.old_size_before = f.sizes_before[own], d.old_mass_before = f.masses_before[own];
  }
  return d;
}

// Names the communities of `labels` after their smallest members, sums members and degrees by name
// and counts; adds to `inside` what moving from `whole` changed, unless `whole` is null. If `summed`,
// moving left members and degrees by label. Lists the vertices that differ, in any order, if there are
// at most `most`.
template <class W>
__global__ void BOUNDS assign_names(const Follow f, const u32* whole, i64 summed, Differing* list,
                                    i64 most) {
  Barrier* barrier = &f.counts->barrier;
  const W* weights = (const W*)f.weights;
  const u32* labels = f.labels;
  if (grid_thread() == 0) {
    FollowCounts* counts = f.counts;
    counts->squares[0] = counts->squares[1] = counts->squares[2] = 0;
    counts->communities = counts->differing = counts->listed = 0;
  }
  for (i64 v = grid_thread(); v < f.n; v += grid_threads()) {
    f.first[v] = labels[v] == v ? v : EMPTY;  // most labels are of their smallest member
    if (summed) continue;
    f.sizes[v] = 0;
    f.masses[v] = 0;
  }
  grid_sync(barrier);
  find_smallest(f, [&](u32 v) { return labels[v]; }, f.first);
  i64 inside = 0;
  if (whole)
    visit_rows(
        f, [&](u32 v) { return whole[v] != labels[v]; },
        [&](i64 at, u32 v) {
          if (at < 0) return;
          const u32 u = f.targets[at];
          const int change = int(labels[u] == labels[v]) - int(whole[u] == whole[v]);
          // An arc whose other end stayed is read in this direction alone.
          const i64 twice = whole[u] == labels[u] ? 2 : 1;
          if (change) inside += change * twice * (i64)weight_at(weights, at);
        });
  else
    grid_sync(barrier);
  add_counted(&f.counts->inside, inside);
  u64 communities = 0;
  for (i64 low = grid_thread(); low - lane_index() < f.n; low += AT_ONCE * grid_threads()) {
    u32 label[AT_ONCE], name[AT_ONCE];
    Known known[AT_ONCE];
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      const i64 v = low + k * grid_threads();
      label[k] = v < f.n ? labels[v] : EMPTY;
      known[k] = v < f.n ? known_of(f, v) : Known{EMPTY, 0};
    }
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) name[k] = label[k] == EMPTY ? EMPTY : f.first[label[k]];
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      const i64 v = low + k * grid_threads();
      if (v - lane_index() >= f.n) break;
      if (v < f.n) {
        f.next_names[v] = name[k];
        communities += name[k] == v;
        // A removed vertex is alone.
        if (summed) {
          f.sizes[v] = name[k] == v && known[k].living & 1 ? f.members[label[k]] : 0;
          f.masses[v] = name[k] == v ? f.totals[label[k]] : 0;
        }
      }
      const bool other = differs(known[k], name[k]);
      if (const u32 others = __ballot_sync(FULL, other)) {
        u64 place = 0;
        if (lane_index() == 0) place = atomicAdd(&f.counts->differing, (u64)__popc(others));
        place = __shfl_sync(FULL, place, 0) + __popc(others & ((1u << lane_index()) - 1));
        if (other && place < most) list[place].vertex = v;
      }
      if (summed) continue;
      add_by_peers(f.masses, name[k], v < f.n ? f.degrees[v] : 0ull);
      add_by_peers(f.sizes, name[k], known[k].living & 1);
    }
  }
  add_counted(&f.counts->communities, communities);
  grid_sync(barrier);
  const i64 listed = *(volatile i64*)&f.counts->differing;
  if (listed <= most)
    for (i64 k = grid_thread(); k < listed; k += grid_threads())
      list[k] = differing(f, list[k].vertex);
  Squares squares;
#pragma unroll 4
  for (i64 c = grid_thread(); c < f.n; c += grid_threads()) squares.add(f.masses[c]);
  squares.publish(f.counts->squares);
}

// Lists the vertices alone, in any order, with keys that are equal for those that came from one
// community to another and lived before and after.
__global__ void BOUNDS key_differing(const Follow f, u32* vertices, u64* keys) {
  for (i64 v = grid_thread(); v < f.n; v += grid_threads()) {
    const Known before = known_of(f, v);
    if (!differs(before, f.next_names[v])) continue;
    const u64 k = atomicAdd(&f.counts->listed, 1);
    vertices[k] = v;
    keys[k] = before.living == 3 ? (u64)before.name << 32 | f.next_names[v] : (u64)EMPTY << 32 | v;
  }
}

// Lists groups of them: group g has the vertices from first[g] on, up to the next one's. `degrees`
// are the sums of degrees up to each vertex.
__global__ void BOUNDS list_groups(const Follow f, const u32* vertices, i64 count, const i64* first,
                                   i64 groups, const u64* degrees, Differing* list) {
  for (i64 g = grid_thread(); g < groups; g += grid_threads()) {
    const i64 low = first[g], high = g + 1 < groups ? first[g + 1] : count;
    Differing d = differing(f, vertices[low]);
    d.members = high - low;
    d.degree = degrees[high - 1] - (low ? degrees[low - 1] : 0);
    list[g] = d;
  }
}

// Makes every vertex a community of which at least this share of the weight is turnover, and flags it in
// `freed`, for turnover is then counted anew; names the others after their smallest member left.
// Cooperative.
__global__ void BOUNDS release_touched(const Follow f, const u32* names, u32* start, u8* freed,
                                       double share) {
  for (i64 v = grid_thread(); v < f.n; v += grid_threads()) {
    const u64 turnover = f.touched[v];
    const bool leaves = turnover && __ull2double_rn(turnover) >=
                                      __dmul_rn(share, __ull2double_rn(f.degrees[v]));
    freed[v] = leaves;
    if (leaves) f.touched[v] = 0;
    f.first[v] = names[v] == v && !leaves ? v : EMPTY;
  }
  grid_sync(&f.counts->barrier);
  find_smallest(f, [&](u32 v) { return freed[v] ? EMPTY : names[v]; }, f.first);
  grid_sync(&f.counts->barrier);
  for (i64 v = grid_thread(); v < f.n; v += grid_threads())
    start[v] = freed[v] ? v : f.first[names[v]];
}

// Flags the communities, by their names after moving, that hold former members of communities which
// others left; sets `first` to each vertex itself. Cooperative.
__global__ void BOUNDS flag_left(const Follow f) {
  for (i64 v = grid_thread(); v < f.n; v += grid_threads()) {
    f.flags[v] = f.marks[v] = 0;
    f.first[v] = v;
  }
  if (grid_thread() == 0) f.counts->flagged = 0;
  grid_sync(&f.counts->barrier);
  // `marks` by name before moving: communities that others left.
  for (i64 v = grid_thread(); v < f.n; v += grid_threads())
    if (f.next_names[v] != f.whole[v]) f.marks[f.whole[v]] = 1;
  grid_sync(&f.counts->barrier);
  for (i64 v = grid_thread(); v < f.n; v += grid_threads())
    if (f.marks[f.whole[v]]) {
      f.flags[f.next_names[v]] = FALLEN;
      f.counts->flagged = 1;
    }
}
