/* A stand-in for the driver and CUPTI in one library: it has addresses instead of memory, calls callbacks as CUPTI
   does, and reports migrations of managed arrays that a kernel gets. It loads the injected library as the driver does. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
typedef uint64_t u64;
typedef uint32_t u32;
typedef struct { int site; const char *function; const void *arguments; void *result; const char *symbol;
                 void *context; u32 context_number; u64 *mine; u32 correlation; } call_data;
static const char *const names[] = {"", "cuMemAllocManaged", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemHostAlloc",
  "cuMemFreeHost", "cuMemAllocAsync_ptsz", "cuMemFreeAsync_ptsz", "cuMemcpyHtoD_v2", "cuMemsetD8_v2", "cuMemAdvise",
  "cuMemPrefetchAsync", "cuLaunchKernel", "cuStreamCreate", "cuCtxSynchronize", "cuLaunchCooperativeKernel", "cuModuleUnload"};
enum { MANAGED = 1, PLAIN, FREE, HOST, FREE_HOST, POOL, FREE_POOL, UP, SET, ADVISE, PREFETCH, LAUNCH, STREAM, SYNC, COOPERATIVE, UNLOAD, ALL };
static uint8_t enabled[4][64];
static void (*callback)(void *, int, u32, const call_data *);
static void (*give)(char **, size_t *, size_t *);
static void (*take)(void *, u32, char *, size_t, size_t);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static u64 next_address = 0x700000000000ull, correlation;
static struct { u64 address, bytes; int moved, advised; } managed[64];
static int many;
static char *buffer;
static size_t filled, room;
static u64 now(void) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
int cuptiGetResultString(int s, const char **to) { (void)s; *to = "refused"; return 0; }
int cuptiGetTimestamp(u64 *t) { *t = now(); return 0; }
int cuptiSubscribe(void **s, void *f, void *u) { (void)u; *s = (void *)names; callback = f; return 0; }
int cuptiEnableCallback(u32 on, void *s, int d, u32 n) { (void)s; if (n < 64) enabled[d][n] = on; return 0; }
int cuptiGetCallbackName(int d, u32 n, const char **to) { (void)d; if (n < 1 || n >= ALL) return 1; *to = names[n]; return 0; }
int cuptiActivityRegisterCallbacks(void *g, void *t) { give = g, take = t; return 0; }
int cuptiActivityConfigureUnifiedMemoryCounter(void *c, u32 n) { (void)c; (void)n; return 0; }
int cuptiActivityEnable(int k) { (void)k; return 0; }
int cuptiActivityGetNumDroppedRecords(void *c, u32 s, size_t *n) { (void)c; (void)s; *n = 0; return 0; }
int cuptiActivityGetNextRecord(char *b, size_t valid, char **r) { char *n = *r ? *r + 128 : b; if (n + 128 > b + valid) return 12; *r = n; return 0; }
int cuptiActivityFlushAll(u32 f) { (void)f; char *b = buffer; size_t n = filled; buffer = NULL; filled = 0; if (b) take(NULL, 0, b, room, n); return 0; }
static char *activity(void) {
  if (buffer && filled + 128 > room) cuptiActivityFlushAll(0);
  if (!buffer && give) { size_t most; give(&buffer, &room, &most); filled = 0; }
  if (!buffer) return NULL;
  filled += 128;
  return memset(buffer + filled - 128, 0, 128);
}
static void counter(int kind, u64 address, u64 value) {
  char *r = give ? activity() : NULL;
  if (!r) return;
  u64 *w = (u64 *)r; u32 *v = (u32 *)r;
  v[0] = 25, v[1] = kind, w[1] = value, w[2] = now(), w[3] = w[2] + 100, w[4] = address, v[14] = 2;
}
static void around(int n, int site, void *p, int *result, const char *symbol) {
  call_data d = {site, names[n], p, result, symbol, NULL, 1, NULL, correlation};
  if (callback && enabled[1][n]) callback(NULL, 1, n, &d);
}
#define CALL(n, symbol, ...) int result = 0; if (1) { if (n == LAUNCH || n == COOPERATIVE) correlation++; around(n, 0, p, &result, symbol); __VA_ARGS__; around(n, 1, p, &result, symbol); } return result
static u64 fresh(u64 bytes) { pthread_mutex_lock(&lock); u64 a = next_address; next_address += (bytes + 0x1fffff) & ~0x1fffffull; pthread_mutex_unlock(&lock); return a; }
int cuInit(unsigned f) {
  (void)f;
  const char *path = getenv("CUDA_INJECTION64_PATH");
  void *library = path ? dlopen(path, RTLD_NOW) : NULL;
  int (*begin)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
  if (begin) begin();
  call_data d = {0};
  if (callback && enabled[3][1]) callback(NULL, 3, 1, &d);
  return 0;
}
int cuStreamQuery(void *s) { static int asked; (void)s; return asked++ % 3 < 2 ? 600 : 0; }
int cuCtxGetDevice(int *d) { *d = 0; return 0; }
int cuDeviceGetName(char *to, int n, int d) { (void)d; snprintf(to, n, "Stand-in"); return 0; }
int cuMemGetInfo_v2(size_t *f, size_t *t) { *f = 8ull << 30, *t = 9ull << 30; return 0; }
int cuMemAllocManaged(u64 *to, size_t bytes, unsigned flags) { u64 p[] = {(u64)to, bytes, flags};
  CALL(MANAGED, NULL, *to = fresh(bytes); if (many < 64) managed[many].address = *to, managed[many].bytes = bytes, managed[many++].moved = 0); }
int cuMemAlloc_v2(u64 *to, size_t bytes) { u64 p[] = {(u64)to, bytes}; CALL(PLAIN, NULL, *to = fresh(bytes)); }
int cuMemHostAlloc(void **to, size_t bytes, unsigned f) { u64 p[] = {(u64)to, bytes, f}; CALL(HOST, NULL, *to = (void *)fresh(bytes)); }
int cuMemAllocAsync(u64 *to, size_t bytes, void *s) { u64 p[] = {(u64)to, bytes, (u64)s}; CALL(POOL, NULL, *to = fresh(bytes)); }
int cuMemFree_v2(u64 a) { u64 p[] = {a}; CALL(FREE, NULL, ); }
int cuMemFreeHost(void *a) { u64 p[] = {(u64)a}; CALL(FREE_HOST, NULL, ); }
int cuMemFreeAsync(u64 a, void *s) { u64 p[] = {a, (u64)s}; CALL(FREE_POOL, NULL, ); }
int cuMemcpyHtoD_v2(u64 d, const void *s, size_t n) { u64 p[] = {d, (u64)s, n}; CALL(UP, NULL, ); }
int cuMemsetD8_v2(u64 d, unsigned char c, size_t n) { u64 p[] = {d, c, n}; CALL(SET, NULL, ); }
int cuStreamCreate(void **s, unsigned f) { u64 p[] = {(u64)s, f}; CALL(STREAM, NULL, *s = (void *)77); }
int cuModuleUnload(void *m) { u64 p[] = {(u64)m}; CALL(UNLOAD, NULL, ); }
int cuCtxSynchronize(void) { u64 p[1] = {0}; CALL(SYNC, NULL, ); }
static void say(const char *what, u64 a, int x, int y) { if (getenv("STAND_IN_LOG")) { FILE *f = fopen(getenv("STAND_IN_LOG"), "a"); fprintf(f, "%s %d %d %d\n", what, (int)((a - 0x700000000000ull) >> 21), x, y); fclose(f); } }
int cuMemAdvise(u64 a, size_t n, int advice, int device) { struct { u64 a, n; int advice, device; } q = {a, n, advice, device}, *p = &q;
  CALL(ADVISE, NULL, say("advise", a, advice, device)); }
int cuMemPrefetchAsync(u64 a, size_t n, int device, void *s) { struct { u64 a, n; int device, unused; void *s; } q = {a, n, device, 0, s}, *p = &q;
  CALL(PREFETCH, NULL, say("prefetch", a, (int)(n >> 20), device)); }
/* A kernel is its mangled name, then the ways of its arguments: s(treamed), g(athered), w(ritten), n(umber). */
int cuFuncGetParamInfo(void *f, size_t i, size_t *offset, size_t *bytes) { const char *ways = strchr(f, ' ') + 1; if (i >= strlen(ways)) return 1; *offset = 8 * i, *bytes = 8; return 0; }
static void run(const char *function, void **values) {
  const char *ways = strchr(function, ' ') + 1;
  u64 began = now();
  for (int i = 0; ways[i]; i++) for (int k = 0; k < many; k++) {
    if (ways[i] == 'n' || *(u64 *)values[i] != managed[k].address || managed[k].moved++) continue;
    int blocks = managed[k].bytes >> 21;
    for (int b = 0; b < blocks; b++) {
      u64 at = managed[k].address + ((u64)(ways[i] == 'g' ? (b * 37 + 11) % blocks : b) << 21);
      if (ways[i] != 'w') counter(1, at, 2 << 20);
      counter(4, at, 10);
    }
  }
  char *r = give ? activity() : NULL;
  if (r) { u64 *w = (u64 *)r; u32 *v = (u32 *)r; v[0] = 10, w[2] = began, w[3] = now() + 1000000, v[23] = correlation; w[13] = (u64)"kernel"; }
}
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned sh, void *s, void **values, void **extra) {
  struct { void *f; unsigned g[7]; void *s; void **values, **extra; } q = {f, {gx, gy, gz, bx, by, bz, sh}, s, values, extra}, *p = &q;
  char name[200]; snprintf(name, sizeof name, "%.*s", (int)(strchr(f, ' ') - (char *)f), (char *)f);
  CALL(LAUNCH, name, run(f, values)); }
/* Its arguments end with the kernel's: what follows them is no address. */
int cuLaunchCooperativeKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned sh, void *s, void **values) {
  struct { void *f; unsigned g[7]; void *s; void **values; u64 beyond; } q = {f, {gx, gy, gz, bx, by, bz, sh}, s, values, 8}, *p = &q;
  CALL(COOPERATIVE, "together", run(f, values)); }
