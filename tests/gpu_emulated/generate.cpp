// Random graphs of given degrees, by emulated blocks.
#include "cuda.h"  // first: it stands in for CUDA

#include "generate.cu"

extern "C" void draw_keys_as(int blocks, int, i64 count, u64 key, i64 bits, u64* keys) {
  fibres::launch(blocks, [=] { draw_keys(count, key, bits, keys); });
}

extern "C" void weigh_communities_as(int blocks, int, i64 n, const i64* offsets, const u32* targets, const void* weights, i64 type, const u64* loops, const u32* labels, u64* inside, u64* totals) {
  fibres::launch(blocks, [=] { weigh_communities(n, offsets, targets, weights, type, loops, labels, inside, totals); });
}
