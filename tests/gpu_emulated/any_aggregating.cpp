#include "cuda.h"  // first: it stands in for CUDA

#include "aggregate.cu"

#include "launch.h"

static const std::map<std::string, Launch>& kernels() {
  static const std::map<std::string, Launch> all = {
      TYPED(aggregate_small), TYPED(number_labels), TYPED(group_members), TYPED(sum_members),
      TYPED(sample_rows),     TYPED(lay_out),       TYPED(sum_arcs),      TYPED(sum_level)};
  return all;
}
