// The extended rule of moving: second masses, an empty community to leave to, fixed vertices,
// maximum size. louvain_um/cpu/move.py is the counterpart; core/objective.py says what masses are.
//
// Weights and second masses may be negative: sums wrap in 64 bits and are read as signed.
#pragma once
#include "move_rule.cuh"

#define REFUSED (-1ll)  // in place of the gain of a move that is refused; no gain is negative

// Returns the weight expected between masses: pull * total - second_pull * second_total.
__device__ __forceinline__ double expected_of(double pull, u64 total, double second_pull,
                                              u64 second_total) {
  return __dsub_rn(__dmul_rn(pull, __ull2double_rn(total)),
                   __dmul_rn(second_pull, __ll2double_rn((i64)second_total)));
}

// Any array but the totals may be null: without second masses, fixed vertices or a maximum size.
template <class W, class A>
struct ExtendedMoveRule : MoveRule<W, A> {
  static constexpr bool extended = true, bounded = false;
  const A* second;   // second mass per vertex
  A* second_totals;  // and per community
  const A* members;  // vertices of the input in each vertex
  A* member_totals;  // and in each community
  const A* fixed;    // not 0 for vertices that may not move
  u8* pinned;        // whether a community has one
  i64* gains;        // per entry of the queue: gain of the proposal
  A* incoming;       // members about to join each community; 0 between sub-rounds
  u32* champions;    // hash of the first of them; EMPTY between sub-rounds
  double second_rate;
  double most_gain;  // a move counts for no more
  u64 max_size;

  struct Vertex {
    u32 own;
    A degree;
    A second;
    A members;
    double pull;
    double second_pull;
    static constexpr bool idle = false;
  };

  __device__ __forceinline__ Vertex vertex(u32 v) const {
    const A total = this->degree(v), other = second ? second[v] : 0;
    return {this->labels[v],
            total,
            other,
            members ? members[v] : 0,
            __dmul_rn(this->rate, __ull2double_rn(total)),
            __dmul_rn(second_rate, __ll2double_rn((i64)other))};
  }

  __device__ __forceinline__ u32 label(const Vertex&, u32 u) const { return this->labels[u]; }

  // Returns the score of a community, of which the vertex is no member.
  __device__ __forceinline__ double score(const Vertex& x, A weight, A total, A second_total) const {
    return __dsub_rn(__ll2double_rn((i64)weight),
                     expected_of(x.pull, total, x.second_pull, second_total));
  }

  __device__ __forceinline__ Choice choice(const Vertex& x, u32 label, A weight) const {
    if (members && member_totals[label] + x.members > max_size) return {0.0, EMPTY};
    return {score(x, weight, this->totals[label], second ? second_totals[label] : 0), label};
  }

  // Proposes the best community, or the empty community of the vertex' own number where every
  // score is below 0; unless staying is as good, the vertex is fixed, or two vertices that are
  // each alone would swap places.
  __device__ __forceinline__ void propose(u32 i, const Vertex& x, Choice best, A own_weight, A,
                                         Tally& tally) const {
    const u32 v = this->queue[i];
    const double stay = score(x, own_weight, this->totals[x.own] - x.degree,
                              second ? second_totals[x.own] - x.second : 0);
    u32 target = x.own;
    double reached = stay;
    if (best.community != EMPTY && best.score > stay) {
      target = best.community;
      reached = best.score;
    }
    if (reached < 0.0 && this->sizes[v] == 0) {
      target = v;
      reached = 0.0;
    }
    const bool swaps = target > x.own && this->sizes[x.own] == 1 && this->sizes[target] == 1 &&
                       !(fixed && pinned[target]);
    if (target == x.own || swaps || (fixed && fixed[v])) {
      this->proposed[i] = EMPTY;
      return;
    }
    const double gain = __ddiv_rn(__dsub_rn(reached, stay), this->total);
    const i64 units = __double2ll_rn(__dmul_rn(gain < most_gain ? gain : most_gain, GAIN_UNIT));
    if (gains) gains[i] = units;
    tally.gain += units;
    ++tally.moves;
    this->proposed[i] = target;
  }
};
static_assert(sizeof(ExtendedMoveRule<u64, u64>) == 192, "mirrored by EXTENDED_MOVE_RULE");

// The rule of moving by the last template argument of `move`.
template <class W, class A, class X>
struct MovingRule {
  using Type = MoveRule<W, A>;
};
template <class W, class A>
struct MovingRule<W, A, Extended> {
  using Type = ExtendedMoveRule<W, A>;
};

// Begins what the extended rule adds up, like begin_level, which comes before.
template <class S>
__device__ void begin_extended(const S& s, i64 n, i64 thread, i64 threads, Barrier* barrier) {
  for (i64 v = thread; v < n; v += threads) {
    if (s.second) s.second_totals[v] = 0;
    if (s.fixed) s.pinned[v] = 0;
    if (!s.members) continue;
    s.member_totals[v] = s.incoming[v] = 0;
    s.champions[v] = EMPTY;
  }
  grid_sync(barrier);
  for (i64 v = thread; v < whole_warps(n); v += threads) {
    const u32 label = v < n ? s.labels[v] : EMPTY;
    if (s.second) add_together(s.second_totals, label, v < n ? s.second[v] : 0);
    if (s.members) add_together(s.member_totals, label, v < n ? s.members[v] : 0);
    if (s.fixed && v < n && s.fixed[v]) s.pinned[label] = 1;
  }
  grid_sync(barrier);
}

// Refuses moves of queue[begin:end) beyond the maximum size. Where those that propose a community
// do not all fit, only the first of them joins, in the order of hashes, which differ; the others
// decide once more in the next sweep. Ends with a barrier.
template <class S>
__device__ void admit(const S& s, u32 begin, u32 end, bool prunes, u32* next_active, i64 thread,
                      i64 threads, Barrier* barrier, Tally& tally) {
  for (i64 i = begin + thread; i < end; i += threads) {
    const u32 target = s.proposed[i], v = s.queue[i];
    if (target == EMPTY) continue;
    atomicAdd(s.incoming + target, s.members[v]);
    atomicMin(s.champions + target, mix32(v ^ s.seed));
  }
  grid_sync(barrier);
  for (i64 i = begin + thread; i < end; i += threads) {
    const u32 target = s.proposed[i], v = s.queue[i];
    if (target == EMPTY || s.member_totals[target] + s.incoming[target] <= s.max_size ||
        s.champions[target] == mix32(v ^ s.seed))
      continue;
    tally.gain -= s.gains[i];
    --tally.moves;
    s.gains[i] = REFUSED;
    if (prunes) flag(next_active, v);
  }
  grid_sync(barrier);
  for (i64 i = begin + thread; i < end; i += threads) {
    const u32 target = s.proposed[i];
    if (target == EMPTY) continue;
    s.incoming[target] = 0;
    s.champions[target] = EMPTY;
    if (s.gains[i] == REFUSED) s.proposed[i] = EMPTY;
  }
  grid_sync(barrier);
}

// Applies what the extended rule adds to the moves of queue[begin:end), before apply_moves changes
// the labels. Ends with a barrier.
template <class S>
__device__ void apply_extended(const S& s, u32 begin, u32 end, i64 thread, i64 threads,
                               Barrier* barrier) {
  for (i64 k = thread; k < whole_warps(end - begin); k += threads) {
    const i64 i = begin + k;
    const u32 target = i < end ? s.proposed[i] : EMPTY, v = target == EMPTY ? 0 : s.queue[i];
    const u32 own = target == EMPTY ? EMPTY : s.labels[v];
    if (s.second) {
      add_together(s.second_totals, own, 0 - s.second[v]);
      add_together(s.second_totals, target, s.second[v]);
    }
    if (s.members) {
      add_together(s.member_totals, own, 0 - s.members[v]);
      add_together(s.member_totals, target, s.members[v]);
    }
  }
  grid_sync(barrier);
}
