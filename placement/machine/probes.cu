// Kernels that `calibrate` times: each accesses memory in one way and does nothing else. Elements
// are dealt to threads in turns; any grid will do. A sum is written to `sink` only if it has one
// value that does not occur: the compiler then keeps the reads.

typedef unsigned int u32;
typedef unsigned long long u64;

// Murmur3's finaliser: spreads consecutive numbers over all 32-bit numbers.
__device__ __forceinline__ u32 mix(u32 x) {
  x ^= x >> 16;
  x *= 0x85EBCA6Bu;
  x ^= x >> 13;
  x *= 0xC2B2AE35u;
  return x ^ x >> 16;
}

// Returns the i-th random number below `size`.
__device__ __forceinline__ u64 drawn(u64 i, u64 size) {
  u64 wide = (u64)mix((u32)i) << 32 | mix((u32)i ^ 0x9E3779B9u);
  return __umul64hi(wide, size);
}

__device__ __forceinline__ u64 thread() { return blockIdx.x * (u64)blockDim.x + threadIdx.x; }

__device__ __forceinline__ u64 threads() { return gridDim.x * (u64)blockDim.x; }

// Does nothing: the cost of a launch.
extern "C" __global__ void nothing() {}

// Reads 16-byte words in order; a warp reads 512 bytes at a time.
extern "C" __global__ void read_words(const uint4* words, u64 count, u32* sink) {
  u32 sum = 0;
  u64 i = thread(), step = threads();
  for (; i + 3 * step < count; i += 4 * step) {
    uint4 a = words[i], b = words[i + step], c = words[i + 2 * step], d = words[i + 3 * step];
    sum += a.x + a.w + b.x + b.w + c.x + c.w + d.x + d.w;
  }
  for (; i < count; i += step) sum += words[i].x;
  if (sum == 0x9E3779B9u) *sink = sum;
}

// Writes 16-byte words in order.
extern "C" __global__ void write_words(uint4* words, u64 count, u32 value) {
  for (u64 i = thread(); i < count; i += threads())
    words[i] = make_uint4(value, value, value, value);
}

// Reads 4-byte words at random.
extern "C" __global__ void read_random(const u32* words, u64 size, u64 count, u32* sink) {
  u32 sum = 0;
  u64 i = thread(), step = threads();
  for (; i + 3 * step < count; i += 4 * step) {
    u32 a = words[drawn(i, size)], b = words[drawn(i + step, size)];
    u32 c = words[drawn(i + 2 * step, size)], d = words[drawn(i + 3 * step, size)];
    sum += a + b + c + d;
  }
  for (; i < count; i += step) sum += words[drawn(i, size)];
  if (sum == 0x9E3779B9u) *sink = sum;
}

// Adds to 4-byte words at random, by atomics whose result is not read.
extern "C" __global__ void add_random(u32* words, u64 size, u64 count) {
  for (u64 i = thread(); i < count; i += threads()) atomicAdd(&words[drawn(i, size)], 1u);
}
