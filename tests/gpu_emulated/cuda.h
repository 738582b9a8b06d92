// CUDA on the CPU: each block is a thread of the system, and each of its threads a fibre.
//
// Enough of the language and its intrinsics for the engine's kernels. Fibres take turns where
// they wait for each other (barriers, shuffles, votes), and nowhere else; blocks run side by side
// and meet where the kernels make them, at barriers of the grid and in atomics.
#pragma once
#include <math.h>
#include <string.h>
#include <ucontext.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

// What one access to shared memory by an atomic or an uncached load is, and what a thread does that
// waits for others: a source that steps through these says otherwise.
#ifndef SHARED
#define SHARED(access) access
#define WAITS() fibres::yield_turn()
#endif

// How fibres switch: the compiler's own jumps look for no handlers on their way.
#ifndef MARK
using Place = void* [5];
#define MARK(place) __builtin_setjmp(place)
#define JUMP(place) __builtin_longjmp(place, 1)
#endif

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __shared__ static thread_local

struct Dimension {
  unsigned x = 1;
};
static thread_local Dimension threadIdx, blockIdx;
static Dimension gridDim, blockDim;

namespace fibres {

constexpr int STACK = 256 << 10;
using Bits = unsigned long long;

// A fibre starts in a context of its own; later switches are jumps, which need no system call.
struct Fibre {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[STACK]};
};

// What switching needs of all fibres, close together. One that has `watched` something waits for
// another value there than it has `seen`, and its turns are left out until then. Each round takes
// the fibres in order, from one drawn at random, forwards or backwards.
struct Turns {
  Place ended, at[THREADS];
  bool begun[THREADS], alive[THREADS];
  const long* watched[THREADS];
  long seen[THREADS];
  int living, taken, first, step;
  unsigned random;
  bool single;  // each turn ends the run
  bool waits(int thread) const { return watched[thread] && *watched[thread] == seen[thread]; }
};

// A barrier of `count` threads, for any number of rounds.
struct Rendezvous {
  int arrived;
  long round;
  template <class F>
  void wait(int count, F last);
};

// The words that the lanes of a warp exchange, and the votes that they cast.
struct Warp {
  Rendezvous meeting;
  unsigned votes, ballot;
  std::array<Bits, WARP> sent, received;
};

struct Block {
  std::array<Fibre, THREADS> all;
  Turns turns;
  Warp warps[THREADS / WARP];
  Rendezvous meeting;
};
// A pointer needs no initialisation, which every access would look for.
static thread_local Block* here;
static std::function<void()> kernel;

// Blocks that no launch uses. The system takes longer to map and clear them than most launches last.
struct Blocks {
  std::mutex taken;
  std::vector<std::unique_ptr<Block>> free;
  std::unique_ptr<Block> take() {
    const std::lock_guard<std::mutex> held(taken);
    if (free.empty()) return std::unique_ptr<Block>(new Block);
    std::unique_ptr<Block> block = std::move(free.back());
    free.pop_back();
    return block;
  }
  void give_back(std::unique_ptr<Block> block) {
    const std::lock_guard<std::mutex> held(taken);
    free.push_back(std::move(block));
  }
};
static Blocks& blocks() {
  static Blocks* const all = new Blocks;  // outlives every thread
  return *all;
}

__attribute__((noinline)) static void resume(int thread) {
  threadIdx.x = thread;
  Turns& turns = here->turns;
  if (turns.begun[thread]) JUMP(turns.at[thread]);
  turns.begun[thread] = true;
  setcontext(&here->all[thread].context);
}

// Lets the next fibre go on that does not wait; never returns.
__attribute__((noinline)) static void next_turn() {
  Turns& turns = here->turns;
  if (turns.living == 0 || turns.single) JUMP(turns.ended);
  while (true) {
    if (turns.taken == THREADS) {
      turns.random = 1664525u * turns.random + 1013904223u;
      turns.first = turns.random >> 16;
      turns.step = turns.random >> 31 ? 1 : -1;
      turns.taken = 0;
    }
    const int thread = (turns.first + turns.step * turns.taken++) & (THREADS - 1);
    if (turns.alive[thread] && !turns.waits(thread)) resume(thread);
  }
}

static void begin() {
  kernel();
  here->turns.alive[threadIdx.x] = false;
  --here->turns.living;
  next_turn();
}

__attribute__((noinline)) static void yield_turn() {
  if (!MARK(here->turns.at[threadIdx.x])) next_turn();
}

// Called again and again by a block that waits for others. More blocks than processors are usual.
static void wait_for_blocks() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

template <class F>
void Rendezvous::wait(int count, F last) {
  if (++arrived == count) {
    arrived = 0;
    last();
    ++round;
    return;
  }
  // Others of the block change the round.
  Turns& turns = here->turns;
  const int thread = threadIdx.x;
  turns.watched[thread] = &round;
  turns.seen[thread] = round;
  yield_turn();
  turns.watched[thread] = nullptr;
}

static int lane() { return threadIdx.x % WARP; }

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

// Sends one word per lane; returns the words of all lanes, which stay until this one sends again.
static const std::array<Bits, WARP>& exchange(Bits word) {
  Warp& warp = here->warps[threadIdx.x / WARP];
  warp.sent[lane()] = word;
  warp.meeting.wait(WARP, [&] { warp.received = warp.sent; });
  return warp.received;
}

static void prepare(int thread) {
  Fibre& fibre = here->all[thread];
  getcontext(&fibre.context);
  fibre.context.uc_stack.ss_sp = fibre.stack.get();
  fibre.context.uc_stack.ss_size = STACK;
  fibre.context.uc_link = nullptr;
  makecontext(&fibre.context, begin, 0);
  here->turns.alive[thread] = true;
  ++here->turns.living;
}

__attribute__((noinline)) static void take_turns() {
  if (!MARK(here->turns.ended)) next_turn();
}

static void run_block(int number) {
  std::unique_ptr<Block> own = blocks().take();
  here = own.get();
  blockIdx.x = number;
  here->turns = Turns();
  here->meeting = Rendezvous();
  for (Warp& warp : here->warps) warp = Warp();
  for (int thread = 0; thread < THREADS; ++thread) prepare(thread);
  here->turns.random = number;
  here->turns.taken = THREADS;
  take_turns();
  blocks().give_back(std::move(own));
}

// Runs a kernel on this many blocks.
static void launch(int blocks, std::function<void()> work) {
  kernel = work;
  gridDim.x = blocks;
  blockDim.x = THREADS;
  std::vector<std::thread> running;
  for (int block = 0; block < blocks; ++block) running.emplace_back(run_block, block);
  for (std::thread& block : running) block.join();
}

}  // namespace fibres

static void __syncthreads() {
  fibres::here->meeting.wait(THREADS, [] {});
}
static void __syncwarp() { fibres::exchange(0); }
static void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// Lanes that come together at no fixed place are taken to come alone.
static unsigned __activemask() { return 1u << fibres::lane(); }
static bool alone(unsigned mask) { return mask == __activemask(); }

template <class T>
T __shfl_sync(unsigned mask, T value, int lane) {
  if (alone(mask)) return value;
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
  fibres::Warp& warp = fibres::here->warps[threadIdx.x / WARP];
  warp.votes |= unsigned(vote ? 1 : 0) << fibres::lane();
  warp.meeting.wait(WARP, [&] {
    warp.ballot = warp.votes;
    warp.votes = 0;
  });
  return warp.ballot;
}
template <class T>
bool __any_sync(unsigned mask, T vote) {
  return __ballot_sync(mask, vote) != 0;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value) {
  if (alone(mask)) return mask;
  const auto& values = fibres::exchange(fibres::bits_of(value));
  unsigned same = 0;
  for (int i = 0; i < 32; ++i) same |= unsigned(values[i] == values[fibres::lane()]) << i;
  return same;
}

template <class T, class V>
T atomicAdd(T* at, V value) {
  return SHARED(__atomic_fetch_add(at, T(value), __ATOMIC_SEQ_CST));
}
template <class R, class B>
R add_real(R* at, R value) {
  B seen = *(volatile B*)at, wanted;
  while (true) {
    const R old = fibres::value_of<R>(seen), sum = old + value;
    memcpy(&wanted, &sum, sizeof sum);
    B expected = seen;
    if (__atomic_compare_exchange_n((B*)at, &expected, wanted, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST))
      return old;
    seen = expected;
  }
}
static float atomicAdd(float* at, float value) { return add_real<float, unsigned>(at, value); }
static double atomicAdd(double* at, double value) {
  return add_real<double, unsigned long long>(at, value);
}
template <class T, class V>
T atomicOr(T* at, V value) {
  return SHARED(__atomic_fetch_or(at, T(value), __ATOMIC_SEQ_CST));
}
template <class T, class V>
T atomicAnd(T* at, V value) {
  return SHARED(__atomic_fetch_and(at, T(value), __ATOMIC_SEQ_CST));
}
template <class T, class V>
T atomicExch(T* at, V value) {
  return SHARED(__atomic_exchange_n(at, T(value), __ATOMIC_SEQ_CST));
}
template <class T, class C, class V>
T atomicCAS(T* at, C expected, V value) {
  T seen = expected;
  SHARED(__atomic_compare_exchange_n(at, &seen, T(value), false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST));
  return seen;
}
template <class T, class V>
T atomicMin(T* at, V value) {
  T seen = *(volatile T*)at;
  while (T(value) < seen) {
    const T before = atomicCAS(at, seen, value);
    if (before == seen) break;
    seen = before;
  }
  return seen;
}
template <class T, class V>
T atomicMax(T* at, V value) {
  T seen = *(volatile T*)at;
  while (T(value) > seen) {
    const T before = atomicCAS(at, seen, value);
    if (before == seen) break;
    seen = before;
  }
  return seen;
}

template <class T>
T __ldcs(const T* at) {
  return *at;
}
template <class T>
T __ldg(const T* at) {
  return *at;
}
template <class T>
T __ldcv(const T* at) {
  return SHARED(__atomic_load_n(at, __ATOMIC_SEQ_CST));
}
static void __nanosleep(unsigned) { WAITS(); }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static int __ffs(unsigned x) { return __builtin_ffs(x); }
static int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
static int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned __int128)a * b >> 64;
}
static unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return ((unsigned long long)high << 32 | low) >> (shift & 31);
}
static double __ull2double_rn(unsigned long long x) { return x; }
static double __ll2double_rn(long long x) { return x; }
static long long __double_as_longlong(double x) { return *(long long*)&x; }
static double __dmul_rn(double a, double b) { return a * b; }
static double __dsub_rn(double a, double b) { return a - b; }
static double __dadd_rn(double a, double b) { return a + b; }
static double __ddiv_rn(double a, double b) { return a / b; }
static long long __double2ll_rz(double x) { return x; }
static long long __double2ll_rn(double x) { return llrint(x); }
template <class A, class B>
auto min(A a, B b) -> decltype(a + b) {
  return a < b ? a : b;
}
template <class A, class B>
auto max(A a, B b) -> decltype(a + b) {
  return a > b ? a : b;
}
