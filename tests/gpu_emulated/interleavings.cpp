// Every interleaving of a few threads of an Ouroboros heap, one access to shared memory at a time.
//
// A state is the heap's memory and the stacks of the threads. All states that can be reached are
// visited once, by depth-first search: a state is restored and one of its threads makes a step. A
// thread that waits for the second time is not tried again before another one has written something
// since it waited for the first time.
//
// A semaphore alone, of more threads than that, is tried in turns drawn at random (`wander`).
#include <setjmp.h>

#include <utility>

namespace explorer {

static thread_local bool exploring = false;
static void step();
static void asleep();

template <class F>
auto shared(F access) {
  if (exploring) step();
  return access();
}

}  // namespace explorer

#define SHARED(access) explorer::shared([&] { return access; })
#define WAITS() (explorer::exploring ? explorer::asleep() : fibres::yield_turn())
using Place = jmp_buf;  // unlike the compiler's own jumps, it puts nothing on the stack
#define MARK(place) _setjmp(place)
#define JUMP(place) _longjmp(place, 1)
#include "cuda.h"

#define OUROBOROS_CHUNK 32
#define OUROBOROS_ENTRIES 2
#include <string>
#include <unordered_map>

#include "ouroboros.cu"

namespace explorer {

using namespace ouroboros;

constexpr int MOST_THREADS = 4, MOST_HELD = 8, SAVED = 8 << 10, MEMORY = 1 << 16;

alignas(256) static char memory[MEMORY];

// What is saved and restored besides memory and stacks.
struct World {
  int threads;
  bool ended[MOST_THREADS], asleep[MOST_THREADS];
  bool changed[MOST_THREADS];  // memory, by others, since the thread last waited
  Place at[MOST_THREADS];
  bool begun[MOST_THREADS];
  int low[MOST_THREADS];  // bytes of the stack in use
  char* held[MOST_THREADS][MOST_HELD];
  int count[MOST_THREADS], nulls;
  bool broken;
};
static World world;
static std::vector<std::string> scripts;
static size_t used;  // bytes of the memory

static char* stack_end(int thread) {
  return fibres::here->all[thread].stack.get() + fibres::STACK;
}

__attribute__((noinline)) static void step() {
  char* here = (char*)__builtin_frame_address(0);
  world.low[threadIdx.x] = int(stack_end(threadIdx.x) - here) + 96;
  fibres::yield_turn();
}

__attribute__((noinline)) static void asleep() {
  world.asleep[threadIdx.x] = !world.changed[threadIdx.x];
  world.changed[threadIdx.x] = false;
  step();
}

// Whether a page is somebody's.
static bool owned(const char* page, unsigned bytes) {
  for (int thread = 0; thread < world.threads; ++thread) {
    for (int i = 0; i < world.count[thread]; ++i) {
      const char* other = world.held[thread][i];
      if (other < page + bytes && page < other + bytes) return true;
    }
  }
  return false;
}

// Runs one letter of a script: m and M take a page of 16 or 32 bytes, f frees the oldest one.
template <class Heap>
void act(Heap heap, int thread, char letter) {
  char** held = world.held[thread];
  int& count = world.count[thread];
  if (letter == 'f') {
    if (count == 0) return;
    char* page = held[0];
    --count;
    for (int i = 0; i < count; ++i) held[i] = held[i + 1];
    heap.free(page);
    return;
  }
  char* page = (char*)heap.malloc(letter == 'm' ? 16 : 32);
  if (!page) {
    ++world.nulls;
    return;
  }
  if (owned(page, 16)) world.broken = true;
  held[count++] = page;
}

// A semaphore alone, used like a heap: a unit is the page, which no thread can bring but by `free`.
struct Units {
  Semaphore* semaphore;
  void* malloc(u64) const {
    const bool got = semaphore->acquire(1, 1, [] { return 0ull; }, [] { return false; });
    return got ? memory + sizeof(Semaphore) : nullptr;
  }
  void free(void*) const { semaphore->release_one(); }
};

struct Snapshot {
  std::vector<char> bytes;
};

template <class F>
void each_part(F part) {
  part(memory, used);
  part((char*)&world, sizeof world);
}

static void save(Snapshot& to) {
  to.bytes.clear();
  each_part([&](char* at, size_t size) { to.bytes.insert(to.bytes.end(), at, at + size); });
  for (int t = 0; t < world.threads; ++t) {
    if (!world.begun[t] || world.ended[t]) continue;
    const char* end = stack_end(t);
    to.bytes.insert(to.bytes.end(), end - world.low[t] - 512, end);
  }
}

static void restore(const Snapshot& from) {
  const char* at = from.bytes.data();
  each_part([&](char* to, size_t size) {
    memcpy(to, at, size);
    at += size;
  });
  for (int t = 0; t < world.threads; ++t) {
    if (!world.begun[t] || world.ended[t]) continue;
    const size_t size = world.low[t] + 512;
    memcpy(stack_end(t) - size, at, size);
    at += size;
  }
}

static u64 mixed(u64 hash, const char* at, size_t size) {
  u64 word;
  for (; size >= 8; at += 8, size -= 8) {
    memcpy(&word, at, 8);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  word = 0;
  memcpy(&word, at, size);
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 32;
}

static u64 key() {
  u64 hash = 1;
  each_part([&](char* at, size_t size) { hash = mixed(hash, at, size); });
  for (int t = 0; t < world.threads; ++t) {
    if (!world.begun[t] || world.ended[t]) continue;
    hash = mixed(hash, stack_end(t) - world.low[t], world.low[t]);
  }
  return hash;
}

__attribute__((noinline)) static void take_turn(int thread) {
  if (!MARK(fibres::here->turns.ended)) fibres::resume(thread);
}

// Lets a thread make the access it is about to make, and go on to its next one.
static void advance(int thread) {
  fibres::Turns& turns = fibres::here->turns;
  const u64 before = mixed(1, memory, used);
  world.asleep[thread] = false;
  if (!world.begun[thread]) {
    memset(stack_end(thread) - SAVED, 0, SAVED);
    fibres::prepare(thread);
    turns.begun[thread] = false;
    world.begun[thread] = true;
  } else {
    memcpy(&turns.at[thread], &world.at[thread], sizeof(Place));
    turns.begun[thread] = turns.alive[thread] = true;
  }
  exploring = true;
  take_turn(thread);
  exploring = false;
  world.ended[thread] = !turns.alive[thread];
  memcpy(&world.at[thread], &turns.at[thread], sizeof(Place));
  if (world.ended[thread]) memset(&world.at[thread], 0, sizeof(Place)), world.low[thread] = 0;
  if (mixed(1, memory, used) != before) {
    for (int other = 0; other < world.threads; ++other) {
      if (other == thread) continue;
      world.asleep[other] = false;
      world.changed[other] = true;
    }
  }
}

// Whether a heap that no thread uses is whole: each page is held, in a queue or parked, once.
template <class Queues>
static std::string unsound(Ouroboros<Queues> heap, bool by_chunk) {
  const Control& control = *heap.control;
  const Chunks& chunks = control.chunks;
  const u64 cut = chunks.cut < chunks.count ? chunks.cut : chunks.count;
  u64 free_chunks = 0, queue_chunks = 0;
  for (u32 c = 0; c < CLASSES; ++c) {
    const Queue& q = control.queues[c];
    if ((i64)q.available.value < 0 || q.available.grants || q.available.orders) return "semaphore";
    if ((i64)q.room.value < 0 || q.room.grants || q.room.orders) return "room";
    u64 pages = 0, held = 0, queued = 0, parked = 0;
    for (u64 chunk = 0; chunk < cut; ++chunk) {
      const Chunk& own = chunks.header(chunk);
      if (own.kind != c) continue;
      pages += pages_of(c);
      const u64 count = own.state & COUNT, where = own.state & WHERE;
      if (count != __popc(own.mask[0])) return "marks";
      if (where == OUT ? count != 0 : count == 0 && where != PARKED) return "state";
      (where == PARKED ? parked : queued) += count;
      for (int t = 0; t < world.threads; ++t) {
        for (int i = 0; i < world.count[t]; ++i) {
          held += (world.held[t][i] - chunks.first) / STRIDE == chunk;
        }
      }
    }
    if (by_chunk && queued != q.available.value) return "pages of chunks";
    if (!by_chunk && queued) return "marks without a stack";
    if (!by_chunk) queued = q.available.value;
    if (!by_chunk && q.back - q.front != q.available.value) return "positions";
    if (held + queued + parked != pages) return "pages lost";
    if (control.kind == 0 && q.room.value + (q.back - q.front) != q.mask + 1) return "ring";
    if (control.kind) {
      const u64 left = q.segments * ENTRIES - q.back;
      if (q.room.value != left) return "segments";
    }
  }
  for (u64 chunk = 0; chunk < cut; ++chunk) {
    free_chunks += chunks.header(chunk).kind == FREE;
    queue_chunks += chunks.header(chunk).kind == QUEUE;
  }
  if (free_chunks != chunks.free.count) return "chunks lost";
  if (control.kind == 0 && queue_chunks) return "chunks of queues";
  return "";
}

static std::string unsound(Units heap, bool) {
  i64 held = 0;
  for (int t = 0; t < world.threads; ++t) held += world.count[t];
  const Semaphore& units = *heap.semaphore;
  if (units.grants || units.orders) return "semaphore";
  return (i64)units.value + held == 1 ? "" : "units";
}

struct Found {
  long long states, steps, ends, most_nulls, least_nulls;
  char fault[64];
};

template <class Heap>
void begin_scripts(Heap heap, const char* texts) {
  // The first script is run alone, before the others; its pages are the first thread's.
  std::string text = texts;
  scripts.clear();
  for (size_t at = 0, end; at <= text.size(); at = end + 1) {
    end = std::min(text.find(' ', at), text.size());
    scripts.push_back(text.substr(at, end - at));
  }
  memset(&world, 0, sizeof world);
  static fibres::Block* const block = new fibres::Block;
  fibres::here = block;
  block->turns = fibres::Turns();
  block->turns.single = true;
  world.threads = int(scripts.size()) - 1;
  std::fill_n(world.changed, MOST_THREADS, true);
  threadIdx.x = threadIdx.x = 0;
  for (char letter : scripts[0]) act(heap, 0, letter);
  // Pages are dealt to all threads.
  for (int i = world.count[0] - 1; i > 0; --i) {
    const int to = i % world.threads;
    if (to == 0) continue;
    world.held[to][world.count[to]++] = world.held[0][i];
    for (int j = i; j + 1 < world.count[0]; ++j) world.held[0][j] = world.held[0][j + 1];
    --world.count[0];
  }
  world.nulls = 0;
  fibres::kernel = [=] {
    const int own = threadIdx.x;
    for (size_t i = 0; i < scripts[own + 1].size(); ++i) act(heap, own, scripts[own + 1][i]);
  };
}

template <class Heap>
void explore(Heap heap, bool by_chunk, const char* texts, long long most, Found* found) {
  begin_scripts(heap, texts);
  *found = {0, 0, 0, 0, 1 << 30, ""};
  struct Frame {
    Snapshot snapshot;
    int next;
    long long number;
  };
  std::unordered_map<u64, long long> numbers;
  std::vector<std::pair<long long, long long>> edges;
  std::vector<long long> ends;
  std::vector<Frame> path;
  const auto fault = [&](const std::string& what) {
    if (!found->fault[0]) strncpy(found->fault, what.c_str(), sizeof found->fault - 1);
  };
  const auto visit = [&](long long from) {
    const auto [place, fresh] = numbers.try_emplace(key(), (long long)numbers.size());
    if (from >= 0) edges.push_back({from, place->second});
    if (!fresh) return;
    bool all = true, able = false;
    for (int t = 0; t < world.threads; ++t) {
      all &= world.ended[t];
      able |= !world.ended[t] && !world.asleep[t];
    }
    if (world.broken) return fault("a page is given twice");
    if (all) {
      ends.push_back(place->second);
      ++found->ends;
      found->most_nulls = std::max<long long>(found->most_nulls, world.nulls);
      found->least_nulls = std::min<long long>(found->least_nulls, world.nulls);
      const std::string what = unsound(heap, by_chunk);
      if (!what.empty()) fault(what);
      return;
    }
    if (!able) return fault("all threads wait");
    path.push_back({{}, 0, place->second});
    save(path.back().snapshot);
  };
  visit(-1);
  while (!path.empty() && !found->fault[0]) {
    Frame& frame = path.back();
    if (frame.next == world.threads) {
      path.pop_back();
      continue;
    }
    const int thread = frame.next++;
    const long long from = frame.number;
    restore(frame.snapshot);
    if (world.ended[thread] || world.asleep[thread]) continue;
    advance(thread);
    ++found->steps;
    visit(from);
    if ((long long)numbers.size() > most) fault("too many states");
  }
  found->states = numbers.size();
  if (found->fault[0]) return;
  // From every state an end is reached: threads do not keep each other busy.
  std::vector<std::vector<long long>> before(numbers.size());
  for (const auto& [from, to] : edges) before[to].push_back(from);
  std::vector<bool> ending(numbers.size());
  long long reached = 0;
  while (!ends.empty()) {
    const long long state = ends.back();
    ends.pop_back();
    if (ending[state]) continue;
    ending[state] = true;
    ++reached;
    ends.insert(ends.end(), before[state].begin(), before[state].end());
  }
  if (reached != found->states) fault("threads may go on for ever");
}

template <class Heap>
void run(bool by_chunk, const char* texts, long long most, Found* found) {
  explore(Heap{(Control*)memory}, by_chunk, texts, most, found);
}

}  // namespace explorer

// Explores a variant: kind 0 to 2, a heap of so many chunks, rings of so many entries.
extern "C" void explore(int kind, int by_chunk, int chunks, int ring, const char* scripts,
                        long long most, explorer::Found* found) {
  using namespace explorer;
  const u64 control = (sizeof(Control) + 127) / 128 * 128;
  Layout layout = {memory, MEMORY, (unsigned)kind, (unsigned)chunks, 16, (u64)ring};
  layout.free_at = control;
  layout.entries_at = control + 16 * 4;
  layout.chunks_at = (layout.entries_at + CLASSES * ring * 8 + 127) / 128 * 128;
  used = layout.chunks_at + chunks * STRIDE;
  memset(memory, 0, MEMORY);
  fibres::launch(1, [=] { clear_heap(layout); });
  fibres::launch(1, [=] { begin_heap(layout); });
  if (kind == 0 && !by_chunk) run<OuroSP>(false, scripts, most, found);
  if (kind == 0 && by_chunk) run<OuroSC>(true, scripts, most, found);
  if (kind == 1 && !by_chunk) run<OuroVAP>(false, scripts, most, found);
  if (kind == 1 && by_chunk) run<OuroVAC>(true, scripts, most, found);
  if (kind == 2 && !by_chunk) run<OuroVLP>(false, scripts, most, found);
  if (kind == 2 && by_chunk) run<OuroVLC>(true, scripts, most, found);
}

// Lets threads of a semaphore of one unit take turns at random, so many times.
extern "C" void wander(const char* scripts, long long times, explorer::Found* found) {
  using namespace explorer;
  used = sizeof(Semaphore);
  const Units units{(Semaphore*)memory};
  memset(memory, 0, MEMORY);
  units.semaphore->begin(1);
  begin_scripts(units, scripts);
  *found = {0, 0, 0, 0, 0, ""};
  Snapshot first;
  save(first);
  unsigned random = 1;
  for (; times && !found->fault[0]; --times) {
    restore(first);
    std::string fault;
    for (int able = 1, step = 0; able && fault.empty(); ++step) {
      int ready[MOST_THREADS], left = 0;
      able = 0;
      for (int t = 0; t < world.threads; ++t) {
        left += !world.ended[t];
        if (!world.ended[t] && !world.asleep[t]) ready[able++] = t;
      }
      random = random * 1664525u + 1013904223u;
      if (able) {
        advance(ready[(random >> 16) % able]);
        ++found->steps;
      } else {
        fault = left ? "all threads wait" : unsound(units, false);
      }
      if (world.broken) fault = "a unit is given twice";
      if (step > 100000) fault = "threads go on for ever";
    }
    ++found->ends;
    strncpy(found->fault, fault.c_str(), sizeof found->fault - 1);
  }
}
