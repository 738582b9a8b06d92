// Rows of 4-byte words read by a tile of lanes each, as a pass over arcs reads them.
// Rows are claimed in order, or in an order that is as good as random.

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ __forceinline__ u32 mix(u32 x) {
  x ^= x >> 16;
  x *= 0x85EBCA6Bu;
  x ^= x >> 13;
  x *= 0xC2B2AE35u;
  return x ^ x >> 16;
}

// Row r is words[offsets[r] .. offsets[r + 1]). With ALIGN words the first lane begins at a
// multiple of it, so that every later access of the tile covers whole lines.
template <int LANES, int ALIGN, bool RANDOM>
__global__ void read_rows(const u32* words, const u64* offsets, u32 rows, u32 count, u32* sink) {
  u32 lane = threadIdx.x % LANES, tiles = gridDim.x * blockDim.x / LANES, sum = 0;
  for (u32 i = (blockIdx.x * blockDim.x + threadIdx.x) / LANES; i < count; i += tiles) {
    u32 r = RANDOM ? (u32)((u64)mix(i) * rows >> 32) : i;
    u64 begin = offsets[r], end = offsets[r + 1];
    for (u64 k = begin / ALIGN * ALIGN + lane; k < end; k += LANES)
      if (k >= begin) sum += words[k];
  }
  if (sum == 0x9E3779B9u) *sink = sum;
}
