// One kernel with every form of access to global memory; `test_tracer_gpu.py` knows how often
// each thread accesses each array.

typedef unsigned int u32;
typedef unsigned long long u64;

// Not inlined: the address is generic, in a function of its own.
__device__ __noinline__ u32 deref(const u32* p) { return *(volatile const u32*)p; }

__global__ void touch(u32 n, const u32* reads, const uint4* wide, u32* writes, uint2* pairs,
                      u32* sums, u64* sums64, u32* guarded, const u32* mixed, const uint4* copied,
                      u32* bulk, u32* strided, u32* hidden, u32* one) {
  __shared__ u32 own[256];
  __shared__ uint4 staged[512];
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
  own[t] = i;
  for (u32 k = t; k < 512; k += blockDim.x) staged[k] = make_uint4(k, k, k, k);
  __syncthreads();
  if (i >= n) return;

  // Five reads of `reads`, one of `wide`.
  u32 sum = *(volatile const u32*)(reads + i) + __ldcs(reads + i) + __ldcg(reads + i) + reads[i + 1];
  asm volatile("{ .reg .b32 %x;\n ld.global.nc.L1::no_allocate.u32 %x, [%1];\n add.u32 %0, %0, %x; }"
               : "+r"(sum)
               : "l"(reads + i));
  uint4 four = wide[i];
  sum += four.x + four.y + four.z + four.w;

  // Three writes of `writes`, one of `pairs`.
  *(volatile u32*)(writes + i) = sum;
  __stcs(writes + i, sum + 1);
  __stcg(writes + i, sum + 2);
  pairs[i] = make_uint2(sum, i);

  // Four atomics on `sums`, all threads of the grid on one address in two of them; two on `sums64`.
  sum += atomicAdd(sums + i, 1);
  atomicAdd(sums + n, 1);
  atomicMax(sums + n + 1, i);
  sum += atomicCAS(sums + i, 1, 2);
  sum += atomicExch(sums64 + i, (u64)i);
  atomicAdd(sums64 + n, 1ull);

  // Every third thread reads `guarded`, the others write it.
  asm volatile(
      "{ .reg .pred %p;\n setp.eq.u32 %p, %2, 0;\n"
      "@%p ld.global.u32 %0, [%1 + 4];\n @!%p st.global.u32 [%1 + 4], %2;\n }"
      : "+r"(sum)
      : "l"(guarded + i), "r"(i % 3)
      : "memory");

  // Every second thread reads `mixed`, the others shared memory, through generic addresses.
  sum += deref(i % 2 ? mixed + i : own + t);

  // A copy of 16 bytes from `copied`.
  u32 to = (u32)__cvta_generic_to_shared(staged + t);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;\n cp.async.wait_all;" ::"r"(to),
               "l"(copied + i)
               : "memory");
  sum += staged[t].x;

#if __CUDA_ARCH__ >= 900
  // All copies of the block have arrived before they are copied on.
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  // 8160 bytes to `bulk` from byte 4080 on: three pages of 4 KiB.
  if (i == 0) {
    u32 from = (u32)__cvta_generic_to_shared(staged);
    asm volatile(
        "fence.proxy.async;\n cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
        "cp.async.bulk.commit_group;\n cp.async.bulk.wait_group 0;" ::"l"(bulk + 1020),
        "r"(from), "r"(8160)
        : "memory");
  }
#endif

  strided[i * 1024] = sum;      // a page each
  hidden[i] = 1;                // not registered
  if (i == 0) one[1] = one[0];  // the neighbour of another array in one page
}
