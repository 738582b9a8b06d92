// Deciding where vertices go: the part that moving and refinement share.
//
// One group of threads handles each queued vertex; the vertex's degree bin sets the size of the
// group. The group sums the weights of the vertex's arcs by label; a rule S gives each target its
// label, scores the labels, and writes the proposal for the best one (`propose`). Labels and scores
// depend only on state that is frozen during the step, sums are of integers, and ties have an
// order. So the result depends neither on the order of vertices nor on that of atomics.
//
// A rule S has:
//   offsets, targets, weights, queue, seed
//   Accumulator         type of sums
//   Vertex, vertex(v)   with `own` (label of the vertex's own community), `idle` (does not decide)
//   label(x, u)         label of target u; EMPTY if u does not count
//   choice(x, label, weight)   score of a label; EMPTY if the label is not eligible
//   propose(i, x, best, own_weight, best_weight, tally)   once per vertex that is not idle
//   wants_best_weight   whether propose needs the weight to the best label
//   bounded             whether no score exceeds the weight to its label, and none up to `floor` is
//                       taken: labels that cannot win are then not scored, which saves most reads of
//                       what scores are made of
//   floor(x, own_weight)   that score, of a bounded rule
//   extended            whether it is an extended rule (extended_rule.cuh)
#pragma once
#include "hubs.cuh"

// Last template argument of kernels: the rule of modularity without constraints, or the extended.
struct Plain {};
struct Extended {};

// Decides for all vertices queued for one sub-round: bin b is queue[from[b]:from[b + 1]). While
// some blocks are in a step of the hubs, the others continue with smaller vertices. More batches of
// hubs take the same way: code that is there twice takes registers from all of the kernel.
template <class S, class A>
__device__ void decide(const S& s, const u32* from, const HubTables<A>& hubs, u32* work,
                       Control* control, Shared<A>& shared, Tally& tally) {
  const u32 eighth = threadIdx.x / WARP * (Table<A>::slots / WARPS);
  Barrier* barrier = &control->barrier;
  u32 begin = from[HUB], count = 0;
  do {
    const bool any = begin < from[BLOCK], first = begin == from[HUB];
    if (!first) grid_sync(barrier);
    if (any && blockIdx.x == 0) lay_out_tables(s, hubs, begin, from[BLOCK], control, shared);
    if (first && from[BLOCK] < from[PER_WARP])
      decide_block(s, from[BLOCK], from[PER_WARP], work + BLOCK, shared.keys, shared.sums, shared,
                   tally);
    if (any) {
      grid_sync(barrier);
      count = *(volatile u32*)&control->batch_end - begin;
      fill_hubs(s, hubs, begin, count, shared);
    }
    if (first)
      decide_warp(s, from[PER_WARP], from[TILE32], work + PER_WARP, shared.keys + eighth,
                  shared.sums + eighth, tally);
    if (any) {
      grid_sync(barrier);
      drain_hubs(s, hubs, begin, count, shared);
    }
    if (first) {
      decide_tile<32>(s, from[TILE32], from[TILE16], work + TILE32, tally);
      decide_tile<16>(s, from[TILE16], from[TILE8], work + TILE16, tally);
    }
    if (any) {
      grid_sync(barrier);
      propose_hubs(s, hubs, begin, count, shared, tally);
    }
    if (first) {
      decide_tile<8>(s, from[TILE8], from[TILE4], work + TILE8, tally);
      decide_tile<4>(s, from[TILE4], from[BINS], work + TILE4, tally);
    }
    begin += count;
  } while (begin < from[BLOCK]);
}
