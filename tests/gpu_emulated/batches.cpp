// Batches on changing graphs by emulated blocks.
#include "cuda.h"  // first: it stands in for CUDA

#include "batches.cu"

// kind: 0 unweighted, 1 weights of 32 bits, 2 of 64.
template <class F>
static void typed(int kind, void* weights, F run) {
  if (kind == 0) run((Unweighted*)nullptr);
  if (kind == 1) run((u32*)weights);
  if (kind == 2) run((u64*)weights);
}

extern "C" void find_arcs_as(int blocks, int kind, i64 count, const i64* begins, const i64* ends,
                             const u32* targets, void* weights, const u32* u, const u32* v,
                             i64* found) {
  typed(kind, weights, [&](auto* w) {
    using W = std::remove_pointer_t<decltype(w)>;
    fibres::launch(blocks, [=] {
      find_arcs<W>(count, begins, ends, targets, (const W*)w, u, v, found);
    });
  });
}

extern "C" void merge_rows_as(int blocks, int kind, i64 rows, const i64* work, const i64* begins,
                              const i64* lengths, const i64* changes, const i64* out,
                              const u64* keys, const i64* before, const i64* after,
                              const i64* gained, const u32* targets, void* weights,
                              u32* out_targets, void* out_weights) {
  typed(kind, weights, [&](auto* w) {
    using W = std::remove_pointer_t<decltype(w)>;
    fibres::launch(blocks, [=] {
      merge_rows<W>(rows, work, begins, lengths, changes, out, keys, before, after, gained, targets,
                    (const W*)w, out_targets, (W*)out_weights);
    });
  });
}

extern "C" void copy_rows_as(int blocks, int kind, i64 rows, const i64* work, const i64* from,
                             const i64* to, u32* targets, void* weights) {
  typed(kind, weights, [&](auto* w) {
    using W = std::remove_pointer_t<decltype(w)>;
    fibres::launch(blocks, [=] { copy_rows<W>(rows, work, from, to, targets, (W*)w); });
  });
}
