#include "cuda.h"  // first: it stands in for CUDA

#include "aggregate.cu"

#include "launch.h"

static const std::map<std::string, Launch>& kernels() {
  static const std::map<std::string, Launch> all = {
      PACKED(aggregate_small), PACKED(number_labels), PACKED(group_members), PACKED(sum_members),
      PACKED(sample_rows),     PACKED(lay_out),       PACKED(sum_arcs),      PACKED(sum_level)};
  return all;
}
