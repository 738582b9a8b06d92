#include "cuda.h"  // first: it stands in for CUDA

#include "move.cu"
#include "refine.cu"

#include "launch.h"

static const std::map<std::string, Launch>& kernels() {
  static const std::map<std::string, Launch> all = {TYPED(move), TYPED(add_degrees), TYPED(refine)};
  return all;
}
