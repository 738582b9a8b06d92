// Moving on a level, and refining it, by emulated blocks.
#include "cuda.h"
#include "move.cu"
#include "refine.cu"

namespace {

// Tables for hubs, fewer than all need at once: they are served in batches.
struct Tables {
  static constexpr u64 slots = 1 << 14;
  std::vector<u32> keys = std::vector<u32>(slots, EMPTY), sums = std::vector<u32>(slots);
  std::vector<u32> fills, drains, own_weights;
  std::vector<u64> begins;
  std::vector<Choice> choices;
  explicit Tables(i64 n)
      : fills(n + 1), drains(n + 1), own_weights(n + 1), begins(n + 1), choices(n + slots) {}
  HubTables<u32> hubs() {
    return {keys.data(),  sums.data(),   slots,        begins.data(),
            fills.data(), drains.data(), own_weights.data(), choices.data()};
  }
};

template <class W>
void move_as(int blocks, i64 n, const i64* offsets, const u32* targets, const W* weights,
             const u32* degrees, const u32* start, u32* labels, u32* totals, double total, u32 seed,
             const u32* rules, i64 tolerance, u64* told) {
  std::vector<u32> sizes(n), queue(n), proposed(n);
  std::vector<u8> active(n), next(n);
  Tables tables(n);
  Control control = {};
  fibres::launch(blocks, [&] {
    move<W, u32>(n, offsets, targets, weights, degrees, start, labels, totals, sizes.data(),
                 queue.data(), proposed.data(), active.data(), next.data(), tables.hubs(), &control,
                 1.0 / total, total, seed, rules[0], rules[1], rules[2], rules[3], rules[4],
                 rules[5], tolerance);
  });
  told[0] = control.iterations;
  told[1] = control.total_moves;
  told[2] = control.visited;
  told[3] = control.total_gain;
}

template <class W>
void refine_as(int blocks, i64 n, const i64* offsets, const u32* targets, const W* weights,
               const u32* degrees, const u32* labels, const u32* totals, u32* refined, double total,
               u32 seed, const u32* rules) {
  std::vector<u32> sub_totals(n), sizes(n), external_weight(n), queue(n), proposed(n), weight_to_target(n);
  Tables tables(n);
  Control control = {};
  fibres::launch(blocks, [&] {
    refine<W, u32>(n, offsets, targets, weights, degrees, labels, totals, refined,
                   sub_totals.data(), sizes.data(), external_weight.data(), queue.data(), proposed.data(),
                         weight_to_target.data(), tables.hubs(), &control, 1.0 / total, seed, rules[0],
                         rules[2]);
  });
}

}  // namespace

// kind: 0 unweighted, 1 packed, 2 weights of 32 bits. rules: salt, cycle, sub-rounds, most sweeps,
// restless, patience.
extern "C" void move_level(int blocks, int kind, i64 n, const i64* offsets, const u32* targets,
                           const u32* weights, const u32* degrees, const u32* start, u32* labels,
                           u32* totals, double total, u32 seed, const u32* rules, i64 tolerance,
                           u64* told) {
  auto run = [&](auto* w) {
    move_as(blocks, n, offsets, targets, w, degrees, start, labels, totals, total, seed, rules,
            tolerance, told);
  };
  if (kind == 0) run((const Unweighted*)nullptr);
  if (kind == 1) run((const Targets24*)nullptr);
  if (kind == 2) run(weights);
}

extern "C" void refine_level(int blocks, int kind, i64 n, const i64* offsets, const u32* targets,
                             const u32* weights, const u32* degrees, const u32* labels,
                             const u32* totals, u32* refined, double total, u32 seed,
                             const u32* rules) {
  auto run = [&](auto* w) {
    refine_as(blocks, n, offsets, targets, w, degrees, labels, totals, refined, total, seed, rules);
  };
  if (kind == 0) run((const Unweighted*)nullptr);
  if (kind == 1) run((const Targets24*)nullptr);
  if (kind == 2) run(weights);
}
