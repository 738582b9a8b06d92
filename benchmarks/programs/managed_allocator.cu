// Managed memory for PyTorch's tensors, as torch.cuda.memory.CUDAPluggableAllocator calls it.
#include <sys/types.h>
#include <cuda_runtime.h>
extern "C" void* allocate(ssize_t bytes, int, cudaStream_t) {
    void* found = nullptr;
    return cudaMallocManaged(&found, bytes) == cudaSuccess ? found : nullptr;
}
extern "C" void release(void* memory, ssize_t, int, cudaStream_t) { cudaFree(memory); }
