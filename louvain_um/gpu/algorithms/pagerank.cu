// PageRank: ranks are integers in units of 2^-60; what an arc carries is the product of two
// doubles, each rounded once, cut to an integer. The twin of cpu/algorithms/pagerank.py.
#include "row_view.cuh"

// Sums the weight of each row, its loop once; sets first shares; adds the ranks of rows without
// any weight to sums[0].
template <class W>
__global__ void BOUNDS weigh_rows(RowView<W> rows, const u64* loops, i64 start, i64* ranks,
                                  double* outs, double* shares, i64* sums) {
  i64 dangling = 0;
  fold_rows(
      rows, 0ull, [&](i64) { return true; }, [&](i64, i64 arc) { return rows.weight(arc); },
      [](u64 a, u64 b) { return a + b; },
      [&](i64 v, u64 total) {
        if (loops) total += loops[v];
        ranks[v] = start;
        outs[v] = __ull2double_rn(total);
        shares[v] = total ? __ddiv_rn(__ll2double_rn(start), outs[v]) : 0.0;
        dangling += total ? 0 : start;
      });
  dangling = block_sum(dangling);
  if (threadIdx.x == 0 && dangling) atomicAdd((u64*)sums, (u64)dangling);
}

// Replaces every rank by what its neighbours pass on; adds dangling ranks to sums[0] and changes to
// sums[1].
template <class W>
__global__ void BOUNDS iterate(RowView<W> rows, const u64* loops, double damping, i64 base,
                               const double* outs, const double* shares, double* next_shares,
                               i64* ranks, i64* sums) {
  i64 dangling = 0, change = 0;
  fold_rows(
      rows, 0ll, [&](i64) { return true; },
      [&](i64, i64 arc) {
        const double share = shares[rows.targets[arc]];
        return __double2ll_rz(__dmul_rn(share, __ull2double_rn(rows.weight(arc))));
      },
      [](i64 a, i64 b) { return a + b; },
      [&](i64 v, i64 total) {
        if (loops) total += __double2ll_rz(__dmul_rn(shares[v], __ull2double_rn(loops[v])));
        const i64 rank = base + __double2ll_rz(__dmul_rn(damping, __ll2double_rn(total)));
        change += rank > ranks[v] ? rank - ranks[v] : ranks[v] - rank;
        ranks[v] = rank;
        next_shares[v] = outs[v] > 0 ? __ddiv_rn(__ll2double_rn(rank), outs[v]) : 0.0;
        dangling += outs[v] > 0 ? 0 : rank;
      });
  dangling = block_sum(dangling);
  change = block_sum(change);
  if (threadIdx.x == 0) {
    atomicAdd((u64*)sums, (u64)dangling);
    atomicAdd((u64*)sums + 1, (u64)change);
  }
}
