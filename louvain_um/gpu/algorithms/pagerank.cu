// PageRank: ranks are integers in units of 2^-60; what an arc carries is the product of two
// doubles, each rounded once, cut to an integer. The counterpart of cpu/algorithms/products.py.
#include "host_rows.cuh"
#include "linked_rows.cuh"

// What a row passes on along an arc of weight 1. Where all weights are 1 it is cut to an integer for
// the row: cutting it anew for each arc, as weights need, takes longer than loading it.
template <class W>
struct Share {
  double value;
  __device__ explicit Share(double share) : value(share) {}
  __device__ __forceinline__ i64 along(u64 weight) const {
    return __double2ll_rz(__dmul_rn(value, __ull2double_rn(weight)));
  }
};
template <>
struct Share<Unweighted> {
  i64 value;
  __device__ explicit Share(double share) : value(__double2ll_rz(share)) {}
  __device__ __forceinline__ i64 along(u64) const { return value; }
};

// A row's rank per unit of its weight `out`.
__device__ __forceinline__ double per_weight(i64 rank, double out) {
  return out > 0 ? __ddiv_rn(__ll2double_rn(rank), out) : 0.0;
}

// Sums the weight of each row, its loop once; sets first shares; adds the ranks of rows without
// any weight to sums[0].
template <class W, template <class> class Rows>
__global__ void BOUNDS weigh_rows(Rows<W> rows, const u64* loops, i64 start, i64* ranks,
                                  double* outs, void* shares, i64* sums) {
  i64 dangling = 0;
  fold_rows(
      rows, 0ull, [&](i64) { return true; }, [&](i64, i64 arc) { return rows.weight(arc); },
      [](u64 a, u64 b) { return a + b; },
      [&](i64 v, u64 total) {
        if (loops) total += loops[v];
        ranks[v] = start;
        outs[v] = __ull2double_rn(total);
        ((Share<W>*)shares)[v] = Share<W>(per_weight(start, outs[v]));
        dangling += total ? 0 : start;
      });
  dangling = block_sum(dangling);
  if (threadIdx.x == 0 && dangling) atomicAdd((u64*)sums, (u64)dangling);
}

// Replaces every rank by what its neighbours pass on; adds dangling ranks to sums[0] and changes to
// sums[1]. Shares stay in the L2 cache, past which targets are streamed.
template <class W, template <class> class Rows>
__global__ void BOUNDS iterate(Rows<W> rows, const u64* loops, double damping, i64 base,
                               const double* outs, const void* shares, void* next_shares,
                               i64* ranks, i64* sums) {
  i64 dangling = 0, change = 0;
  fold_rows(
      rows, 0ll, [&](i64) { return true; },
      [&](i64, i64 arc) {
        return ((const Share<W>*)shares)[__ldcs(rows.targets + arc)].along(rows.weight(arc));
      },
      [](i64 a, i64 b) { return a + b; },
      [&](i64 v, i64 total) {
        const i64 before = ranks[v];
        const double out = outs[v];
        if (loops && loops[v])
          total += __double2ll_rz(__dmul_rn(per_weight(before, out), __ull2double_rn(loops[v])));
        const i64 rank = base + __double2ll_rz(__dmul_rn(damping, __ll2double_rn(total)));
        change += rank > before ? rank - before : before - rank;
        ranks[v] = rank;
        ((Share<W>*)next_shares)[v] = Share<W>(per_weight(rank, out));
        dangling += out > 0 ? 0 : rank;
      });
  dangling = block_sum(dangling);
  change = block_sum(change);
  if (threadIdx.x == 0) {
    atomicAdd((u64*)sums, (u64)dangling);
    atomicAdd((u64*)sums + 1, (u64)change);
  }
}
