// What the kernels of aggregate.cu take and leave: their arguments, their state, chunks.
#pragma once
#include "hash_table.cuh"
#include "walk_arcs.cuh"

// One more than the most chunks of communities (BOUNDS of limits.py).
#define BOUND_COUNT 65
// Rows that are sampled, and units of the share of a row's arcs that is left (of limits.py, too).
#define SAMPLED 2048
#define SHARE_UNITS 65536

// What kernels leave for each other and for the host; zero before the first.
struct State {
  Barrier barrier;
  // Zero before each chunk. Of the block bin, as many as are listed can be read.
  u32 claimed_by_warps, block_count, blocks_listed, claimed_by_blocks, hub_count;
  u64 vertices;              // of the next level
  u64 room;                  // arcs that all rows together have room for
  u64 kept;                  // sum of the shares of their arcs that sampled rows keep, in units
  u64 max_arcs;              // most arcs of one community's members
  u64 chunk_room;            // most room of one chunk
  u64 arcs, max_degree;      // of the next level
  u64 inside, total;         // twice the weight inside communities; all degrees
  u64 written;               // arcs in their final place
  u64 next_chunk;            // first chunk whose arcs did not fit the new arrays
  u64 nonempty;              // communities with arcs, once degrees are summed
  u64 squares[3];            // sum of squared degrees, by 32 bits
  u64 bounds[BOUND_COUNT];   // chunk q: communities bounds[q]..bounds[q + 1] - 1
  u64 room_at[BOUND_COUNT];  // room of all communities before bounds[q]
  u64 first, last;           // communities that this device sums: first..last - 1
};
static_assert(sizeof(State) == 1208, "STATE of kernel_arguments.py mirrors State");

// Arcs of all members before the i-th, in little more than 4 bytes per entry: their low 32 bits,
// and the whole sum for each range of 2^shift entries, in which fewer than 2^32 arcs begin.
struct ArcsBefore {
  u32* low;
  i64* whole;
  u32 shift;
  __device__ __forceinline__ i64 operator[](i64 i) const {
    i64 sum = whole[i >> shift];
    return sum + (low[i] - (u32)sum);
  }
  __device__ __forceinline__ void put(i64 i, i64 sum) const {
    low[i] = (u32)sum;
    if ((i & ((1ll << shift) - 1)) == 0) whole[i >> shift] = sum;
  }
};

// What every kernel of aggregate.cu takes, by value. The host fills one per launch; ARGUMENTS of
// kernel_arguments.py lists the fields in this order, 8 bytes each.
template <class W, class A>
struct Arguments {
  i64 n, k;             // vertices of this level and of the next
  i64 label_bound;      // every label is below
  i64 neighbour_bound;  // no new row has more neighbours
  i64 base;             // arcs that are written before the first chunk at work
  i64 chunk_arcs;       // room of a chunk begins within one multiple of so many arcs
  i64 new_capacity;     // arcs that new_targets and new_weights have room for
  i64 weight_bytes;     // bytes of new weights, if these are short (short_weights.cuh), or 0
  i64 targets24;        // whether new targets take 24 bits, too (targets24.cuh)
  i64 partial;          // whether inner arcs stay in new rows and loops are left alone
  i64 range_shift;    // of ArcsBefore
  i64 begin, resume;    // first chunk at work; whether its rows are in their rooms already
  i64 part, parts;      // of so many parts of the arcs, the one whose communities are summed
  i64 near, near_weights;  // arcs whose targets and weights are where they belong; see target
  u64 table_slots;      // of keys and sums, together
  u64 heavy_slots;      // entries for heavy arcs in front of new short weights
  // The level whose arcs are summed; loops and degrees may be null (row_of, degree_of).
  const i64* offsets;
  const u32* targets;
  const W* weights;
  const A* loops;
  const A* degrees;
  const u32* far_targets;
  const W* far_weights;
  u32* numbers;    // label of each vertex; then its community, below k
  const u32* map;  // community of each target; null where targets are communities already
  u32* ranks;      // communities before each label; null where numbers are communities already
  u32* names;      // label of each community, or null
  u32* members;    // members[starts[c]:starts[c + 1]] are those of community c; see first_arc
  u32* starts;
  u32* low;    // of ArcsBefore
  i64* whole;  // of ArcsBefore
  u32* rooms;  // low 32 bits of the room before each community; see room_of
  u32* chunk_targets;
  A* chunk_weights;
  // The next level.
  i64* new_offsets;
  u32* new_targets;
  void* new_weights;
  A* new_loops;
  A* new_degrees;
  u32* row_arcs;   // of a chunk's rows, how many arcs, then where they begin among them; or null
  A* row_inner;    // of a chunk's rows, doubled inner arcs; or null
  u32* block_bin;  // communities of a chunk that blocks sum
  u32* hub_bin;    // communities of a chunk that the grid sums
  u32* keys;       // tables of hubs
  A* sums;
  State* state;
  u64* partials;  // one per block

  __device__ __forceinline__ ArcsBefore arcs_before() const {
    return {low, whole, (u32)range_shift};
  }
  // Where the row of the i-th member begins. With offsets of 32 bits, members are listed by that, so
  // that offsets are not looked up.
  static constexpr bool lists_rows = same<W, PackedOffsets32>;
  __device__ __forceinline__ i64 first_arc(i64 i) const {
    return lists_rows ? (i64)members[i] : row_of(weights, offsets, members[i]).low;
  }
  // Target (target_of_lane) and weight of arc j. Pages of the input that left the device are not mapped
  // where they were: the host has a copy of all arcs, which is read from the first such page on.
  __device__ __forceinline__ u32 target(i64 j, bool valid, bool follows) const {
    return target_of_lane(j < near ? targets : far_targets, weights, j, valid, follows);
  }
  __device__ __forceinline__ auto weight(i64 j) const {
    if constexpr (same<W, PackedWeights16>) {
      // The host's copy has no heads.
      const auto* far = (const unsigned short*)far_weights;
      return (u32)__ldcs((j < near_weights ? weights_of(weights) : far) + j);
    } else {
      return weight_at(j < near_weights ? weights : far_weights, j);
    }
  }
  // Where the room of community c begins, in a chunk that begins with `first`.
  __device__ __forceinline__ i64 room_of(i64 c, i64 first) const {
    return (u32)(rooms[c] - rooms[first]);
  }
};
static_assert(sizeof(Arguments<u32, u32>) == 8 * 50, "ARGUMENTS of kernel_arguments.py mirrors it");

// Communities first..last - 1, whose rows are summed together.
struct Chunk {
  i64 first, last;
};

// What is noted of a chunk's rows while it is at work: on the device, where the next level's offsets
// and loops, which are read and written again and again, are on the host.
template <class W, class A>
struct ChunkRows {
  const Arguments<W, A>& args;
  i64 first;
  __device__ __forceinline__ void set_arcs(i64 c, i64 arcs) const {
    if (args.row_arcs)
      args.row_arcs[c - first] = arcs;
    else
      args.new_offsets[c] = arcs;
  }
  __device__ __forceinline__ i64 arcs(i64 c) const {
    return args.row_arcs ? args.row_arcs[c - first] : args.new_offsets[c];
  }
  // Adds to the arcs of a row that several warps write; returns those before.
  __device__ __forceinline__ u64 add_arcs(i64 c, u32 arcs) const {
    if (args.row_arcs) return atomicAdd(args.row_arcs + (c - first), arcs);
    return atomicAdd((u64*)args.new_offsets + c, (u64)arcs);
  }
  // Where doubled inner arcs of a row are added.
  __device__ __forceinline__ A* inner(i64 c) const {
    return args.row_inner ? args.row_inner + (c - first) : args.new_loops + c;
  }
};

// Where a chunk's rows begin among the next level's arcs; indexed like a pointer.
template <class W, class A>
struct RowBegins {
  const Arguments<W, A>& args;
  i64 first, begin;  // its first community, and where that one's row begins
  __device__ __forceinline__ i64 operator[](i64 c) const {
    return args.row_arcs ? begin + args.row_arcs[c - first] : args.new_offsets[c];
  }
};
