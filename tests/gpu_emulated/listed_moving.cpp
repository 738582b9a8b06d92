#include "cuda.h"  // first: it stands in for CUDA

#include "listed_move.cu"

// Names of the operators are those of other kernels, too.
#include "functor.cuh"
#include "linked_rows.cuh"
namespace plain {
#include "operators.cu"
}

#include "launch.h"

static const std::map<std::string, Launch>& kernels() {
  static const std::map<std::string, Launch> all = {
      LISTED(move), LISTED(add_degrees), {"list_blocks", launch_of(plain::list_blocks)}};
  return all;
}
