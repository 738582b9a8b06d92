// Generated graphs, the device's side of generators/edges.py and generators/rows.py, bit for bit:
// R-MAT (Chakrabarti, Zhan, Faloutsos 2004), LFR (Lancichinetti, Fortunato, Radicchi 2008),
// stencils, and random graphs of given degrees (generators/same_degrees.py).
//
// Randomness is a hash of a key and a number (random_hash.cuh), so that no result depends on the
// order of threads. A thread owns the edges or vertices that the grid deals it; rows are written
// by atomics or a warp each. An edge with equal ends stands for "no edge".

#include "random_hash.cuh"
#include "grid.cuh"

// Writes R-MAT edges first ... first + n - 1; limits are a, a + b, a + b + c in units of 2^-32.
__global__ void draw_rmat(u64 key, i64 first, i64 n, u32 scale, u64 limit_a, u64 limit_ab,
                          u64 limit_abc, const u64* ids, u32* u, u32* v) {
  EACH(i, n) {
    u64 row = 0, column = 0, word = 0;
    for (u32 level = 0; level < scale; ++level) {
      if (!(level & 1)) word = draw(key, (u64)(first + i) * 16 + (level >> 1));
      u64 r = word & 0xFFFFFFFFu;
      word >>= 32;
      u64 down = r >= limit_ab;
      u64 right = (u64)(r >= limit_a) ^ down ^ (u64)(r >= limit_abc);
      row = row << 1 | down;
      column = column << 1 | right;
    }
    u[i] = permute(ids, row);
    v[i] = permute(ids, column);
  }
}

// Writes each slot once per stub: out[sums[s] ... sums[s + 1]) = s.
__global__ void expand_stubs(i64 slots, const i64* sums, u32* out) {
  EACH(slot, slots) {
    for (i64 j = sums[slot]; j < sums[slot + 1]; ++j) out[j] = slot;
  }
}

// Pairs stubs across communities; a pair within one fails and becomes no edge. Pair i is written
// at where[i], or at i if `where` is null.
__global__ void pair_outside(i64 pairs, const u64* p, const u32* stubs, const i64* where,
                             const u32* slots, const u64* ids, u32* u, u32* v) {
  EACH(i, pairs) {
    u32 a = stubs[permute(p, 2 * i)], b = stubs[permute(p, 2 * i + 1)];
    i64 e = where ? where[i] : i;
    bool inside = slots[a] == slots[b];
    u[e] = inside ? 0 : permute(ids, a);
    v[e] = inside ? 0 : permute(ids, b);
  }
}

// Writes the two stubs of each failed pair.
__global__ void leftover(i64 n, const u64* p, const u32* stubs, const i64* failed, u32* out) {
  EACH(k, n) {
    out[2 * k] = stubs[permute(p, 2 * failed[k])];
    out[2 * k + 1] = stubs[permute(p, 2 * failed[k] + 1)];
  }
}

// Pairs the stubs of each community among themselves, one block per community, which blocks claim:
// stub p(2i) with stub p(2i + 1) of a permutation p, in several attempts. A loop, or a pair that
// an earlier attempt or a smaller i has, fails, and its stubs are paired again. The table keeps
// the smallest number of each pair, so that the outcome does not depend on the order of threads.
// u and v are 0 before. Scratch memory per block: two lists of max_stubs stubs, and a table of
// `slots` keys and numbers.
__global__ void __launch_bounds__(THREADS)
    pair_inside(u64 key, u32 attempts, i64 communities, const i64* starts, const i64* inner,
                const i64* first_edge, const u64* ids, i64 max_stubs, i64 slots, u32* lists,
                u64* keys, u32* firsts, u64* counter, u32* u, u32* v) {
  __shared__ u64 p[PERMUTATION_WORDS];
  __shared__ i64 claimed;
  u32* stubs = lists + 2 * max_stubs * blockIdx.x;
  u32* rest = stubs + max_stubs;
  keys += slots * blockIdx.x;
  firsts += slots * blockIdx.x;
  while (true) {
    __syncthreads();
    if (threadIdx.x == 0) claimed = atomicAdd(counter, 1ull);
    __syncthreads();
    i64 c = claimed;
    if (c >= communities) return;
    i64 start = starts[c], members = starts[c + 1] - start, base = inner[start];
    i64 left = inner[starts[c + 1]] - base, e = first_edge[c];
    i64 room = 64;
    while (room < left) room *= 2;
    for (i64 s = threadIdx.x; s < room; s += blockDim.x) {
      keys[s] = ~0ull;
      firsts[s] = EMPTY;
    }
    for (i64 k = threadIdx.x; k < members; k += blockDim.x) {
      for (i64 j = inner[start + k]; j < inner[start + k + 1]; ++j) stubs[j - base] = k;
    }
    u32 number = 0;  // of the first pair of this attempt
    for (u32 attempt = 0; attempt < attempts && left >= 2; ++attempt) {
      __syncthreads();
      if (threadIdx.x == 0) set_permutation(p, draw(key, c + ((u64)attempt << 32)), left);
      __syncthreads();
      i64 pairs = left / 2, failed = 0;
      for (i64 i = threadIdx.x; i < pairs; i += blockDim.x) {
        u64 a = stubs[permute(p, 2 * i)], b = stubs[permute(p, 2 * i + 1)];
        if (a == b) continue;
        u64 pair = a < b ? a << 32 | b : b << 32 | a;
        i64 s = mix64(pair) & (room - 1);
        while (true) {
          u64 there = atomicCAS(keys + s, ~0ull, pair);
          if (there == ~0ull || there == pair) break;
          s = (s + 1) & (room - 1);
        }
        atomicMin(firsts + s, number + (u32)i);
      }
      __syncthreads();
      for (i64 tile = 0; tile < pairs; tile += blockDim.x) {
        i64 i = tile + threadIdx.x;
        u64 a = 0, b = 0;
        u32 fails = 0, total;
        if (i < pairs) {
          a = stubs[permute(p, 2 * i)];
          b = stubs[permute(p, 2 * i + 1)];
          fails = a == b;
          if (!fails) {
            u64 pair = a < b ? a << 32 | b : b << 32 | a;
            i64 s = mix64(pair) & (room - 1);
            while (keys[s] != pair) s = (s + 1) & (room - 1);
            fails = firsts[s] != number + (u32)i;
          }
        }
        i64 before = failed + block_scan(fails, total);
        if (fails) {
          rest[2 * before] = a;
          rest[2 * before + 1] = b;
        } else if (i < pairs) {
          u[e + i - before] = permute(ids, start + a);
          v[e + i - before] = permute(ids, start + b);
        }
        failed += total;
      }
      __syncthreads();
      e += pairs - failed;
      number += pairs;
      left = 2 * failed;
      u32* swap = stubs;
      stubs = rest;
      rest = swap;
    }
  }
}

// Writes each vertex's degree in a grid of nx * ny * nz points.
__global__ void count_stencil(i64 nx, i64 ny, i64 nz, u32 diagonals, u32 periodic, const u64* ids,
                              i64* degrees) {
  EACH(v, nx * ny * nz) {
    i64 point = unpermute(ids, v), product = 1, total = 0;
    const i64 sizes[3] = {nx, ny, nz};
    for (u32 d = 0; d < 3; ++d) {
      i64 at = point % sizes[d];
      point /= sizes[d];
      i64 span = periodic && sizes[d] > 1 ? 3 : 1 + (at > 0) + (at < sizes[d] - 1);
      product *= span;
      total += span - 1;
    }
    degrees[v] = diagonals ? product - 1 : total;
  }
}

// Writes each vertex's neighbours, ascending: one thread per row of at most 26.
__global__ void fill_stencil(i64 nx, i64 ny, i64 nz, u32 diagonals, u32 periodic, const u64* ids,
                             const i64* offsets, u32* targets) {
  EACH(v, nx * ny * nz) {
    i64 point = unpermute(ids, v);
    i64 x = point % nx, y = point / nx % ny, z = point / (nx * ny);
    u32* row = targets + offsets[v];
    u32 length = 0;
    for (int n = 0; n < 27; ++n) {
      int dx = n % 3 - 1, dy = n / 3 % 3 - 1, dz = n / 9 - 1;
      int steps = (dx != 0) + (dy != 0) + (dz != 0);
      if (steps == 0 || (steps > 1 && !diagonals)) continue;
      i64 a = x + dx, b = y + dy, c = z + dz;
      if (periodic) {
        a = nx > 1 ? (a + nx) % nx : a;
        b = ny > 1 ? (b + ny) % ny : b;
        c = nz > 1 ? (c + nz) % nz : c;
      }
      if (a < 0 || a >= nx || b < 0 || b >= ny || c < 0 || c >= nz) continue;
      u32 target = permute(ids, a + nx * (b + ny * c)), at = length++;
      for (; at > 0 && row[at - 1] > target; --at) row[at] = row[at - 1];
      row[at] = target;
    }
  }
}

// Writes each arc's weight, 1 ... weights: a hash of the smaller and the larger end.
__global__ void weigh_arcs(i64 n, u64 key, u32 weights, const i64* offsets, const u32* targets,
                           u32* out) {
  i64 warps = gridDim.x * (i64)(blockDim.x / WARP);
  for (i64 v = blockIdx.x * (i64)(blockDim.x / WARP) + threadIdx.x / WARP; v < n; v += warps) {
    for (i64 j = offsets[v] + threadIdx.x % WARP; j < offsets[v + 1]; j += WARP) {
      u64 a = v, b = targets[j], pair = a < b ? a << 32 | b : b << 32 | a;
      out[j] = (u32)((mix64(key ^ mix64(pair)) >> 32) * weights >> 32) + 1;
    }
  }
}

// Writes sort keys of a random order: place i in the lower `bits` bits, random ones above.
__global__ void draw_keys(i64 count, u64 key, i64 bits, u64* keys) {
  EACH(i, count) keys[i] = draw(key, i) << bits | i;
}
