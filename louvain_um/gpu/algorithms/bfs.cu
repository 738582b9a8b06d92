// Breadth-first search (Beamer and others, 2012): pushed from narrow frontiers, pulled into wide
// ones. Writes distances, −1 where not reached, and the smallest neighbour at the previous distance
// as parent. Cooperative: one launch is the whole search.
#include "host_rows.cuh"
#include "linked_rows.cuh"

#define PULL_SHARE 14  // pull where the frontier has more than this part of the arcs not visited
#define PUSH_SHARE 24  // push again where it has less than this part of the vertices, and shrinks

// Zero before. Levels take turns with three counters: one is read, one filled, one cleared.
struct SearchState {
  Barrier barrier;
  u64 tail;      // of the queue
  u64 width[3];  // vertices and arcs of a level's frontier
  u64 arcs[3];
};
static_assert(sizeof(SearchState) <= STATE_BYTES, "the control block holds it");

// Adds to a level's counters; every thread of the block calls.
__device__ __forceinline__ void count_level(SearchState* state, u32 level, u64 width, u64 arcs) {
  width = block_sum(width);
  arcs = block_sum(arcs);
  if (threadIdx.x == 0 && width) {
    atomicAdd(&state->width[level % 3], width);
    atomicAdd(&state->arcs[level % 3], arcs);
  }
  if (grid_thread() == 0) state->width[(level + 1) % 3] = state->arcs[(level + 1) % 3] = 0;
}

__device__ __forceinline__ bool is_marked(const u32* bits, u32 v) {
  return bits[v / WARP] >> v % WARP & 1;
}

// Lets each vertex that is not reached look for its smallest neighbour in the frontier.
template <class R>
__device__ void pull(const R& rows, const u32* front, u32* next, u32 level, int* distances,
                     u32* parents, SearchState* state) {
  const u32 lane = lane_index();
  u64 width = 0, arcs = 0;
  auto in_front = [=](u32 u) { return is_marked(front, u); };
  for (auto dealt = deal(rows); dealt.more(); dealt.next()) {
    const i64 v = dealt.v;
    const bool open = v < rows.n && distances[v] == -1;
    i64 begin = 0, end = 0;
    u32 parent = EMPTY;
    if (open) {
      begin = rows.begins[v];
      end = rows.ends[v];
      parent = first_target(rows, v, SHORT_ROW, in_front);
    }
    u32 left = __ballot_sync(FULL, open && parent == EMPTY && end - begin > SHORT_ROW);
    while (left) {
      const int owner = __ffs(left) - 1;
      left &= left - 1;
      const u32 first = first_by_warp(rows, v - lane + owner, SHORT_ROW, in_front);
      if (lane == owner) parent = first;
    }
    const u32 found = __ballot_sync(FULL, parent != EMPTY);
    if (lane == 0) next[v / WARP] = found;
    if (parent == EMPTY) continue;
    distances[v] = level + 1;
    parents[v] = parent;
    width += 1;
    arcs += end - begin;
  }
  count_level(state, level, width, arcs);
}

// Reaches the targets of a frontier and queues them. Any thread may be the first to reach a target.
template <class R>
__device__ void push(const R& rows, u32* queue, i64 begin, i64 end, const i64* before, u32 level,
                     int* distances, u32* parents, SearchState* state) {
  u64 width = 0, arcs = 0;
  advance(rows, queue + begin, end - begin, before, [&](u32 u, i64 arc, i64) {
    const u32 v = rows.targets[arc];
    int distance = distances[v];
    if (distance == -1) {
      distance = atomicCAS(distances + v, -1, int(level + 1));
      if (distance == -1) {
        distance = level + 1;
        queue[atomicAdd(&state->tail, 1)] = v;
        width += 1;
        arcs += rows.length(v);
      }
    }
    if (distance == int(level + 1) && parents[v] > u) atomicMin(parents + v, u);
  });
  count_level(state, level, width, arcs);
}

// One level of a search, pulled into rows that are a part of the graph's: distances, parents, next
// and out begin with theirs. front: a bitmap of all vertices.
__global__ void BOUNDS pull_level(RowView<Unweighted> rows, const u32* front, u32* next, u32 level,
                                  int* distances, u32* parents, i64* out, SearchState* state) {
  pull(rows, front, next, level, distances, parents, state);
  for (i64 v = grid_thread(); v < rows.n; v += grid_threads())  // of the same thread
    out[v] = parents[v] == EMPTY ? -1 : i64(parents[v]);
}

// front, next: bitmaps of n bits. before: n + 1 entries, partials: one per block.
template <template <class> class Rows>
__global__ void BOUNDS bfs(Rows<Unweighted> rows, i64 unvisited, u32 source, int* distances,
                           u32* parents, i64* out, u32* queue, i64* before, i64* partials,
                           u32* front, u32* next, SearchState* state) {
  const i64 n = rows.n, thread = grid_thread(), threads = grid_threads();
  const i64 words = (n + WARP - 1) / WARP;
  Barrier* barrier = &state->barrier;
  for (i64 v = thread; v < n; v += threads) {
    distances[v] = v == source ? 0 : -1;
    parents[v] = v == source ? source : EMPTY;
  }
  for (i64 word = thread; word < words; word += threads) front[word] = 0;
  if (thread == 0) {
    queue[0] = source;
    state->tail = 1;
  }
  grid_sync(barrier);
  i64 begin = 0, end = 1, arcs = rows.length(source);
  u32 level = 0;
  while (begin < end) {
    if (arcs * PULL_SHARE <= unvisited) {
      unvisited -= arcs;
      scan_frontier(rows, queue + begin, end - begin, before, partials, barrier);
      push(rows, queue, begin, end, before, level, distances, parents, state);
      grid_sync(barrier);
      begin = end;
      end += *(volatile u64*)&state->width[level % 3];
      arcs = *(volatile u64*)&state->arcs[level % 3];
      ++level;
      continue;
    }
    for (i64 i = begin + thread; i < end; i += threads)
      atomicOr(front + queue[i] / WARP, 1u << queue[i] % WARP);
    i64 width = end - begin, wider;
    do {
      grid_sync(barrier);
      unvisited -= arcs;
      pull(rows, front, next, level, distances, parents, state);
      grid_sync(barrier);
      wider = width;
      width = *(volatile u64*)&state->width[level % 3];
      arcs = *(volatile u64*)&state->arcs[level % 3];
      ++level;
      u32* swapped = front;
      front = next;
      next = swapped;
    } while (width > 0 && (width > wider || width * PUSH_SHARE >= n));
    // What was pulled is queued behind what was pushed before, and its bits are cleared.
    for (i64 word = thread; word < words; word += threads) {
      u32 left = front[word];
      front[word] = 0;
      u64 at = left ? atomicAdd(&state->tail, __popc(left)) : 0;
      for (; left; left &= left - 1) queue[at++] = word * WARP + __ffs(left) - 1;
    }
    grid_sync(barrier);
    begin = end;
    end += width;
  }
  for (i64 v = thread; v < n; v += threads) out[v] = parents[v] == EMPTY ? -1 : i64(parents[v]);
}
