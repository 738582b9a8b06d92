/* Programs for the stand-in driver; the first argument names one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
typedef uint64_t u64;
int cuInit(unsigned); int cuMemAllocManaged(u64 *, size_t, unsigned); int cuMemAlloc_v2(u64 *, size_t); int cuMemFree_v2(u64);
int cuMemHostAlloc(void **, size_t, unsigned); int cuMemcpyHtoD_v2(u64, const void *, size_t); int cuMemsetD8_v2(u64, unsigned char, size_t);
int cuMemAllocAsync(u64 *, size_t, void *); int cuMemFreeAsync(u64, void *); int cuStreamCreate(void **, unsigned); int cuCtxSynchronize(void); int cuModuleUnload(void *); int cuCtxDestroy_v2(void *);
int cuLaunchCooperativeKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
#define MB (1ul << 20)
static int three(void) {
  u64 read, table, out, n = 1 << 24, plain, pool; void *pinned, *stream;
  cuMemAllocManaged(&read, 64 * MB, 1); /* read */
  cuMemAllocManaged(&table, 128 * MB, 1); /* table */
  cuMemAllocManaged(&out, 64 * MB, 1); /* out */
  cuMemAlloc_v2(&plain, 4 * MB);
  cuMemHostAlloc(&pinned, 2 * MB, 0);
  cuStreamCreate(&stream, 0);
  cuMemAllocAsync(&pool, 1 * MB, stream);
  cuMemcpyHtoD_v2(plain, pinned, MB);
  cuMemsetD8_v2(plain, 0, MB);
  for (int k = 0; k < 5; k++) {
    void *values[] = {&table, &read, &out, &n};
    cuLaunchKernel("_Z6gatherPKfPKjPfm gswn", 65536, 1, 1, 256, 1, 1, 0, stream, values, NULL);
  }
  cuCtxSynchronize();
  cuMemFreeAsync(pool, stream);
  cuMemFree_v2(read);
  printf("checksum 42\n");
  return 3;
}
static int phases(void) {
  u64 table, scratch, n = 1 << 24;
  cuMemAllocManaged(&table, 128 * MB, 1); /* kept */
  for (int k = 0; k < 10; k++) {
    cuMemAllocManaged(&scratch, 64 * MB, 1); /* scratch */
    void *values[] = {&table, &scratch, &scratch, &n};
    cuLaunchKernel("_Z6gatherPKfPKjPfm gswn", 65536, 1, 1, 256, 1, 1, 0, NULL, values, NULL);
    cuLaunchKernel("_Z6gatherPKfPKjPfm gswn", 65536, 1, 1, 256, 1, 1, 0, NULL, values, NULL);
    cuMemFree_v2(scratch);
  }
  printf("checksum 7\n");
  return 0;
}
static int shift(void) { /* four launches gather from the first table, later ones from the second */
  u64 tables[2], n = 1 << 24;
  cuMemAllocManaged(tables, 128 * MB, 1); /* first */
  cuMemAllocManaged(tables + 1, 128 * MB, 1); /* second */
  for (int k = 0; k < 32; k++) {
    void *values[] = {tables + (k >= 4), &n};
    cuLaunchKernel("_Z6lookupPKfm gn", 65536, 1, 1, 256, 1, 1, 0, NULL, values, NULL);
  }
  return 0;
}
static int reload(void) { /* another kernel at the address of one that is gone */
  char kernel[32] = "_Z1aPKf s";
  u64 first, second, n = 0;
  cuMemAllocManaged(&first, 4 * MB, 1); /* before */
  cuMemAllocManaged(&second, 4 * MB, 1); /* after */
  void *values[] = {&first}, *others[] = {&n, &second};
  cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, values, NULL);
  cuModuleUnload(kernel);
  cuLaunchKernel(strcpy(kernel, "_Z1bmPf nw"), 1, 1, 1, 32, 1, 1, 0, NULL, others, NULL);
  return 0;
}
static const char ptx[] = ".version 8.0\n.target sm_75\n.address_size 64\n// _Z6gatherPKfPKjPfm gswn\n.visible .entry "
  "_Z6gatherPKfPKjPfm(.param .u64 a, .param .u64 i, .param .u64 o, .param .u64 n) {\n.reg .b64 %a;\n.reg .f32 %f;\nld.param.u64 %a, [a];\n"
  "ld.global.f32 %f, [%a];\nst.global.f32 [%a], %f;\nret;\n}\n";
int cuModuleLoadData(void **, const void *); int cuModuleGetFunction(void **, void *, const char *); int cuLibraryGetKernel(void **, void *, const char *);
/* Load the kernel as programs do: linked, as a runtime, from a binary of code for several devices. */
static int traced(const char *how) {
  struct { uint32_t magic; uint16_t version, header; u64 bytes; char text[sizeof ptx]; } fat = {0xba55ed50, 1, 16, sizeof ptx, ""};
  struct { uint32_t magic, version; const void *data; void *none; } wrapper = {0x466243b1, 1, &fat, NULL};
  int (*address)(const char *, void **, int, u64, int *) = (void *)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2");
  int (*library)(void **, const void *, int *, void **, unsigned, int *, void **, unsigned) = NULL;
  u64 read, table, out, n = 1 << 24; void *module, *kernel; int result;
  memcpy(fat.text, ptx, sizeof ptx);
  address("cuGetProcAddress", (void **)&address, 12000, 0, &result);
  address("cuLibraryLoadData", (void **)&library, 12000, 0, &result);
  if (!strcmp(how, "module")) cuModuleLoadData(&module, ptx);
  else library(&module, !strcmp(how, "fat") ? (void *)&wrapper : (void *)ptx, NULL, NULL, 0, NULL, NULL, 0);
  cuModuleGetFunction(&kernel, module, "_Z6gatherPKfPKjPfm");
  cuMemAllocManaged(&read, 64 * MB, 1); /* traced read */
  cuMemAllocManaged(&table, 128 * MB, 1); /* traced table */
  for (int k = 0; k < 5; k++) {
    cuMemAllocManaged(&out, 4 * MB, 1); /* traced out */
    void *values[] = {&table, &read, &out, &n};
    cuLaunchKernel(kernel, 65536, 1, 1, 256, 1, 1, 0, NULL, values, NULL);
    cuMemFree_v2(out);
    if (k % 2) usleep(30000);
  }
  if (!strcmp(how, "destroy")) cuCtxDestroy_v2(NULL);
  printf("checksum 42\n");
  return 3;
}
static void *work(void *number) { u64 a; for (int k = 0; k < 100; k++) { cuMemAllocManaged(&a, 4096, 1); if (k % 2) cuMemFree_v2(a); } return number; }
int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "three";
  u64 a;
  if (!strcmp(what, "none")) return 7;
  cuInit(0);
  if (!strcmp(what, "three")) return three();
  if (!strcmp(what, "phases")) return phases();
  if (!strcmp(what, "shift")) return shift();
  if (!strcmp(what, "traced")) return traced(argv[2]);
  if (!strcmp(what, "reload")) return reload();
  if (!strcmp(what, "together")) { void *values[] = {&a}; cuMemAllocManaged(&a, 4 * MB, 1); return cuLaunchCooperativeKernel("together s", 1, 1, 1, 32, 1, 1, 0, NULL, values); }
  if (!strcmp(what, "many")) { for (long k = atol(argv[2]); k--;) cuMemAlloc_v2(&a, 4096); return 0; }
  if (!strcmp(what, "loop")) { for (long k = atol(argv[2]); k--;) { cuMemAllocManaged(&a, 4 * MB, 1); cuMemFree_v2(a); } return 0; }
  if (!strcmp(what, "several")) { for (int k = 0; k < 3; k++) cuMemAllocManaged(&a, 4 * MB, 1); return 0; }
  if (!strcmp(what, "kill")) { cuMemAllocManaged(&a, 4 * MB, 1); fflush(stdout); raise(atoi(argv[2])); }
  if (!strcmp(what, "large")) { cuMemAllocManaged(&a, 5000 * MB, 1); printf("half\n"); cuMemAllocManaged(&a, 5000 * MB, 1); printf("whole\n"); return 0; }
  if (!strcmp(what, "threads")) { pthread_t t[8]; for (int k = 0; k < 8; k++) pthread_create(t + k, NULL, work, NULL); for (int k = 0; k < 8; k++) pthread_join(t[k], NULL); return 0; }
  if (!strcmp(what, "fork")) { cuMemAllocManaged(&a, 4 * MB, 1); pid_t child = fork(); if (!child) { for (int k = 0; k < 50; k++) cuMemAllocManaged(&a, 8 * MB, 1); _exit(0); } waitpid(child, NULL, 0); cuMemFree_v2(a); return 0; }
  if (!strcmp(what, "exec")) { cuMemAllocManaged(&a, 4 * MB, 1); execl("/proc/self/exe", argv[0], "three", NULL); }
  if (!strcmp(what, "close")) { /* all descriptors, and use their numbers for a file */
    cuMemAllocManaged(&a, 4 * MB, 1);
    clearenv();
    for (int number = 0; number < 1024; number++) close(number);
    for (int own = open(argv[2], O_RDWR | O_CREAT, 0600), number = own + 1; number < 1024; number++) dup2(own, number);
    for (int k = 0; k < 100000; k++) cuMemAllocManaged(&a, 4096, 1);
    cuMemAlloc_v2(&a, 8 * MB);
    return write(500, "mine\n", 5) != 5;
  }
  if (!strcmp(what, "wait")) { cuMemAllocManaged(&a, 4 * MB, 1); printf("ready\n"); fflush(stdout); for (;;) pause(); }
  return 9;
}
