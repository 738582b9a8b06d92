// Aggregating a level by emulated blocks: in chunks, or at once.
#include "cuda.h"  // first: it stands in for CUDA

#include "aggregate.cu"

namespace {

template <class W>
void aggregate_as(int blocks, i64 n, const i64* offsets, const u32* targets, const W* weights,
                  const u32* degrees, u32* numbers, i64 chunk, i64* new_offsets, u32* new_targets,
                  u32* new_weights, u32* new_loops, u32* new_degrees, u64* counts) {
  const i64 arcs = counts[0];
  const bool samples = counts[1];
  std::vector<u32> members(n + 1), starts(n + 1), low(n + 1), rooms(n + 1), block_bin(n + 1),
      hub_bin(n + 1), chunk_targets(arcs), chunk_weights(arcs), keys(1 << 14), sums(1 << 14);
  std::vector<i64> whole((n >> 10) + 2);
  std::vector<u64> partials(blocks);
  State state = {};
  Arguments<W, u32> args = {};
  args.n = args.label_bound = args.neighbour_bound = n;
  args.chunk_arcs = chunk ? chunk : arcs;
  args.new_capacity = arcs;
  args.parts = 1;
  args.stretch_shift = 10;
  args.table_slots = keys.size();
  args.offsets = offsets, args.targets = targets, args.weights = weights, args.degrees = degrees;
  // Some arcs are read elsewhere.
  args.near = arcs / 3, args.near_weights = arcs / 2;
  args.far_targets = targets, args.far_weights = weights;
  if constexpr (same<W, PackedWeights16>) args.far_weights = (const W*)weights_of(weights);
  args.numbers = numbers, args.map = numbers;
  args.ranks = args.members = members.data();
  args.starts = starts.data(), args.low = low.data(), args.whole = whole.data();
  args.rooms = rooms.data();
  args.chunk_targets = chunk_targets.data(), args.chunk_weights = chunk_weights.data();
  args.new_offsets = new_offsets, args.new_targets = new_targets, args.new_weights = new_weights;
  args.new_loops = new_loops, args.new_degrees = new_degrees;
  args.block_bin = block_bin.data(), args.hub_bin = hub_bin.data();
  args.keys = keys.data(), args.sums = sums.data();
  args.state = &state, args.partials = partials.data();
  if (chunk) {
    fibres::launch(blocks, [&] { number_labels(args); });
    args.k = args.neighbour_bound = state.vertices;
    fibres::launch(blocks, [&] { group_members(args); });
    fibres::launch(blocks, [&] { sum_members(args); });
    if (samples) fibres::launch(blocks, [&] { sample_rows(args); });
    fibres::launch(blocks, [&] { lay_out(args); });
    args.neighbour_bound = state.nonempty;
    fibres::launch(blocks, [&] { sum_arcs(args); });
  } else {
    fibres::launch(blocks, [&] { aggregate_small(args); });
  }
  counts[0] = state.vertices;
  counts[1] = state.arcs;
  counts[2] = state.inside;
  counts[3] = state.next_chunk;
  counts[4] = state.kept;
  counts[5] = 0;
  for (u32 q = 1; q < BOUND_COUNT; ++q) counts[5] += state.bounds[q] > state.bounds[q - 1];
}

}  // namespace

// kind as in move.cpp. On entry, counts[0] is the number of arcs, counts[1] whether rows are
// sampled before they are laid out. chunk 0: all at once.
extern "C" void aggregate_level(int blocks, int kind, i64 n, const i64* offsets, const u32* targets,
                                const u32* weights, const u32* degrees, u32* numbers, i64 chunk,
                                i64* new_offsets, u32* new_targets, u32* new_weights,
                                u32* new_loops, u32* new_degrees, u64* counts) {
  auto run = [&](auto* w) {
    aggregate_as(blocks, n, offsets, targets, w, degrees, numbers, chunk, new_offsets, new_targets,
                 new_weights, new_loops, new_degrees, counts);
  };
  if (kind == 0) run((const Unweighted*)nullptr);
  if (kind == 1) run((const Packed*)weights);
  if (kind == 2) run(weights);
  if (kind == 3) run((const PackedOffsets32*)weights);
  if (kind == 4) run((const PackedWeights16*)weights);
}
