// Moving and refinement of a level whose rows are dealt over virtual devices, which take turns.
#include "cuda.h"  // first: it stands in for CUDA

#include "vertex_blocks.cu"
#include "ranks.cu"

namespace {

constexpr u32 SUB_ROUNDS = 8;

struct Tables {
  static constexpr u64 slots = 1 << 14;
  std::vector<u32> keys = std::vector<u32>(slots, EMPTY), sums = std::vector<u32>(slots);
  std::vector<u32> fills, drains, own_weights;
  std::vector<u64> begins;
  std::vector<Choice> choices;
  explicit Tables(i64 n)
      : fills(n + 1), drains(n + 1), own_weights(n + 1), begins(n + 1), choices(n + slots) {}
  HubTables<u32> hubs() {
    return {keys.data(),   sums.data(),        slots,         begins.data(), fills.data(),
            drains.data(), own_weights.data(), choices.data()};
  }
};

// One device: its own rows, and what it knows of all vertices.
template <class W>
struct Rank {
  std::vector<i64> offsets;
  const u32* targets;
  const W* weights;
  std::vector<u32> labels, totals, sizes, queue, proposed, spans, weight_to_target, external;
  std::vector<u8> active, next_active;
  Tables tables;
  Control control = {};
  Rank(i64 n, const i64* all, const u32* t, const W* w, u32 low, u32 high, int ranks)
      : offsets(all, all + n + 1), targets(t + all[low]), weights(w ? w + all[low] : w), labels(n),
        totals(n), sizes(n), queue(n), proposed(n), spans(SUB_ROUNDS * ranks * (BINS + 1)),
        weight_to_target(n), external(n), active(n), next_active(n), tables(n) {
    for (auto& offset : offsets)
      offset = (offset < all[low] ? all[low] : offset > all[high] ? all[high] : offset) - all[low];
  }
};

template <class W>
void move_as(int blocks, i64 n, const i64* offsets, const u32* targets, const W* weights,
             const u32* degrees, int ranks, const u32* bounds, double total, u32 seed, int sweeps,
             const u32* salts, const u8* prunes, u32* labels, u64* counts) {
  std::vector<Rank<W>> all;
  for (int k = 0; k < ranks; ++k)
    all.emplace_back(n, offsets, targets, weights, bounds[k], bounds[k + 1], ranks);
  auto rule = [&](Rank<W>& own, Rank<W>& from) {
    return MoveRule<W, u32>{own.offsets.data(), own.targets,        own.weights,
                            degrees,            own.labels.data(),  own.totals.data(),
                            own.sizes.data(),   from.queue.data(),  from.proposed.data(),
                            1.0 / total,        total,              seed};
  };
  auto shared = [&](Rank<W>& own, u32 salt) {
    return VertexBlocks{n,       (u64)ranks,   bounds, own.active.data(), own.next_active.data(),
                        own.spans.data(), nullptr, &own.control, salt,  SUB_ROUNDS};
  };
  auto on_all = [&](auto step) {
    for (int k = 0; k < ranks; ++k)
      fibres::launch(blocks, [&, k] { step(all[k], (u32)k); });
  };
  on_all([&](Rank<W>& own, u32) {
    begin_moving<W, u32>(rule(own, own), shared(own, 0), nullptr);
  });
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    on_all([&](Rank<W>& own, u32) { begin_own_sweep(n, own.next_active.data(), &own.control); });
    u32 moved = EMPTY;
    for (u32 r = 0; r <= SUB_ROUNDS; ++r) {
      const u32 round = r < SUB_ROUNDS ? r : EMPTY;
      if (round == EMPTY && moved == EMPTY) break;
      on_all([&](Rank<W>& own, u32 k) {
        move_block<W, u32>(rule(own, own), shared(own, salts[sweep]), own.tables.hubs(), k, round,
                           moved);
      });
      for (int from = 0; from < ranks && round != EMPTY; ++from)
        on_all([&](Rank<W>& own, u32) {
          const u32* spans = all[from].spans.data();
          apply_span<W, u32>(rule(own, all[from]), spans + (r * ranks + from) * (BINS + 1));
        });
      if (prunes[sweep]) moved = r;
    }
    for (int from = 0; from < ranks && prunes[sweep]; ++from)
      on_all([&](Rank<W>& own, u32) {
        merge_active(n, own.active.data(), all[from].next_active.data(), from == 0);
      });
  }
  for (int k = 0; k < ranks; ++k) {
    std::copy(all[k].labels.begin(), all[k].labels.end(), labels + k * n);
    counts[0] += all[k].control.visited;
    counts[1] += all[k].control.moves[0];
  }
}

template <class W>
void refine_as(int blocks, i64 n, const i64* offsets, const u32* targets, const W* weights,
               const u32* degrees, int ranks, const u32* bounds, const u32* labels,
               const u32* totals, double total, u32 seed, u32 salt, u32* refined) {
  std::vector<Rank<W>> all;
  for (int k = 0; k < ranks; ++k)
    all.emplace_back(n, offsets, targets, weights, bounds[k], bounds[k + 1], ranks);
  auto rule = [&](Rank<W>& own, Rank<W>& from) {
    return RefineRule<W, u32>{own.offsets.data(),
                              own.targets,
                              own.weights,
                              degrees,
                              (u32*)labels,
                              (u32*)totals,
                              own.labels.data(),
                              own.totals.data(),
                              own.sizes.data(),
                              own.external.data(),
                              from.queue.data(),
                              from.proposed.data(),
                              from.weight_to_target.data(),
                              1.0 / total,
                              seed,
                              salt,
                              SUB_ROUNDS,
                              0};
  };
  auto shared = [&](Rank<W>& own) {
    return VertexBlocks{n,       (u64)ranks,   bounds, nullptr,   nullptr, own.spans.data(),
                        nullptr, &own.control, salt,   SUB_ROUNDS};
  };
  auto on_all = [&](auto step) {
    for (int k = 0; k < ranks; ++k)
      fibres::launch(blocks, [&, k] { step(all[k], (u32)k); });
  };
  on_all([&](Rank<W>& own, u32) { begin_refining<W, u32>(rule(own, own), shared(own)); });
  on_all([&](Rank<W>& own, u32 k) { weigh_block<W, u32>(rule(own, own), shared(own), k); });
  for (int k = 0; k < ranks; ++k)
    for (int from = 0; from < ranks; ++from)
      std::copy(all[from].external.begin() + bounds[from],
                all[from].external.begin() + bounds[from + 1],
                all[k].external.begin() + bounds[from]);
  for (u32 r = 0; r < SUB_ROUNDS; ++r) {
    on_all([&](Rank<W>& own, u32 k) {
      refine_block<W, u32>(rule(own, own), shared(own), own.tables.hubs(), k, r);
    });
    for (int from = 0; from < ranks; ++from)
      on_all([&](Rank<W>& own, u32) {
        const u32* spans = all[from].spans.data();
        join_span<W, u32>(rule(own, all[from]), spans + (r * ranks + from) * (BINS + 1));
      });
  }
  for (int k = 0; k < ranks; ++k)
    std::copy(all[k].labels.begin(), all[k].labels.end(), refined + k * n);
}

}  // namespace

// kind: 0 unweighted, 2 weights of 32 bits. salts and prunes: one entry per sweep.
extern "C" void move_on_ranks(int blocks, int kind, i64 n, const i64* offsets, const u32* targets,
                              const u32* weights, const u32* degrees, int ranks, const u32* bounds,
                              double total, u32 seed, int sweeps, const u32* salts,
                              const u8* prunes, u32* labels, u64* counts) {
  auto run = [&](auto* w) {
    move_as(blocks, n, offsets, targets, w, degrees, ranks, bounds, total, seed, sweeps, salts,
            prunes, labels, counts);
  };
  if (kind == 0) run((const Unweighted*)nullptr);
  if (kind == 2) run(weights);
}

extern "C" void refine_on_ranks(int blocks, int kind, i64 n, const i64* offsets,
                                const u32* targets, const u32* weights, const u32* degrees,
                                int ranks, const u32* bounds, const u32* labels, const u32* totals,
                                double total, u32 seed, u32 salt, u32* refined) {
  auto run = [&](auto* w) {
    refine_as(blocks, n, offsets, targets, w, degrees, ranks, bounds, labels, totals, total, seed,
              salt, refined);
  };
  if (kind == 0) run((const Unweighted*)nullptr);
  if (kind == 2) run(weights);
}
