// Batches on changing graphs by emulated blocks.
#include "cuda.h"  // first: it stands in for CUDA

#include "batches.cu"
#include "linked.cu"  // before merge.cu, which defines CHUNK
#include "merge.cu"

// kind: 0 unweighted, 1 weights of 32 bits, 2 of 64.
template <class F>
static void typed(int kind, void* weights, F run) {
  if (kind == 0) run((Unweighted*)nullptr);
  if (kind == 1) run((u32*)weights);
  if (kind == 2) run((u64*)weights);
}

template <class W>
using Plain = std::remove_pointer_t<W>;

extern "C" void key_edges_as(int blocks, int, i64 count, const void* u, i64 u_type, const void* v,
                             i64 v_type, const void* weights, i64 weights_type, i64 one, i64 n,
                             const u8* alive, double scale, i64 directed, i64 first, i64 listed,
                             u64* keys, i64* given, BatchCounts* counts) {
  fibres::launch(blocks, [=] {
    key_edges(count, u, u_type, v, v_type, weights, weights_type, one, n, alive, scale, directed,
              first, listed, keys, given, counts);
  });
}

extern "C" void sort_keys_as(int blocks, int, i64 count, u64* keys, u64* spare, i64* order,
                             i64* spare_order, BatchCounts* counts) {
  fibres::launch(blocks, [=] { sort_keys(count, keys, spare, order, spare_order, counts); });
}

extern "C" void net_batch_as(int blocks, int kind, const Batch* b) {
  typed(kind, nullptr, [&](auto* w) {
    fibres::launch(blocks, [=] { net_batch<Plain<decltype(w)>>(*b); });
  });
}

extern "C" void end_batch_as(int blocks, int kind, const Batch* b, u64* loops,
                             i64* edges) {
  typed(kind, nullptr, [&](auto* w) {
    fibres::launch(blocks, [=] { end_batch<Plain<decltype(w)>>(*b, loops, edges); });
  });
}

extern "C" void find_arcs_as(int blocks, int kind, i64 count, const Row* spans, const u32* targets,
                             void* weights, const u64* loops, i64 linked, const u32* u,
                             const u32* v, i64* found) {
  typed(kind, weights, [&](auto* w) {
    using W = Plain<decltype(w)>;
    fibres::launch(blocks, [=] {
      find_arcs<W>(count, spans, targets, (const W*)w, loops, linked, u, v, found);
    });
  });
}

extern "C" void merge_rows_as(int blocks, int kind, const Batch* b, i64 rows, i64 each, i64 room,
                              u32* targets, void* weights, Row* spans, u8* classes) {
  typed(kind, weights, [&](auto* w) {
    fibres::launch(blocks, [=] {
      merge_rows<Plain<decltype(w)>>(*b, rows, each, room, targets, w, spans, classes);
    });
  });
}

extern "C" void edit_pages_as(int blocks, int kind, const Batch* b, i64 rows, u32* targets,
                              void* weights, Row* spans, u8* classes) {
  typed(kind, weights, [&](auto* w) {
    fibres::launch(blocks, [=] {
      edit_pages<Plain<decltype(w)>>(*b, rows, targets, w, spans, classes);
    });
  });
}

extern "C" void lay_out_rows_as(int blocks, int, const Batch* b, i64 n, i64 rows, Row* spans,
                                i64* offsets, u8* classes) {
  fibres::launch(blocks, [=] { lay_out_rows(*b, n, rows, spans, offsets, classes); });
}

extern "C" void rebuild_rows_as(int blocks, int kind, const Batch* b, i64 n, i64 rows,
                                const i64* begins, i64 stride, const u8* classes, u32* targets,
                                void* weights) {
  typed(kind, weights, [&](auto* w) {
    fibres::launch(blocks, [=] {
      rebuild_rows<Plain<decltype(w)>>(*b, n, rows, begins, stride, classes, targets, w);
    });
  });
}

extern "C" void count_blocks_as(int blocks, int kind, const Batch* b, i64 linked, i64 rows,
                                i64 mixed) {
  typed(kind, nullptr, [&](auto* w) {
    fibres::launch(blocks, [=] { count_blocks<Plain<decltype(w)>>(*b, linked, rows, mixed); });
  });
}

extern "C" void edit_linked_as(int blocks, int kind, const Batch* b, i64 linked, BlockQueue* queue,
                               i64 count, i64 front, i64 cut, i64 asked, i64 lanes, i64 rows,
                               u32* targets, void* weights, Row* spans, u8* ascending) {
  typed(kind, weights, [&](auto* w) {
    fibres::launch(blocks, [=] {
      edit_linked<Plain<decltype(w)>>(*b, linked, queue, count, front, cut, asked, lanes, rows,
                                     targets, w, spans, ascending);
    });
  });
}

extern "C" void edit_arcs_as(int blocks, int kind, const Batch* b, i64 linked, BlockQueue* queue,
                             i64 count, i64 front, i64 cut, i64 asked, i64 lanes, u32* targets,
                             void* weights, Row* spans, u8* ascending) {
  typed(kind, weights, [&](auto* w) {
    fibres::launch(blocks, [=] {
      edit_arcs<Plain<decltype(w)>>(*b, linked, queue, count, front, cut, asked, lanes, targets, w,
                                   spans, ascending);
    });
  });
}

extern "C" void list_rows_as(int blocks, int, i64 count, const u32* u, const i64* firsts,
                             const Row* spans, i64 linked, const u32* targets, i64* places,
                             u32* owners) {
  fibres::launch(
      blocks, [=] { list_rows(count, u, firsts, spans, linked, targets, places, owners); });
}

extern "C" void find_listed_as(int blocks, int kind, i64 listed, const u32* u, const u32* v,
                               const i64* firsts, const Row* spans, i64 linked, const i64* places,
                               const u32* owners, const u32* targets, void* weights, i64* found) {
  typed(kind, weights, [&](auto* w) {
    using W = Plain<decltype(w)>;
    fibres::launch(blocks, [=] {
      find_listed<W>(listed, u, v, firsts, spans, linked, places, owners, targets, (const W*)w,
                     found);
    });
  });
}

extern "C" void gather_linked_as(int blocks, int kind, i64 count, const u32* ids, const i64* offsets,
                                 const Row* spans, i64 linked, const u32* targets,
                                 const void* weights, u64* keys, void* to_weights, i64* places) {
  typed(kind, to_weights, [&](auto* w) {
    using W = Plain<decltype(w)>;
    fibres::launch(blocks, [=] {
      gather_linked<W>(count, ids, offsets, spans, linked, targets, (const W*)weights, keys, w, places);
    });
  });
}

extern "C" void find_mentions_as(int blocks, int, i64 n, const Row* spans, i64 linked,
                                 const u32* targets, i64 many, const u32* vertices, i64 room,
                                 u64* keys, u64* found) {
  fibres::launch(blocks, [=] {
    find_mentions(n, spans, linked, targets, many, vertices, room, keys, found);
  });
}

extern "C" void give_ids_as(int blocks, int, BlockQueue* queue, i64 back, i64 count, const u32* ids) {
  fibres::launch(blocks, [=] { give_ids(queue, back, count, ids); });
}

extern "C" void take_ids_as(int blocks, int, BlockQueue* queue, i64 count, i64 front, i64 cut,
                            i64 asked, i64 wanted, u32* ids) {
  fibres::launch(blocks, [=] { take_ids(queue, count, front, cut, asked, wanted, ids); });
}

extern "C" void order_linked_as(int blocks, int kind, i64 count, const u32* ids, const i64* offsets,
                                const Row* spans, i64 linked, const u64* keys,
                                const void* from_weights, u32* targets, void* weights) {
  typed(kind, weights, [&](auto* w) {
    using W = Plain<decltype(w)>;
    fibres::launch(blocks, [=] {
      order_linked<W>(count, ids, offsets, spans, linked, keys, (const W*)from_weights, targets, w);
    });
  });
}

extern "C" void fill_linked_as(int blocks, int kind, i64 n, const i64* offsets,
                               const u32* from_targets, const void* from_weights, const i64* firsts,
                               i64 linked, u32* targets, void* weights, Row* spans, u32* live) {
  typed(kind, weights, [&](auto* w) {
    using W = Plain<decltype(w)>;
    fibres::launch(blocks, [=] {
      fill_linked<W>(n, offsets, from_targets, (const W*)from_weights, firsts, linked, targets, w,
                     spans, live);
    });
  });
}
