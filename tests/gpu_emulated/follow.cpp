// Following changing graphs by emulated blocks.
#include "cuda.h"  // first: it stands in for CUDA

#include "follow.cu"

extern "C" void mark_changes_as(int blocks, int, const Follow* f) {
  fibres::launch(blocks, [=] { mark_changes(*f); });
}

extern "C" void split_flagged_as(int blocks, int, const Follow* f, const u32* from, u32* to,
                                 i64 after_batch) {
  fibres::launch(blocks, [=] { split_flagged(*f, from, to, after_batch); });
}

extern "C" void assign_names_as(int blocks, int kind, const Follow* f, const u32* whole, i64 summed,
                                Differing* list, i64 most) {
  fibres::launch(blocks, [=] {
    if (kind == 0) assign_names<Unweighted>(*f, whole, summed, list, most);
    if (kind == 1) assign_names<u32>(*f, whole, summed, list, most);
    if (kind == 2) assign_names<u64>(*f, whole, summed, list, most);
  });
}

extern "C" void key_differing_as(int blocks, int, const Follow* f, u32* vertices, u64* keys) {
  fibres::launch(blocks, [=] { key_differing(*f, vertices, keys); });
}

extern "C" void list_groups_as(int blocks, int, const Follow* f, const u32* vertices, i64 count,
                               const i64* first, i64 groups, const u64* degrees, Differing* list) {
  fibres::launch(blocks, [=] { list_groups(*f, vertices, count, first, groups, degrees, list); });
}

extern "C" void release_touched_as(int blocks, int, const Follow* f, const u32* names,
                                   u32* start, u8* freed, double share) {
  fibres::launch(blocks, [=] { release_touched(*f, names, start, freed, share); });
}

extern "C" void flag_left_as(int blocks, int, const Follow* f) {
  fibres::launch(blocks, [=] { flag_left(*f); });
}
