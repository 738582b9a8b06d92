#include "cuda.h"  // first: it stands in for CUDA

#include "move.cu"
#include "ranks.cu"
#include "refine.cu"

#include "launch.h"

static const std::map<std::string, Launch>& kernels() {
  static const std::map<std::string, Launch> all = {
      TYPED(begin_shared), TYPED(queue_local),    TYPED(move_round), TYPED(apply_round),
      TYPED(merge_active), TYPED(weigh_local),    TYPED(refine_round), TYPED(join_round),
      PLAIN(shift_offsets)};
  return all;
}
