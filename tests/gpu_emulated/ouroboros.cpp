// Ouroboros' kernels on emulated blocks, and one in which threads allocate and free in turns.
#include "cuda.h"  // first: it stands in for CUDA

#include "ouroboros.cu"

// Each thread allocates and frees by a random trace of its own; pages that overlap are counted.
template <class Heap>
void trade(Heap heap, unsigned seed, int steps, unsigned long long* most, unsigned long long* wrong,
           unsigned long long* nulls) {
  const unsigned own = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned* held[4] = {};
  unsigned words[4] = {}, random = (seed + own) * 2654435769u | 1;
  for (int step = 0; step < steps + 4; ++step) {
    random = random * 1664525u + 1013904223u;
    const int slot = step < steps ? random >> 30 : step - steps;
    if (held[slot]) {
      for (unsigned i = 0; i < words[slot]; ++i) {
        if (((volatile unsigned*)held[slot])[i] != own * 4 + slot) atomicAdd(wrong, 1ull);
      }
      heap.free(held[slot]);
      held[slot] = nullptr;
    } else if (step < steps) {
      const unsigned long long bytes = 1 + (random >> 8) % most[(random >> 4) % 4];
      held[slot] = (unsigned*)heap.malloc(bytes);
      if (!held[slot]) atomicAdd(nulls, 1ull);
      words[slot] = held[slot] ? bytes / 4 : 0;
      for (unsigned i = 0; i < words[slot]; ++i) {
        ((volatile unsigned*)held[slot])[i] = own * 4 + slot;
      }
    }
    if (step % 3 == 0) fibres::yield_turn();
  }
}

template <class F>
void each_variant(int variant, void* control, F call) {
  auto* heap = (ouroboros::Control*)control;
  if (variant == 0) call(OuroSP{heap});
  if (variant == 1) call(OuroSC{heap});
  if (variant == 2) call(OuroVAP{heap});
  if (variant == 3) call(OuroVAC{heap});
  if (variant == 4) call(OuroVLP{heap});
  if (variant == 5) call(OuroVLC{heap});
}

using Words = unsigned long long;

extern "C" void clear_heap_as(int blocks, int, const Layout* layout) {
  fibres::launch(blocks, [=] { clear_heap(*layout); });
}
extern "C" void begin_heap_as(int, int, const Layout* layout) {
  fibres::launch(1, [=] { begin_heap(*layout); });
}
extern "C" void move_heap_as(int blocks, int, const Layout* layout) {
  fibres::launch(blocks, [=] { move_heap(*layout); });
}
extern "C" void survey_heap_as(int blocks, int, void** heap, Words* kinds, Words* marked) {
  fibres::launch(blocks, [=] { survey_heap((ouroboros::Control*)*heap, kinds, marked); });
}
extern "C" void malloc_each_as(int blocks, int variant, void** heap, Words count,
                               const Words* bytes, void** found) {
  each_variant(variant, *heap, [=](auto own) {
    fibres::launch(blocks, [=] { malloc_each(own, count, bytes, found); });
  });
}
extern "C" void free_each_as(int blocks, int variant, void** heap, Words count, void* const* found) {
  each_variant(variant, *heap, [=](auto own) {
    fibres::launch(blocks, [=] { free_each(own, count, found); });
  });
}
extern "C" void trade_as(int blocks, int variant, void** heap, unsigned seed, int steps,
                         Words* most, Words* wrong, Words* nulls) {
  each_variant(variant, *heap, [=](auto own) {
    fibres::launch(blocks, [=] { trade(own, seed, steps, most, wrong, nulls); });
  });
}
