// Rows in pages of an Ouroboros heap, by emulated blocks.
#include "cuda.h"  // first: it stands in for CUDA

#include "queued.cu"

// kind: the place of a variant in HEAPS of kernel_list.py.
template <class F>
static void each_variant(int kind, void** heap, F run) {
  auto* control = (ouroboros::Control*)*heap;
  if (kind == 0) run(OuroSP{control});
  if (kind == 1) run(OuroSC{control});
  if (kind == 2) run(OuroVAP{control});
  if (kind == 3) run(OuroVAC{control});
  if (kind == 4) run(OuroVLP{control});
  if (kind == 5) run(OuroVLC{control});
}

extern "C" void take_pages_as(int blocks, int kind, const Batch* b, void** heap, i64 rows) {
  each_variant(kind, heap, [=](auto own) {
    fibres::launch(blocks, [=] { take_pages(*b, own, rows); });
  });
}

extern "C" void free_pages_as(int blocks, int kind, const Batch* b, void** heap, i64 rows, i64 undo,
                              i64 end) {
  each_variant(kind, heap, [=](auto own) {
    fibres::launch(blocks, [=] { free_pages(*b, own, rows, undo, end); });
  });
}

extern "C" void place_rows_as(int blocks, int kind, BatchCounts* counts, void** heap, i64 n,
                              i64 queued, i64 shift, const u8* classes, Row* spans) {
  each_variant(kind, heap, [=](auto own) {
    fibres::launch(blocks, [=] { place_rows(counts, own, n, queued, shift, classes, spans); });
  });
}
