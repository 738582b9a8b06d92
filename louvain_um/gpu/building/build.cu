// From text, a list of edges or a matrix's rows to the rows of an undirected graph: the device's side of
// formats/edge_list/scan.py, graph/rows.py, graph/integer_weights.py and formats/matrices.py, with the
// same integers.
//
// Arcs of both ends of each edge are sorted by row and target: all at once, or a range of rows at a
// time, where they are counted first and written in any order. Repetitions are then neighbours; their
// weights are added or the largest is taken, which depends on no order. Threads own edges, arcs or rows that the grid deals out; sums over repeated
// arcs are atomic operations on integers. Kernels that scan are launched cooperatively.
#include "columns.cuh"
#include "grid.cuh"
#include "random_hash.cuh"

// What kernels count; zero before the first, except `least`, the largest i64.
struct BuildCounts {
  Barrier barrier;
  i64 least, most;      // ids
  u64 loops;            // edges whose ends are the same
  u64 kept;             // arcs of a range of rows
  u64 unique;           // its distinct arcs, loops included
  u64 distinct_arcs;    // of all ranges, weight 0 included
  u64 distinct_loops;
  u64 weightless;       // arcs of weight 0, loops twice
  u64 heaviest;         // largest weight of an arc
  u64 bad;              // weights that are negative, infinite or no number; bad rows; unusual lines
  u64 points;           // weights with a decimal point
  u64 largest;          // weight, as bits of a double or as an integer
  u64 bits;             // that any weight has
  u64 low, high;        // sums of the lower and upper halves of integer weights
  u64 total, underflows;  // of scaled weights: their sum, and how many positive ones became 0
  u64 difference;       // of keyed hashes of a matrix's entries above and below its diagonal
};

__device__ __forceinline__ void add_to(u64* counter, u64 mine) {
  const u64 sum = block_sum(mine);
  if (threadIdx.x == 0 && sum) atomicAdd(counter, sum);
}

// Copies ids to 32 bits, if there is somewhere to, and takes their least and largest.
__global__ void take_ids(i64 count, const void* ids, i64 type, u32* out, BuildCounts* counts) {
  i64 least = 0x7FFFFFFFFFFFFFFFll, most = -least - 1;
  EACH(i, count) {
    const i64 id = integer_at(ids, type, i);
    least = min(least, id);
    most = max(most, id);
    if (out) out[i] = id;
  }
  for (int d = WARP / 2; d; d >>= 1) {
    least = min(least, __shfl_xor_sync(FULL, least, d));
    most = max(most, __shfl_xor_sync(FULL, most, d));
  }
  if (threadIdx.x % WARP) return;
  atomicMin(&counts->least, least);
  atomicMax(&counts->most, most);
}

__global__ void take_keys(i64 count, const void* ids, i64 type, u64* keys) {
  EACH(i, count) keys[i] = integer_at(ids, type, i);
}

// Writes the place of each id in ascending names, among which it is.
__global__ void find_ids(i64 count, const void* ids, i64 type, const u64* names, i64 n, u32* out) {
  EACH(i, count) {
    const u64 id = integer_at(ids, type, i);
    i64 low = 0;
    for (i64 high = n; high - low > 1;) {
      const i64 middle = low + (high - low) / 2;
      (names[middle] <= id ? low : high) = middle;
    }
    out[i] = low;
  }
}

// Looks at integers: negative ones, the sum in two halves, bits in use, the largest.
__global__ void look_at_integers(i64 count, const void* weights, i64 type, BuildCounts* counts) {
  u64 bad = 0, low = 0, high = 0, bits = 0, most = 0;
  EACH(i, count) {
    const i64 weight = integer_at(weights, type, i);
    bad += weight < 0;
    low += weight & 0xFFFFFFFFll;
    high += (u64)weight >> 32;
    bits |= weight;
    most = max(most, (u64)weight);
  }
  add_to(&counts->bad, bad);
  add_to(&counts->low, low);
  add_to(&counts->high, high);
  if (bits) atomicOr(&counts->bits, bits);
  atomicMax(&counts->largest, most);
}

// Looks at doubles: those that are no weights, and the largest. Doubles above 0 ascend as bits.
__global__ void look_at_reals(i64 count, const void* weights, i64 type, BuildCounts* counts) {
  u64 bad = 0, most = 0;
  EACH(i, count) {
    const double weight = real_at(weights, type, i);
    const bool fine = weight >= 0 && weight <= 1.7976931348623157e308;
    bad += !fine;
    if (fine && weight > 0) most = max(most, (u64)__double_as_longlong(weight));
  }
  add_to(&counts->bad, bad);
  atomicMax(&counts->largest, most);
}

// Scales doubles by both factors and rounds, ties to even; `out`, which may be null, lacks the
// `shift` lowest bits, which are 0.
__global__ void scale_reals(i64 count, const void* weights, i64 type, double factor,
                            double factor2, i64 shift, u64* out, BuildCounts* counts) {
  u64 total = 0, bits = 0, underflows = 0;
  EACH(i, count) {
    const double weight = real_at(weights, type, i);
    const u64 integer = (u64)(i64)rint(__dmul_rn(__dmul_rn(weight, factor), factor2));
    if (out) out[i] = integer >> shift;
    total += integer;
    bits |= integer;
    underflows += integer == 0 && weight > 0;
  }
  add_to(&counts->total, total);
  add_to(&counts->underflows, underflows);
  if (bits) atomicOr(&counts->bits, bits);
}

// Copies integers, without their `shift` lowest bits, which are 0.
__global__ void take_integers(i64 count, const void* weights, i64 type, i64 shift, u64* out) {
  EACH(i, count) out[i] = (u64)integer_at(weights, type, i) >> shift;
}

__global__ void narrow(i64 count, const u64* weights, u32* out) {
  EACH(i, count) out[i] = weights[i];
}

// Counts each edge in the rows of its ends; a loop once.
__global__ void count_ends(i64 edges, const u32* u, const u32* v, u32* degrees,
                           BuildCounts* counts) {
  u64 loops = 0;
  EACH(e, edges) {
    const u32 a = u[e], b = v[e];
    atomicAdd(&degrees[a], 1u);
    if (a == b)
      ++loops;
    else
      atomicAdd(&degrees[b], 1u);
  }
  add_to(&counts->loops, loops);
}

// Writes the sort keys of the arcs of both ends of each edge; the second of a loop sorts last.
__global__ void list_keys(i64 edges, const u32* u, const u32* v, u64* keys, BuildCounts* counts) {
  u64 loops = 0;
  EACH(e, edges) {
    const u64 a = u[e], b = v[e];
    keys[2 * e] = a << 32 | b;
    keys[2 * e + 1] = a == b ? ~0ull : b << 32 | a;
    loops += a == b;
  }
  add_to(&counts->loops, loops);
}

// Writes where rows of these degrees begin, and where the last one ends. Cooperative.
__global__ void row_offsets(i64 n, const u32* degrees, i64* offsets, i64* partials,
                            BuildCounts* counts) {
  grid_scan<i64>(n, [=](i64 v) { return (i64)degrees[v]; }, offsets, partials, &counts->barrier);
}

// Writes each edge into those rows of its ends that are low ... high - 1, from the end of a row; their
// degrees count down to 0. weights (null: none) go along; without an array of weights, each is 1.
__global__ void scatter_ends(i64 edges, const u32* u, const u32* v, const u64* weights, i64 low,
                             i64 high, const i64* offsets, u32* degrees, u32* targets, u64* out) {
  const i64 base = offsets[low];
  EACH(e, edges) {
    const u64 weight = weights ? weights[e] : 1;
    u32 row = u[e], target = v[e];
    for (int ends = row == target ? 1 : 2; ends; --ends) {
      if (low <= row && row < high) {
        const i64 place = offsets[row] - base + atomicAdd(&degrees[row], ~0u) - 1;
        targets[place] = target;
        if (out) out[place] = weight;
      }
      const u32 other = row;
      row = target;
      target = other;
    }
  }
}

// Returns the row, of low ... high - 1, that holds place j.
__device__ __forceinline__ i64 row_at(const i64* offsets, i64 low, i64 high, i64 j) {
  while (high - low > 1) {
    const i64 middle = low + (high - low) / 2;
    if (offsets[middle] <= j)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// Visits each arc of rows low ... high - 1: its place from the first one's on, and its row. A warp
// takes 32 arcs: its first and last lanes search among all rows, the others between them.
template <class F>
__device__ __forceinline__ void each_arc(i64 low, i64 high, const i64* offsets, F visit) {
  const i64 base = offsets[low], count = offsets[high] - base;
  for (i64 first = grid_thread() / WARP * WARP; first < count; first += grid_threads()) {
    const i64 lane = threadIdx.x % WARP, i = min(first + lane, count - 1);
    i64 row = 0;
    if (lane == 0 || lane == WARP - 1) row = row_at(offsets, low, high, base + i);
    const i64 from = __shfl_sync(FULL, row, 0), to = __shfl_sync(FULL, row, WARP - 1);
    row = row_at(offsets, from, to + 1, base + i);
    if (first + lane < count) visit(i, row);
  }
}

// Writes row and target of each arc of some rows, whose targets are given, as one sort key.
__global__ void row_keys(i64 low, i64 high, const i64* offsets, const u32* targets, u64* keys) {
  each_arc(low, high, offsets,
           [&](i64 i, i64 row) { keys[i] = (u64)(row - low) << 32 | targets[i]; });
}

// The same of the labels of both ends; null: vertices are their own. An arc whose ends have the same
// label, or one has none (EMPTY), sorts last and is counted in `loops`.
__global__ void label_keys(i64 low, i64 high, const i64* offsets, const u32* targets,
                           const u32* labels, u64* keys, BuildCounts* counts) {
  u64 left_out = 0;
  each_arc(low, high, offsets, [&](i64 i, i64 row) {
    const u32 a = labels ? labels[row] : (u32)row, b = labels ? labels[targets[i]] : targets[i];
    const bool out = a == b || a == EMPTY || b == EMPTY;
    keys[i] = out ? ~0ull : (u64)a << 32 | b;
    left_out += out;
  });
  add_to(&counts->loops, left_out);
}

// Adds the arcs of a row to its degree, in two parts: at its first key, before which so many arcs are
// kept in all, and at its last.
__device__ __forceinline__ void add_degree(const u64* keys, i64 count, i64 i, i64 before, i64 own,
                                           u32* degree) {
  if (i == 0 || keys[i - 1] >> 32 != keys[i] >> 32) atomicAdd(degree, 0u - (u32)before);
  if (i + 1 == count || keys[i + 1] >> 32 != keys[i] >> 32) atomicAdd(degree, (u32)(before + own));
}

// Writes rows without repetition and loops, of sorted keys; each loop has weight 1. Cooperative.
__global__ void keep_arcs(i64 count, const u64* keys, i64 low, u32* targets, u32* degrees,
                          u64* loops, i64* partials, BuildCounts* counts) {
  u64 distinct_loops = 0;
  grid_scan_to<i64>(
      count,
      [=](i64 i) {
        const u64 key = keys[i];
        return i64((i == 0 || keys[i - 1] != key) && low + (i64)(key >> 32) != (u32)key);
      },
      [&](i64 i, i64 place, i64 own) {
        if (i == count) {
          counts->kept = place;
          return;
        }
        const u64 key = keys[i], row = low + (key >> 32);
        add_degree(keys, count, i, place, own, &degrees[row]);
        if (own) {
          targets[place] = key;
        } else if (row == (u32)key && (i == 0 || keys[i - 1] != key)) {
          loops[row] = 1;
          ++distinct_loops;
        }
      },
      partials, &counts->barrier);
  add_to(&counts->distinct_loops, distinct_loops);
}

// Adds up the weights of equal keys, which are sorted, or takes the largest; `sums` is 0 before, and
// order[i] >> shift says where the weight of keys[i] is; `weights` may be null. Cooperative.
__global__ void sum_runs(i64 count, const u64* keys, const i64* order, i64 shift,
                         const u64* weights, u64 summing, u64* unique, u64* sums, i64* partials,
                         BuildCounts* counts) {
  grid_scan_to<i64>(
      count, [=](i64 i) { return i64(i == 0 || keys[i - 1] != keys[i]); },
      [=](i64 i, i64 before, i64 own) {
        if (i == count) {
          counts->unique = before;
          return;
        }
        const i64 place = before + own - 1;
        if (own) unique[place] = keys[i];
        if (!weights) return;
        const u64 weight = weights[order[i] >> shift];
        if (summing)
          atomicAdd(&sums[place], weight);
        else
          atomicMax(&sums[place], weight);
      },
      partials, &counts->barrier);
}

// Writes rows without loops and weights of 0, of distinct sorted keys. Cooperative.
__global__ void keep_weighted(i64 count, const u64* keys, const u64* sums, i64 low, u32* targets,
                              u64* weights, u32* degrees, u64* loops, i64* partials,
                              BuildCounts* counts) {
  u64 distinct_arcs = 0, distinct_loops = 0, weightless = 0, heaviest = 0;
  grid_scan_to<i64>(
      count,
      [=](i64 i) { return i64(sums[i] && low + (i64)(keys[i] >> 32) != (u32)keys[i]); },
      [&](i64 i, i64 place, i64 own) {
        if (i == count) {
          counts->kept = place;
          return;
        }
        const u64 key = keys[i], row = low + (key >> 32), weight = sums[i];
        add_degree(keys, count, i, place, own, &degrees[row]);
        if (row == (u32)key) {
          loops[row] = weight;
          ++distinct_loops;
          weightless += 2 * (weight == 0);
          return;
        }
        ++distinct_arcs;
        weightless += weight == 0;
        if (!own) return;
        targets[place] = key;
        weights[place] = weight;
        heaviest = max(heaviest, weight);
      },
      partials, &counts->barrier);
  add_to(&counts->distinct_arcs, distinct_arcs);
  add_to(&counts->distinct_loops, distinct_loops);
  add_to(&counts->weightless, weightless);
  atomicMax(&counts->heaviest, heaviest);
}

// Looks at a matrix's rows, a warp each: those that do not ascend, loops, and the difference of the
// keyed hashes of entries on both sides of the diagonal. Values of `bytes` bytes may be null.
__global__ void look_at_rows(i64 n, const void* offsets, i64 offsets_type, const void* indices,
                             i64 indices_type, i64 entries, const void* values, i64 bytes, u64 key,
                             BuildCounts* counts) {
  u64 bad = 0, loops = 0, difference = 0;
  for (i64 v = grid_thread() / WARP; v < n; v += grid_threads() / WARP) {
    const i64 begin = integer_at(offsets, offsets_type, v);
    const i64 end = integer_at(offsets, offsets_type, v + 1);
    if (begin < 0 || end < begin || end > entries) {
      ++bad;
      continue;
    }
    for (i64 j = begin + threadIdx.x % WARP; j < end; j += WARP) {
      const i64 w = integer_at(indices, indices_type, j);
      bad += w < 0 || w >= n || (j > begin && integer_at(indices, indices_type, j - 1) >= w);
      if (w == v) {
        ++loops;
        continue;
      }
      const u64 pair = w < v ? (u64)w << 32 | v : (u64)v << 32 | w;
      u64 word = mix64(key ^ pair);
      if (values) {
        u64 bits = 0;
        if (bytes == 1) bits = ((const u8*)values)[j];
        if (bytes == 2) bits = ((const unsigned short*)values)[j];
        if (bytes == 4) bits = ((const u32*)values)[j];
        if (bytes == 8) bits = ((const u64*)values)[j];
        word = mix64(word ^ bits);
      }
      difference += w < v ? 0 - word : word;
    }
  }
  add_to(&counts->bad, bad);
  add_to(&counts->loops, loops);
  add_to(&counts->difference, difference);
}

// Returns at which of 16 bytes of text lines begin, as bits; of `count` bytes in all, the first of which
// begins a line if `begins` is not 0.
__device__ __forceinline__ u32 beginnings(const u8* text, i64 place, i64 count, u64 begins) {
  if (place >= count) return 0;
  u32 found = place ? text[place - 1] == '\n' : begins != 0;
  for (int half = 0; half < 2; ++half) {
    const u64 word = place + 8 * half < count ? *(const u64*)(text + place + 8 * half) : 0;
    for (int i = 0; i < 8; ++i) found |= u32((word >> 8 * i & 255) == '\n') << (8 * half + i + 1);
  }
  return found & ((1u << min(count - place, (i64)16)) - 1);
}

// Counts the lines that begin in each tile of the first `count` bytes of text.
__global__ void count_lines(i64 count, const u8* text, u64 begins, u32* lines) {
  for (i64 tile = blockIdx.x; tile * (16 * THREADS) < count; tile += gridDim.x) {
    const i64 place = (tile * THREADS + threadIdx.x) * 16;
    const u32 sum = block_sum<u32>(__popc(beginnings(text, place, count, begins)));
    if (threadIdx.x == 0) lines[tile] = sum;
  }
}

// Powers of ten that a double holds exactly.
__device__ const double POWERS_OF_TEN[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                           1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                           1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// A place in text; `end` follows its last byte.
struct Reading {
  const u8* text;
  i64 place, last;
  u32 end;
  u64 separator;
  __device__ __forceinline__ u32 here() const { return place < last ? text[place] : end; }
  __device__ __forceinline__ u32 next() const { return place + 1 < last ? text[place + 1] : end; }
  __device__ __forceinline__ bool blank() const {
    const u32 c = here();
    return c == ' ' || c == '\t' || c == '\r';
  }
  // Skips blanks that are no separators.
  __device__ __forceinline__ void skip_pad() {
    while (blank() && (separator == ' ' || here() != separator)) ++place;
  }
  __device__ __forceinline__ void skip_separator() {
    if (separator != ' ' && here() == separator) ++place;
  }
  // Goes to the end of the line; returns whether it is there, and no field opens a quote only.
  __device__ bool skip_line() {
    for (bool begins = true; here() != '\n'; ++place) {
      if (place > last) return false;
      if (begins && here() == '"') {
        for (++place; place <= last && here() != '\n'; ++place) {
          if (here() == '"' && next() != '"') break;
          if (here() == '"') ++place;  // within it, "" is a quote
        }
        if (here() != '"') return false;
      }
      begins = here() == separator || (blank() && (begins || separator == ' '));
    }
    return true;
  }
  // Reads an id of at most 18 digits, of which the first of several is no 0; -1 of anything else.
  __device__ __forceinline__ i64 id() {
    const u32 first = here();
    const i64 begin = place;
    u64 value = 0;
    for (u32 digit; (digit = here() - '0') < 10 && place - begin < 19; ++place)
      value = value * 10 + digit;
    const i64 digits = place - begin;
    return digits == 0 || digits > 18 || (first == '0' && digits > 1) ? -1 : value;
  }
};

// Reads a weight that is exact as the quotient of two doubles; -1 of any other.
__device__ double exact_weight(Reading& at, u64& points) {
  u64 mantissa = 0;
  int digits = 0, places = 0;
  bool point = false;
  for (;; ++at.place) {
    const u32 c = at.here();
    if (c - '0' < 10 && digits < 20) {
      mantissa = mantissa * 10 + (c - '0');
      ++digits;
      places += point;
    } else if (c == '.' && !point) {
      point = true;
    } else {
      break;
    }
  }
  const u32 past = at.here();
  if ((past | 32) == 'e' || !(past == '\n' || past == at.separator || at.blank())) return -1;
  if (digits == 0 || digits > 19 || places > 22 || mantissa > 1ull << 53) return -1;
  points += point;
  return __ddiv_rn((double)mantissa, POWERS_OF_TEN[places]);
}

// Parses the lines that begin in the first `count` bytes of text as scan_numbers of
// formats/edge_list/scan.py does, and counts those that only the host can parse. `end` follows the last
// byte; firsts[t] is the number of the first line of tile t.
__global__ void parse_lines(i64 count, const u8* text, u64 begins, i64 last, u64 end,
                            const i64* firsts, u64 separator, u64 shape, i64 least, i64 most, i64 type,
                            void* u, void* v, double* w, BuildCounts* counts) {
  u64 bad = 0, points = 0;
  for (i64 tile = blockIdx.x; tile * (16 * THREADS) < count; tile += gridDim.x) {
    const i64 place = (tile * THREADS + threadIdx.x) * 16;
    u32 left = beginnings(text, place, count, begins), all;
    i64 line = firsts[tile] + block_scan<u32>(__popc(left), all);
    for (; left; left &= left - 1, ++line) {
      Reading at{text, place + __ffs(left) - 1, last, (u32)end, separator};
      at.skip_pad();
      const i64 a = at.id(), before = at.place;
      at.skip_pad();
      if (separator != ' ' && at.here() == separator) {
        ++at.place;
        at.skip_pad();
      }
      const bool apart = at.place > before;
      const i64 b = at.id(), gap = at.place;
      bool good = apart && a >= least && a <= most && b >= least && b <= most;
      double weight = 0;
      at.skip_pad();
      if (at.here() == '\n') {
        good = good && shape < 2;
      } else {
        at.skip_separator();
        good = good && at.place > gap && shape > 0;
        if (good && shape >= 2) {
          at.skip_pad();
          weight = exact_weight(at, points);
          const i64 past = at.place;
          at.skip_pad();
          const bool ends = separator == ' ' ? at.place > past : at.here() == separator;
          good = weight >= 0 && (at.here() == '\n' || (shape > 2 && ends));
        }
        good = good && at.skip_line();
      }
      bad += !good;
      if (type == U32) {
        ((u32*)u)[line] = a;
        ((u32*)v)[line] = b;
      } else {
        ((i64*)u)[line] = a;
        ((i64*)v)[line] = b;
      }
      if (w) w[line] = weight;
    }
  }
  add_to(&counts->bad, bad);
  add_to(&counts->points, points);
}
