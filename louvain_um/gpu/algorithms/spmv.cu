// Product of the adjacency matrix and a vector; additions in the order of `fold_rows`, each
// operation rounded on its own. own: x from the first of these rows on.
#include "host_rows.cuh"
#include "linked_rows.cuh"

template <class W, template <class> class Rows>
__global__ void BOUNDS multiply(Rows<W> rows, const u64* loops, const double* x,
                                const double* own, double unit, double* y) {
  fold_rows(
      rows, 0.0, [&](i64) { return true; },
      [&](i64, i64 arc) {
        return __dmul_rn(__ull2double_rn(rows.weight(arc)), x[rows.targets[arc]]);
      },
      [](double a, double b) { return __dadd_rn(a, b); },
      [&](i64 v, double total) {
        total = __dadd_rn(total, 0.0);  // −0 becomes 0, as among parts without arcs
        if (loops && loops[v])
          total = __dadd_rn(total, __dmul_rn(__ull2double_rn(loops[v]), own[v]));
        y[v] = __dmul_rn(total, unit);
      });
}
