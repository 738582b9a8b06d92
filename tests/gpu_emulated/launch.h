// Any kernel of a source by its name, its arguments as CUDA's driver takes them.
#pragma once
#include <map>
#include <string>
#include <utility>

using Launch = std::function<void(int, void**)>;

template <class... P, size_t... I>
Launch launch_with(void (*kernel)(P...), std::index_sequence<I...>) {
  return [=](int blocks, void** arguments) {
    fibres::launch(blocks, [=] { kernel(*(std::remove_const_t<P>*)arguments[I]...); });
  };
}

template <class... P>
Launch launch_of(void (*kernel)(P...)) {
  return launch_with(kernel, std::index_sequence_for<P...>());
}

#define PLAIN(kernel) {#kernel, launch_of(kernel)}
#define TYPED(kernel)                                                        \
  {#kernel "<Unweighted, u32>", launch_of(kernel<Unweighted, u32>)},         \
      {#kernel "<u32, u32>", launch_of(kernel<u32, u32>)}, \
      {#kernel "<u32, u64>", launch_of(kernel<u32, u64>)}, \
      {#kernel "<u64, u64>", launch_of(kernel<u64, u64>)}
// The same kernels on inputs in fewer bytes and on short weights: in a library for themselves, since
// they take most of the compiler's time.
#define PACKED(kernel)                                                       \
  {#kernel "<Packed, u32>", launch_of(kernel<Packed, u32>)}, \
      {#kernel "<PackedOffsets32, u32>", launch_of(kernel<PackedOffsets32, u32>)}, \
      {#kernel "<PackedWeights16, u32>", launch_of(kernel<PackedWeights16, u32>)}, \
      {#kernel "<PackedWeights16, u64>", launch_of(kernel<PackedWeights16, u64>)}, \
      {#kernel "<Weights8, u32>", launch_of(kernel<Weights8, u32>)}, \
      {#kernel "<Weights8, u64>", launch_of(kernel<Weights8, u64>)}, \
      {#kernel "<Weights16, u32>", launch_of(kernel<Weights16, u32>)}, \
      {#kernel "<Weights16, u64>", launch_of(kernel<Weights16, u64>)}, \
      {#kernel "<Weights8Targets24, u32>", launch_of(kernel<Weights8Targets24, u32>)}, \
      {#kernel "<Weights8Targets24, u64>", launch_of(kernel<Weights8Targets24, u64>)}
// By the extended rule, and on unweighted inputs whose sums take 64 bits.
#define EXTENDED(kernel)                                                                 \
  {#kernel "<Unweighted, u64, Extended>", launch_of(kernel<Unweighted, u64, Extended>)}, \
      {#kernel "<u32, u64, Extended>", launch_of(kernel<u32, u64, Extended>)},           \
      {#kernel "<u64, u64, Extended>", launch_of(kernel<u64, u64, Extended>)}
// On rows in linked blocks.
#define LISTED(kernel) {#kernel "<Listed, u64>", launch_of(kernel<Listed, u64>)}
#define WIDE(kernel) {#kernel "<Unweighted, u64>", launch_of(kernel<Unweighted, u64>)}

static const std::map<std::string, Launch>& kernels();

// Returns 0 where there is no such kernel.
extern "C" int launch_kernel(const char* name, int blocks, void** arguments) {
  const auto found = kernels().find(name);
  if (found == kernels().end()) return 0;
  found->second(blocks, arguments);
  return 1;
}
