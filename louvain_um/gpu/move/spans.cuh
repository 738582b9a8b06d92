// Rows that do not follow each other: those of a graph that changes.
//
// Where kernels take offsets, they get pairs: entry 2v is where v's row begins, 2v + 1 its end.
#pragma once
#include "packed.cuh"

// Weight type of such graphs; the weights themselves are of type W.
template <class W>
struct Spans {};

template <class W>
constexpr bool unweighted<Spans<W>> = same<W, Unweighted>;

template <class W>
__device__ __forceinline__ auto weight_at(const Spans<W>* weights, i64 j) {
  return weight_at((const W*)weights, j);
}

template <class W>
__device__ __forceinline__ Row row_of(const Spans<W>*, const i64* pairs, i64 v) {
  return {pairs[2 * v], pairs[2 * v + 1]};
}
