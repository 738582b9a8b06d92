// Moving and refinement by the extended rule, by emulated blocks. All sums have 64 bits.
#include "cuda.h"  // first: it stands in for CUDA

#include "move.cu"
#include "refine.cu"

namespace {

// Tables for hubs, fewer than all need at once: they are served in batches.
struct Tables {
  static constexpr u64 slots = 5000;
  std::vector<u32> keys = std::vector<u32>(slots, EMPTY);
  std::vector<u64> sums = std::vector<u64>(slots), own_weights, begins;
  std::vector<u32> fills, drains;
  std::vector<HubChoice> choices;
  explicit Tables(i64 n)
      : own_weights(n + 1), begins(n + 1), fills(n + 1), drains(n + 1), choices(n + slots) {}
  HubTables<u64> hubs() {
    return {keys.data(),   sums.data(),        slots,         begins.data(), fills.data(),
            drains.data(), own_weights.data(), choices.data()};
  }
};

// What both functions take: a graph, the masses of its vertices, and rates.
struct Input {
  i64 n;
  const i64* offsets;
  const u32* targets;
  const u64* weights;
  const u64* masses;
  const u64* second;   // null without any
  const u64* members;  // null without a maximum size
  const u64* fixed;    // null without any
  double rate, second_rate, total, most_gain;
  u64 max_size;
  u64 seed;
};

template <class W>
void move_as(int blocks, const Input& in, const W* weights, const u32* start, u32* labels,
             u64* totals, u64* second_totals, const u32* rules, i64 tolerance, u64* counts) {
  const i64 n = in.n;
  std::vector<u32> sizes(n), queue(n), proposed(n), champions(n);
  std::vector<u32> active((n + 31) / 32), next_active((n + 31) / 32);
  std::vector<u8> pinned(n);
  std::vector<u64> member_totals(n), incoming(n);
  std::vector<i64> gains(n);
  Tables tables(n);
  Control control = {};
  ExtendedMoveRule<W, u64> rule;
  (MoveRule<W, u64>&)rule = {in.offsets, in.targets,   weights,      in.masses,
                             labels,     totals,       sizes.data(), queue.data(),
                             proposed.data(), in.rate, in.total,     (u32)in.seed};
  rule.second = in.second, rule.second_totals = second_totals;
  rule.members = in.members, rule.member_totals = member_totals.data();
  rule.fixed = in.fixed, rule.pinned = pinned.data();
  rule.gains = in.members ? gains.data() : nullptr;
  rule.incoming = incoming.data(), rule.champions = champions.data();
  rule.second_rate = in.second_rate, rule.most_gain = in.most_gain, rule.max_size = in.max_size;
  const Sweeps sweeps = {n,        start,    nullptr, active.data(), next_active.data(), &control, tolerance,
                         rules[0], rules[1], rules[2],      rules[3],           rules[4], rules[5], rules[2]};
  fibres::launch(blocks, [&] { move<W, u64, Extended>(rule, tables.hubs(), sweeps); });
  counts[0] = control.iterations;
  counts[1] = control.total_moves;
  counts[2] = control.visited;
  counts[3] = control.total_gain;
}

template <class W>
void refine_as(int blocks, const Input& in, const W* weights, const u32* labels, const u64* totals,
               const u64* second_totals, u32* refined, const u32* rules) {
  const i64 n = in.n;
  std::vector<u8> sub_sizes(n);
  std::vector<u32> queue(n), proposed(n);
  std::vector<Part<u64>> parts(n);
  std::vector<u64> sub_seconds(n), weight_to_target(n);
  Tables tables(n);
  Control control = {};
  ExtendedRefineRule<W, u64> rule;
  (RefineRule<W, u64>&)rule = {in.offsets,
                               in.targets,
                               weights,
                               in.masses,
                               labels,
                               totals,
                               refined,
                               parts.data(),
                               sub_sizes.data(),
                               queue.data(),
                               proposed.data(),
                               weight_to_target.data(),
                               in.rate,
                               (u32)in.seed,
                               rules[0],
                               rules[2],
                               0};
  rule.second = in.second, rule.second_totals = second_totals;
  rule.sub_seconds = sub_seconds.data(), rule.second_rate = in.second_rate;
  fibres::launch(blocks, [&] {
    refine<W, u64, Extended>(rule, tables.hubs(), n, rules[2], &control, nullptr, nullptr);
  });
}

}  // namespace

// rules: salt, cycle, sub-rounds, most sweeps, full sweeps, least sweeps.
extern "C" void move_extended(int blocks, const Input* in, const u32* start, u32* labels,
                              u64* totals, u64* second_totals, const u32* rules, i64 tolerance,
                              u64* counts) {
  auto run = [&](auto* w) {
    move_as(blocks, *in, w, start, labels, totals, second_totals, rules, tolerance, counts);
  };
  in->weights ? run(in->weights) : run((const Unweighted*)nullptr);
}

extern "C" void refine_extended(int blocks, const Input* in, const u32* labels, const u64* totals,
                                const u64* second_totals, u32* refined, const u32* rules) {
  auto run = [&](auto* w) {
    refine_as(blocks, *in, w, labels, totals, second_totals, refined, rules);
  };
  in->weights ? run(in->weights) : run((const Unweighted*)nullptr);
}
