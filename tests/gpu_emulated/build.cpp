// Building graphs by emulated blocks.
#include "cuda.h"  // first: it stands in for CUDA

#include "build.cu"

extern "C" void take_ids_as(int blocks, int, i64 count, const void* ids, i64 type, u32* out, BuildCounts* counts) {
  fibres::launch(blocks, [=] { take_ids(count, ids, type, out, counts); });
}

extern "C" void look_at_integers_as(int blocks, int, i64 count, const void* weights, i64 type, BuildCounts* counts) {
  fibres::launch(blocks, [=] { look_at_integers(count, weights, type, counts); });
}

extern "C" void look_at_reals_as(int blocks, int, i64 count, const void* weights, i64 type, BuildCounts* counts) {
  fibres::launch(blocks, [=] { look_at_reals(count, weights, type, counts); });
}

extern "C" void scale_reals_as(int blocks, int, i64 count, const void* weights, i64 type, double factor, double factor2, i64 shift, u64* out, BuildCounts* counts) {
  fibres::launch(blocks, [=] { scale_reals(count, weights, type, factor, factor2, shift, out, counts); });
}

extern "C" void take_integers_as(int blocks, int, i64 count, const void* weights, i64 type, i64 shift, u64* out) {
  fibres::launch(blocks, [=] { take_integers(count, weights, type, shift, out); });
}

extern "C" void take_keys_as(int blocks, int, i64 count, const void* ids, i64 type, u64* keys) {
  fibres::launch(blocks, [=] { take_keys(count, ids, type, keys); });
}

extern "C" void find_ids_as(int blocks, int, i64 count, const void* ids, i64 type, const u64* names, i64 n, u32* out) {
  fibres::launch(blocks, [=] { find_ids(count, ids, type, names, n, out); });
}

extern "C" void narrow_as(int blocks, int, i64 count, const u64* weights, u32* out) {
  fibres::launch(blocks, [=] { narrow(count, weights, out); });
}

extern "C" void count_ends_as(int blocks, int, i64 edges, const u32* u, const u32* v, u32* degrees, BuildCounts* counts) {
  fibres::launch(blocks, [=] { count_ends(edges, u, v, degrees, counts); });
}

extern "C" void list_keys_as(int blocks, int, i64 edges, const u32* u, const u32* v, u64* keys, BuildCounts* counts) {
  fibres::launch(blocks, [=] { list_keys(edges, u, v, keys, counts); });
}

extern "C" void row_offsets_as(int blocks, int, i64 n, const u32* degrees, i64* offsets, i64* partials, BuildCounts* counts) {
  fibres::launch(blocks, [=] { row_offsets(n, degrees, offsets, partials, counts); });
}

extern "C" void scatter_ends_as(int blocks, int, i64 edges, const u32* u, const u32* v, const u64* weights, i64 low, i64 high, const i64* offsets, u32* degrees, u32* targets, u64* out) {
  fibres::launch(blocks, [=] { scatter_ends(edges, u, v, weights, low, high, offsets, degrees, targets, out); });
}

extern "C" void row_keys_as(int blocks, int, i64 low, i64 high, const i64* offsets, const u32* targets, u64* keys) {
  fibres::launch(blocks, [=] { row_keys(low, high, offsets, targets, keys); });
}

extern "C" void label_keys_as(int blocks, int, i64 low, i64 high, const i64* offsets, const u32* targets, const u32* labels, u64* keys, BuildCounts* counts) {
  fibres::launch(blocks, [=] { label_keys(low, high, offsets, targets, labels, keys, counts); });
}

extern "C" void keep_arcs_as(int blocks, int, i64 count, const u64* keys, i64 low, u32* targets, u32* degrees, u64* loops, i64* partials, BuildCounts* counts) {
  fibres::launch(blocks, [=] { keep_arcs(count, keys, low, targets, degrees, loops, partials, counts); });
}

extern "C" void sum_runs_as(int blocks, int, i64 count, const u64* keys, const i64* order, i64 shift, const u64* weights, u64 summing, u64* unique, u64* sums, i64* partials, BuildCounts* counts) {
  fibres::launch(blocks, [=] { sum_runs(count, keys, order, shift, weights, summing, unique, sums, partials, counts); });
}

extern "C" void keep_weighted_as(int blocks, int, i64 count, const u64* keys, const u64* sums, i64 low, u32* targets, u64* weights, u32* degrees, u64* loops, i64* partials, BuildCounts* counts) {
  fibres::launch(blocks, [=] { keep_weighted(count, keys, sums, low, targets, weights, degrees, loops, partials, counts); });
}

extern "C" void look_at_rows_as(int blocks, int, i64 n, const void* offsets, i64 offsets_type, const void* indices, i64 indices_type, i64 entries, const void* values, i64 bytes, u64 key, BuildCounts* counts) {
  fibres::launch(blocks, [=] { look_at_rows(n, offsets, offsets_type, indices, indices_type, entries, values, bytes, key, counts); });
}

extern "C" void count_lines_as(int blocks, int, i64 count, const u8* text, u64 begins, u32* lines) {
  fibres::launch(blocks, [=] { count_lines(count, text, begins, lines); });
}

extern "C" void parse_lines_as(int blocks, int, i64 count, const u8* text, u64 begins, i64 last, u64 end, const i64* firsts, u64 separator, u64 shape, i64 least, i64 most, i64 type, void* u, void* v, double* w, BuildCounts* counts) {
  fibres::launch(blocks, [=] { parse_lines(count, text, begins, last, end, firsts, separator, shape, least, most, type, u, v, w, counts); });
}
