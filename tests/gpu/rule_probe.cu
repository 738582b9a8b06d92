// The rule's arithmetic for tests: one thread per element.
#include "rules.cuh"

__global__ void probe_rule(const u32* a, const u32* b, u32* mixed, u32* rounds, u8* first, i64 n,
                           u32 salt, u32 sub_rounds, u32 seed) {
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * (i64)blockDim.x) {
    mixed[i] = mix32(a[i]);
    rounds[i] = bucket(a[i], salt, sub_rounds);
    first[i] = wins_tie(a[i], b[i], seed);
  }
}

__global__ void probe_score(const u64* weight, const double* pull, const u64* total,
                            double* score, i64 n) {
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * (i64)blockDim.x) {
    score[i] = score_of(weight[i], pull[i], total[i]);
  }
}
