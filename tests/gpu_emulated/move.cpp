// Moving on the rows of a changing graph by emulated blocks.
#include "cuda.h"  // first: it stands in for CUDA

#include "move.cu"

// kind: 0 unweighted, 1 weights of 32 bits, 2 of 64.
template <class W>
static void move_spans(int blocks, const void* rule, const HubTables<u64>* hubs,
                       const Sweeps* sweeps) {
  const auto& s = *(const MoveRule<Spans<W>, u64>*)rule;
  fibres::launch(blocks, [&] { move<Spans<W>, u64>(s, *hubs, *sweeps); });
}

extern "C" void move_as(int blocks, int kind, const void* rule, const HubTables<u64>* hubs,
                        const Sweeps* sweeps) {
  if (kind == 0) move_spans<Unweighted>(blocks, rule, hubs, sweeps);
  if (kind == 1) move_spans<u32>(blocks, rule, hubs, sweeps);
  if (kind == 2) move_spans<u64>(blocks, rule, hubs, sweeps);
}
