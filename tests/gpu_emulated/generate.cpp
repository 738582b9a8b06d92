// Random graphs of given degrees, by emulated blocks.
#include "cuda.h"  // first: it stands in for CUDA

#include "generate.cu"

extern "C" void expand_stubs_as(int blocks, int, i64 slots, const i64* sums, u32* out) {
  fibres::launch(blocks, [=] { expand_stubs(slots, sums, out); });
}

extern "C" void draw_keys_as(int blocks, int, i64 count, u64 key, i64 bits, u64* keys) {
  fibres::launch(blocks, [=] { draw_keys(count, key, bits, keys); });
}
