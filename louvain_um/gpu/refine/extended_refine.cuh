// The extended rule of refinement: second masses, and weights that may be negative.
// louvain_um/cpu/refine.py is the counterpart.
#pragma once
#include "extended_rule.cuh"
#include "refine_rule.cuh"

template <class W, class A>
struct ExtendedRefineRule : RefineRule<W, A> {
  static constexpr bool extended = true;
  const A* second;         // second mass per vertex; null without any
  const A* second_totals;  // per community
  A* sub_seconds;          // per sub-community
  double second_rate;

  struct Vertex {
    u32 own;
    u32 community;
    A community_total;
    A community_second;
    double pull;
    double second_pull;
    bool idle;
  };

  // Whether a sub-community has the weight to the rest of its community expected at random.
  __device__ __forceinline__ bool connected(u32 sub, A total, A community_total, A own,
                                            A community_second) const {
    const double pull = __dmul_rn(this->rate, __ull2double_rn(total));
    const double second_pull = __dmul_rn(second_rate, __ll2double_rn((i64)own));
    return __ll2double_rn((i64)this->parts[sub].external) >=
           expected_of(pull, community_total - total, second_pull, community_second - own);
  }

  __device__ __forceinline__ Vertex vertex(u32 v) const {
    const u32 community = this->labels[v];
    const A mass = this->degree(v), total = this->totals[community];
    const A other = second ? second[v] : 0, others = second ? second_totals[community] : 0;
    const bool idle = this->refined[v] != v || this->sub_sizes[v] != 1 ||
                      !connected(v, mass, total, other, others);
    return {v,
            community,
            total,
            others,
            __dmul_rn(this->rate, __ull2double_rn(mass)),
            __dmul_rn(second_rate, __ll2double_rn((i64)other)),
            idle};
  }

  __device__ __forceinline__ u32 label(const Vertex& x, u32 u) const {
    return this->labels[u] == x.community ? this->refined[u] : EMPTY;
  }

  __device__ __forceinline__ Choice choice(const Vertex& x, u32 sub, A weight) const {
    const A total = this->parts[sub].total, own = second ? sub_seconds[sub] : 0;
    const double score = __dsub_rn(__ll2double_rn((i64)weight),
                                   expected_of(x.pull, total, x.second_pull, own));
    Choice it = {score, sub};
    if (score <= 0.0 ||
        (this->sub_sizes[sub] == 1 &&
         bucket(sub, this->salt, this->sub_rounds) == this->sub_round) ||
        !connected(sub, total, x.community_total, own, x.community_second))
      it.community = EMPTY;
    return it;
  }

  __device__ __forceinline__ void propose(u32 i, const Vertex&, Choice best, A, A best_weight,
                                         Tally&) const {
    this->proposed[i] = best.community;
    this->weight_to_target[i] = best_weight;
  }
};
static_assert(sizeof(ExtendedRefineRule<u64, u64>) == 152, "mirrored by EXTENDED_REFINE_RULE");

// The rule of refinement by the last template argument of `refine`.
template <class W, class A, class X>
struct RefiningRule {
  using Type = RefineRule<W, A>;
};
template <class W, class A>
struct RefiningRule<W, A, Extended> {
  using Type = ExtendedRefineRule<W, A>;
};
