#include "cuda.h"  // first: it stands in for CUDA

#include "relabel.cu"

#include "launch.h"

static const std::map<std::string, Launch>& kernels() {
  static const std::map<std::string, Launch> all = {
      TYPED(sum_communities),      PLAIN(relabel_communities), PLAIN(split_communities),
      PLAIN(add_masses),           PLAIN(size_communities),    PLAIN(key_communities),
      PLAIN(number_communities),   PLAIN(follow),              PLAIN(survey_degrees),
      PLAIN(sample_wedges),        PLAIN(sample_structure),    PLAIN(weigh_communities),
      PLAIN(count_together),
      PLAIN(strongest_arcs),       PLAIN(drop_weak)};
  return all;
}
