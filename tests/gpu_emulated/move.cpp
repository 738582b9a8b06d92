// Moving and refinement of a level by emulated blocks.
#include "cuda.h"  // first: it stands in for CUDA

#include "move.cu"
#include "refine.cu"

namespace {

// Tables for hubs, fewer than all need at once: they are served in batches.
struct Tables {
  static constexpr u64 slots = 12000;
  std::vector<u32> keys = std::vector<u32>(slots, EMPTY), sums = std::vector<u32>(slots, EMPTY);
  std::vector<u32> fills, drains, own_weights;
  std::vector<u64> begins;
  std::vector<HubChoice> choices;
  explicit Tables(i64 n)
      : fills(n + 1), drains(n + 1), own_weights(n + 1), begins(n + 1), choices(n + slots) {}
  HubTables<u32> hubs() {
    return {keys.data(),   sums.data(),        slots,         begins.data(), fills.data(),
            drains.data(), own_weights.data(), choices.data()};
  }
};

template <class W>
void move_typed(int blocks, i64 n, const i64* offsets, const u32* targets, const W* weights,
             const u32* degrees, const u32* start, u32* labels, u32* totals, double total, u32 seed,
             const u32* rules, i64 tolerance, u64* counts) {
  std::vector<u32> sizes(n), queue(n), proposed(n);
  std::vector<u32> active((n + 31) / 32), next_active((n + 31) / 32);
  Tables tables(n);
  Control control = {};
  // As the engine has it: inputs in fewer bytes have sizes in bytes, where degrees allow it.
  bool byte_sizes = MoveRule<W, u32>::compact;
  for (i64 v = 0; v < n; ++v) byte_sizes = byte_sizes && row_of(weights, offsets, v).arcs() <= 255;
  const MoveRule<W, u32> rule = {offsets,         targets,     weights,      degrees,
                                 labels,          totals,      sizes.data(), queue.data(),
                                 proposed.data(), 1.0 / total, total,        seed,
                                 byte_sizes};
  const Sweeps sweeps = {n,        start,    nullptr, active.data(), next_active.data(), &control, tolerance,
                         rules[0], rules[1], rules[2],      rules[3],           rules[4], rules[5], rules[6]};
  fibres::launch(blocks, [&] { move<W, u32>(rule, tables.hubs(), sweeps); });
  counts[0] = control.iterations;
  counts[1] = control.total_moves;
  counts[2] = control.visited;
  counts[3] = control.total_gain;
  counts[4] = control.read_again;
}

template <class W>
void refine_as(int blocks, i64 n, const i64* offsets, const u32* targets, const W* weights,
               const u32* degrees, const u32* labels, const u32* totals, u32* refined, double total,
               u32 seed, const u32* rules, const u32* loops, u64* sums) {
  std::vector<u8> sub_sizes(n);
  std::vector<Part<u32>> parts(n);
  std::vector<u32> queue(n), proposed(n), weight_to_target(n);
  Tables tables(n);
  Control control = {};
  const RefineRule<W, u32> rule = {offsets,
                                   targets,
                                   weights,
                                   degrees,
                                   labels,
                                   totals,
                                   refined,
                                   parts.data(),
                                   sub_sizes.data(),
                                   queue.data(),
                                   proposed.data(),
                                   weight_to_target.data(),
                                   1.0 / total,
                                   seed,
                                   rules[0],
                                   rules[2],
                                   0};
  const u32 queued = rules[3];
  RelabelResult result = {};
  fibres::launch(blocks, [&] {
    refine<W, u32>(rule, tables.hubs(), n, queued, &control, loops, &result);
  });
  sums[0] = result.inside;
  sums[1] = result.squares[0] + (result.squares[1] << 32);
}

}  // namespace

// kind: 0 unweighted, 1 packed, 2 weights of 32 bits, 3 packed with offsets of 32 bits, 4 packed
// with weights of 16 bits; of packed targets, `weights` are the heads. rules: salt,
// cycle, sub-rounds, most sweeps, full sweeps, least sweeps, sub-rounds queued at a time.
extern "C" void move_level(int blocks, int kind, i64 n, const i64* offsets, const u32* targets,
                           const u32* weights, const u32* degrees, const u32* start, u32* labels,
                           u32* totals, double total, u32 seed, const u32* rules, i64 tolerance,
                           u64* counts) {
  auto run = [&](auto* w) {
    move_typed(blocks, n, offsets, targets, w, degrees, start, labels, totals, total, seed, rules,
            tolerance, counts);
  };
  if (kind == 0) run((const Unweighted*)nullptr);
  if (kind == 1) run((const Packed*)weights);
  if (kind == 2) run(weights);
  if (kind == 3) run((const PackedOffsets32*)weights);
  if (kind == 4) run((const PackedWeights16*)weights);
}

extern "C" void refine_level(int blocks, int kind, i64 n, const i64* offsets, const u32* targets,
                             const u32* weights, const u32* degrees, const u32* labels,
                             const u32* totals, u32* refined, double total, u32 seed,
                             const u32* rules, const u32* loops, u64* sums) {
  auto run = [&](auto* w) {
    refine_as(blocks, n, offsets, targets, w, degrees, labels, totals, refined, total, seed, rules,
              loops, sums);
  };
  if (kind == 0) run((const Unweighted*)nullptr);
  if (kind == 1) run((const Packed*)weights);
  if (kind == 2) run(weights);
  if (kind == 3) run((const PackedOffsets32*)weights);
  if (kind == 4) run((const PackedWeights16*)weights);
}

// kind: 0 unweighted, 1 weights of 32 bits, 2 of 64.
template <class W>
static void move_spans(int blocks, const void* rule, const HubTables<u64>* hubs,
                       const Sweeps* sweeps) {
  const auto& s = *(const MoveRule<Spans<W>, u64>*)rule;
  fibres::launch(blocks, [&] { move<Spans<W>, u64>(s, *hubs, *sweeps); });
}

extern "C" void move_as(int blocks, int kind, const void* rule, const HubTables<u64>* hubs,
                        const Sweeps* sweeps) {
  if (kind == 0) move_spans<Unweighted>(blocks, rule, hubs, sweeps);
  if (kind == 1) move_spans<u32>(blocks, rule, hubs, sweeps);
  if (kind == 2) move_spans<u64>(blocks, rule, hubs, sweeps);
}
