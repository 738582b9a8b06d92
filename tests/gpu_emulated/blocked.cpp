// blocked_for by emulated blocks: who touches which element, and in which step.
#include "cuda.h"  // first: it stands in for CUDA

#include "blocked.cuh"

// visits[i] counts touches; warps[i] is the warp that touched it, steps[i] how many before it.
extern "C" void visit(int blocks, long long count, unsigned bytes, unsigned pages,
                      unsigned* visits, unsigned* warps, unsigned* steps) {
  fibres::launch(blocks, [&] {
    unsigned step = 0;
    blocked_for(i, count, bytes, pages) {
      atomicAdd(&visits[i], 1u);
      warps[i] = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
      steps[i] = step++;
    }
  });
}
