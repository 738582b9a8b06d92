#include "cuda.h"  // first: it stands in for CUDA

#include "listed_aggregate.cu"

#include "launch.h"

static const std::map<std::string, Launch>& kernels() {
  static const std::map<std::string, Launch> all = {
      LISTED(aggregate_small), LISTED(number_labels), LISTED(group_members), LISTED(sum_members),
      LISTED(sample_rows),     LISTED(lay_out),       LISTED(sum_arcs),      LISTED(sum_level)};
  return all;
}
