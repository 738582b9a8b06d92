// CUDA for one block of threads on the CPU: each thread a fibre, run in turns until it waits.
//
// Enough of the language and its intrinsics for the engine's kernels. Threads take turns where
// they wait for each other (barriers, shuffles, votes), and nowhere else, so that every run is
// the same. There is one block: what blocks do to each other is not seen here.
#pragma once
#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <ucontext.h>

#include <array>
#include <functional>
#include <memory>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __shared__ static

struct Dimension {
  unsigned x = 1;
};
static Dimension threadIdx, blockIdx, gridDim, blockDim;

namespace fibres {

constexpr int THREADS_A_BLOCK = 256, LANES = 32, STACK = 256 << 10;
using Bits = unsigned long long;

// A fibre begins in a context of its own, and goes on by jumps, which ask nothing of the system.
struct Fibre {
  ucontext_t context;
  jmp_buf at;
  std::unique_ptr<char[]> stack{new char[STACK]};
  bool begun = false, alive = false;
};
static std::vector<Fibre> all(THREADS_A_BLOCK);
static jmp_buf home;
static int current;
static std::function<void()> kernel;

static void begin() {
  kernel();
  all[current].alive = false;
  _longjmp(home, 1);
}

static void others_first() {
  if (!_setjmp(all[current].at)) _longjmp(home, 1);
}

static void go_on(int thread) {
  threadIdx.x = current = thread;
  Fibre& fibre = all[thread];
  if (_setjmp(home)) return;
  if (fibre.begun) _longjmp(fibre.at, 1);
  fibre.begun = true;
  setcontext(&fibre.context);
}

// Waits until `count` threads have come here, again and again.
struct Meeting {
  int arrived = 0;
  long round = 0;
  template <class F>
  void wait(int count, F last) {
    const long mine = round;
    if (++arrived == count) {
      arrived = 0;
      last();
      ++round;
    } else {
      while (round == mine) others_first();
    }
  }
};

// What the lanes of a warp tell each other.
struct Warp {
  Meeting meeting;
  std::array<Bits, LANES> said, heard;
};
static Warp warps[THREADS_A_BLOCK / LANES];
static Meeting block;

static int lane() { return current % LANES; }

template <class T>
Bits bits_of(T value) {
  static_assert(sizeof value <= sizeof(Bits), "");
  Bits bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T>
T value_of(Bits bits) {
  T value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Lets each lane say a word; returns what all said.
static std::array<Bits, LANES> exchange(Bits word) {
  Warp& warp = warps[current / LANES];
  warp.said[lane()] = word;
  warp.meeting.wait(LANES, [&] { warp.heard = warp.said; });
  return warp.heard;
}

// Runs a kernel by one block.
static void launch(std::function<void()> work) {
  kernel = work;
  blockIdx.x = 0;
  gridDim.x = 1;
  blockDim.x = THREADS_A_BLOCK;
  for (Fibre& fibre : all) {
    getcontext(&fibre.context);
    fibre.context.uc_stack.ss_sp = fibre.stack.get();
    fibre.context.uc_stack.ss_size = STACK;
    fibre.context.uc_link = nullptr;
    makecontext(&fibre.context, begin, 0);
    fibre.begun = false;
    fibre.alive = true;
  }
  for (bool left = true; left;) {
    left = false;
    for (int i = 0; i < THREADS_A_BLOCK; ++i) {
      if (all[i].alive) go_on(i);
      left |= all[i].alive;
    }
  }
}

}  // namespace fibres

static void __syncthreads() {
  fibres::block.wait(fibres::THREADS_A_BLOCK, [] {});
}
static void __syncwarp() { fibres::exchange(0); }
static void __threadfence() {}

template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return fibres::value_of<T>(fibres::exchange(fibres::bits_of(value))[lane & 31]);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int other) {
  return __shfl_sync(mask, value, fibres::lane() ^ other);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, int by) {
  const int lane = fibres::lane();
  return __shfl_sync(mask, value, lane < by ? lane : lane - by);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, int by) {
  const int lane = fibres::lane();
  return __shfl_sync(mask, value, lane + by < 32 ? lane + by : lane);
}
template <class T>
unsigned __ballot_sync(unsigned, T vote) {
  const auto votes = fibres::exchange(vote ? 1 : 0);
  unsigned all = 0;
  for (int i = 0; i < 32; ++i) all |= unsigned(votes[i]) << i;
  return all;
}
template <class T>
bool __any_sync(unsigned mask, T vote) {
  return __ballot_sync(mask, vote) != 0;
}
template <class T>
unsigned __match_any_sync(unsigned, T value) {
  const auto values = fibres::exchange(fibres::bits_of(value));
  unsigned same = 0;
  for (int i = 0; i < 32; ++i) same |= unsigned(values[i] == values[fibres::lane()]) << i;
  return same;
}

template <class T, class V>
T atomicAdd(T* at, V value) {
  const T old = *at;
  *at = old + T(value);
  return old;
}
template <class T, class V>
T atomicMin(T* at, V value) {
  const T old = *at;
  if (T(value) < old) *at = value;
  return old;
}
template <class T, class V>
T atomicMax(T* at, V value) {
  const T old = *at;
  if (T(value) > old) *at = value;
  return old;
}
template <class T, class V>
T atomicOr(T* at, V value) {
  const T old = *at;
  *at = old | value;
  return old;
}
template <class T, class C, class V>
T atomicCAS(T* at, C expected, V value) {
  const T old = *at;
  if (old == T(expected)) *at = value;
  return old;
}

template <class T>
T __ldcs(const T* at) {
  return *at;
}
static int __popc(unsigned x) { return __builtin_popcount(x); }
static int __ffs(unsigned x) { return __builtin_ffs(x); }
static int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned __int128)a * b >> 64;
}
static unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return ((unsigned long long)high << 32 | low) >> (shift & 31);
}
static double __ull2double_rn(unsigned long long x) { return x; }
static double __dmul_rn(double a, double b) { return a * b; }
static double __dsub_rn(double a, double b) { return a - b; }
static double __ddiv_rn(double a, double b) { return a / b; }
static long long __double2ll_rn(double x) { return llrint(x); }
template <class A, class B>
auto min(A a, B b) -> decltype(a + b) {
  return a < b ? a : b;
}
template <class A, class B>
auto max(A a, B b) -> decltype(a + b) {
  return a > b ? a : b;
}
