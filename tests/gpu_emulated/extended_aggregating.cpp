#include "cuda.h"  // first: it stands in for CUDA

#include "aggregate.cu"

#include "launch.h"

static const std::map<std::string, Launch>& kernels() {
  static const std::map<std::string, Launch> all = {
      WIDE(aggregate_small), WIDE(number_labels), WIDE(group_members), WIDE(sum_members),
      WIDE(sample_rows),     WIDE(lay_out),       WIDE(sum_arcs),      WIDE(sum_level)};
  return all;
}
