#include "cuda.h"  // first: it stands in for CUDA

#include "move.cu"
#include "refine.cu"

#include "launch.h"

static const std::map<std::string, Launch>& kernels() {
  static const std::map<std::string, Launch> all = {EXTENDED(move), EXTENDED(refine)};
  return all;
}
