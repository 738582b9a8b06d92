// Adding up a level by emulated blocks: in chunks, or at once.
#include "cuda.h"
#include "aggregate.cu"

namespace {

template <class W>
void add_up_as(int blocks, i64 n, const i64* offsets, const u32* targets, const W* weights,
               const u32* degrees, u32* numbers, i64 chunk, i64* new_offsets, u32* new_targets,
               u32* new_weights, u32* new_loops, u32* new_degrees, u64* told) {
  const i64 arcs = told[0];
  std::vector<u32> members(n + 1), starts(n + 1), low(n + 1), rooms(n + 1), middles(n + 1),
      giants(n + 1), room_targets(arcs), room_weights(arcs), keys(1 << 13), sums(1 << 13);
  std::vector<i64> whole((n >> 10) + 2);
  std::vector<u64> partials(blocks);
  State state = {};
  Job<W, u32> job = {};
  job.n = job.labels = job.distinct = n;
  job.chunk = chunk ? chunk : arcs;
  job.reserve = arcs;
  job.shift = 10;
  job.capacity = keys.size();
  job.offsets = offsets, job.targets = targets, job.weights = weights, job.degrees = degrees;
  job.numbers = numbers, job.map = numbers;
  job.ranks = job.members = members.data();
  job.starts = starts.data(), job.low = low.data(), job.whole = whole.data();
  job.rooms = rooms.data();
  job.room_targets = room_targets.data(), job.room_weights = room_weights.data();
  job.new_offsets = new_offsets, job.new_targets = new_targets, job.new_weights = new_weights;
  job.new_loops = new_loops, job.new_degrees = new_degrees;
  job.middles = middles.data(), job.giants = giants.data();
  job.keys = keys.data(), job.sums = sums.data();
  job.state = &state, job.partials = partials.data();
  if (chunk) {
    fibres::launch(blocks, [&] { number_labels(job); });
    job.k = job.distinct = state.vertices;
    fibres::launch(blocks, [&] { group_members(job); });
    fibres::launch(blocks, [&] { sum_members(job); });
    fibres::launch(blocks, [&] { lay_out(job); });
    job.distinct = state.filled;
    fibres::launch(blocks, [&] { sum_arcs(job); });
  } else {
    fibres::launch(blocks, [&] { aggregate_small(job); });
  }
  told[0] = state.vertices;
  told[1] = state.arcs;
  told[2] = state.inside;
  told[3] = state.next;
}

}  // namespace

// kind as in move.cpp; told[0] is how many arcs there are, before. No chunk: all at once.
extern "C" void add_up_level(int blocks, int kind, i64 n, const i64* offsets, const u32* targets,
                             const u32* weights, const u32* degrees, u32* numbers, i64 chunk,
                             i64* new_offsets, u32* new_targets, u32* new_weights, u32* new_loops,
                             u32* new_degrees, u64* told) {
  auto run = [&](auto* w) {
    add_up_as(blocks, n, offsets, targets, w, degrees, numbers, chunk, new_offsets, new_targets,
              new_weights, new_loops, new_degrees, told);
  };
  if (kind == 0) run((const Unweighted*)nullptr);
  if (kind == 1) run((const Packed*)nullptr);
  if (kind == 2) run(weights);
}
