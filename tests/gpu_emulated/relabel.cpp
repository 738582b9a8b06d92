// Relabelling of communities by emulated blocks.
#include "cuda.h"  // first: it stands in for CUDA

#include "relabel.cu"

namespace {

template <class W>
void sums_as(int blocks, i64 n, const i64* offsets, const u32* targets, const W* weights,
             const u32* degrees, const u32* start, u64* counts) {
  std::vector<u32> totals(n), used(n);
  RelabelResult result = {};
  fibres::launch(blocks, [&] {
    sum_communities<W, u32>(n, offsets, targets, weights, nullptr, degrees, start, totals.data(),
                            used.data(), &result);
  });
  counts[0] = result.inside;
  counts[1] = result.squares[0] + (result.squares[1] << 32);
  counts[2] = result.communities;
}

}  // namespace

// kind as in move.cpp.
extern "C" void sum_level(int blocks, int kind, i64 n, const i64* offsets, const u32* targets,
                          const u32* weights, const u32* degrees, const u32* start, u64* counts) {
  auto run = [&](auto* w) { sums_as(blocks, n, offsets, targets, w, degrees, start, counts); };
  if (kind == 0) run((const Unweighted*)nullptr);
  if (kind == 1) run((const Packed*)weights);
  if (kind == 2) run(weights);
  if (kind == 3) run((const PackedOffsets32*)weights);
  if (kind == 4) run((const PackedWeights16*)weights);
}

extern "C" void split_level(int blocks, int kind, i64 n, const i64* offsets, const u32* targets,
                            const void* weights, const u64* fixed, u32* labels) {
  std::vector<u32> parents(n), first(n);
  RelabelResult result = {};
  fibres::launch(blocks, [&] {
    const u32 form = kind == 1 || kind == 4 ? SORTED_ROWS : kind == 3 ? SHORT_OFFSETS : 0;
    split_communities(n, offsets, targets, weights, form, fixed, first.data(), labels, parents.data(),
                      &result);
  });
}

extern "C" void sum_masses(int blocks, i64 n, const u64* masses, const u32* numbers, u64* sums) {
  fibres::launch(blocks, [&] { add_masses(n, masses, numbers, sums); });
}
