"""Call CUDA's driver: a managed allocation, a set, a copy."""

import ctypes

cuda, device, context, table = ctypes.CDLL("libcuda.so.1"), *(ctypes.c_void_p() for _ in range(3))
found = ctypes.create_string_buffer(8)
calls = [
    cuda.cuInit(0),
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
    cuda.cuCtxSetCurrent(context),
    cuda.cuMemAllocManaged(ctypes.byref(table), 1 << 20, 1),
    cuda.cuMemsetD8_v2(table, 65, 1 << 20),
    cuda.cuCtxSynchronize(),
    cuda.cuMemcpyDtoH_v2(found, table, 8),
    cuda.cuMemFree_v2(table),
]
print(found.raw, calls)
