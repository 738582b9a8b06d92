/* A stand-in for the driver and CUPTI in one library: its memory is reserved addresses, it calls callbacks as CUPTI
   does, and reports migrations of managed arrays that a kernel gets. It loads the injected library as the driver does.
   Kernels of instrumented modules count what they touch, as their block of constants says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
typedef uint64_t u64;
typedef uint32_t u32;
typedef struct { int site; const char *function; const void *arguments; void *result; const char *symbol;
                 void *context; u32 context_number; u64 *mine; u32 correlation; } call_data;
static const char *const names[] = {"", "cuMemAllocManaged", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemHostAlloc",
  "cuMemFreeHost", "cuMemAllocAsync_ptsz", "cuMemFreeAsync_ptsz", "cuMemcpyHtoD_v2", "cuMemsetD8_v2", "cuMemAdvise",
  "cuMemPrefetchAsync", "cuLaunchKernel", "cuStreamCreate", "cuCtxSynchronize", "cuLaunchCooperativeKernel", "cuModuleUnload", "cuCtxDestroy_v2"};
enum { MANAGED = 1, PLAIN, FREE, HOST, FREE_HOST, POOL, FREE_POOL, UP, SET, ADVISE, PREFETCH, LAUNCH, STREAM, SYNC, COOPERATIVE, UNLOAD, DESTROY, ALL };
enum { GPU = 2 }; /* its number in records */
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
  v[kind == 1 ? 11 : 10] = GPU, v[kind == 1 ? 10 : 11] = -1; /* receiver, sender */
}
static void around(int n, int site, void *p, int *result, const char *symbol) {
  call_data d = {site, names[n], p, result, symbol, NULL, 1, NULL, correlation};
  if (callback && enabled[1][n]) callback(NULL, 1, n, &d);
}
#define CALL(n, symbol, ...) int result = 0; if (1) { if (n == LAUNCH || n == COOPERATIVE) correlation++; around(n, 0, p, &result, symbol); __VA_ARGS__; around(n, 1, p, &result, symbol); } return result
static u64 fresh(u64 bytes) { pthread_mutex_lock(&lock); u64 a = next_address; next_address += (bytes + 0x1fffff) & ~0x1fffffull; pthread_mutex_unlock(&lock); return a; }
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuInit(unsigned f) {
  (void)f;
  const char *path = getenv("CUDA_INJECTION64_PATH");
  void *library = path ? dlopen(path, RTLD_NOW) : NULL;
  int (*begin)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
  mmap((void *)0x700000000000ul, 1ul << 36, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
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
int cuMemcpyHtoD_v2(u64 d, const void *s, size_t n) { u64 p[] = {d, (u64)s, n}; CALL(UP, NULL, memcpy((void *)d, s, n)); }
int cuMemcpyDtoH_v2(void *d, u64 s, size_t n) { memcpy(d, (void *)s, n); return 0; }
int cuMemsetD8_v2(u64 d, unsigned char c, size_t n) { u64 p[] = {d, c, n}; CALL(SET, NULL, memset((void *)d, c, n)); }
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
static void count(const char *function, void **values);
static void run(const char *function, void **values) {
  const char *ways = strchr(function, ' ') + 1;
  u64 began = now();
  if (!strncmp(function, "louvain_um_now ", 15)) { *(u64 *)*(u64 *)values[0] = began; return; }
  count(function, values);
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
  if (r) { u64 *w = (u64 *)r; u32 *v = (u32 *)r; v[0] = 10, v[10] = GPU, w[2] = began, w[3] = now() + 1000000, v[23] = correlation; w[13] = (u64)"kernel"; }
}
/* Modules, libraries: PTX, or what a link made of it. Kernels have their ways in a comment: "// name ways". */
typedef struct { char *text; u64 block; } module;
static struct { char *kernel; module *of; } kernels[64];
static int many_kernels, current = 1;
typedef struct { u64 start, bytes; u32 row, shift, copies, rows; } range;
typedef struct { u64 cells[3], origin, log[3]; u32 limit, module, bins, last, shift, many; u64 unused[6]; range ranges[256]; } block;
static module *made(const void *image) {
  if (*(const u32 *)image == 0x466243b1) image = *(void *const *)((const char *)image + 8);
  if (*(const u32 *)image == 0xba55ed50) image = "machine code";
  module *m = calloc(1, sizeof *m);
  m->text = strdup(image);
  if (strstr(m->text, "louvain_um_trace")) m->block = fresh(sizeof(block));
  return m;
}
static void count(const char *function, void **values) {
  const char *ways = strchr(function, ' ') + 1;
  module *m = NULL;
  for (int k = 0; k < many_kernels; k++) if (kernels[k].kernel == function) m = kernels[k].of;
  if (!m || !m->block) return;
  block *b = (block *)m->block;
  u64 bin = (now() - b->origin) >> b->shift;
  for (int i = 0; ways[i]; i++) for (u32 r = 1; r < b->many && ways[i] != 'n'; r++)
    if (b->ranges[r].start == *(u64 *)values[i]) for (u32 page = 0; page < b->ranges[r].rows; page++)
      ((u32 *)b->cells[ways[i] == 'w'])[(b->ranges[r].row + page) * b->bins + (bin < b->last ? bin : b->last)] += 8;
}
int cuModuleLoadData(void **to, const void *image) { *to = made(image); return 0; }
int cuModuleLoadDataEx(void **to, const void *image, u32 n, int *o, void **v) { (void)n, (void)o, (void)v; *to = made(image); return 0; }
int cuModuleLoadFatBinary(void **to, const void *image) { *to = made(image); return 0; }
int cuModuleLoad(void **to, const char *path) { (void)path; *to = made("machine code"); return 0; }
int cuLibraryLoadData(void **to, const void *image, int *a, void **b, u32 c, int *d, void **e, u32 f) { (void)a, (void)b, (void)c, (void)d, (void)e, (void)f; *to = made(image); return 0; }
int cuLibraryLoadFromFile(void **to, const char *path, int *a, void **b, u32 c, int *d, void **e, u32 f) { (void)a, (void)b, (void)c, (void)d, (void)e, (void)f; (void)path; *to = made("machine code"); return 0; }
int cuModuleGetGlobal_v2(u64 *at, size_t *bytes, void *m, const char *name) { (void)name; *at = ((module *)m)->block, *bytes = sizeof(block); return !*at; }
int cuLibraryGetGlobal(u64 *at, size_t *bytes, void *m, const char *name) { return cuModuleGetGlobal_v2(at, bytes, m, name); }
int cuModuleGetFunction(void **to, void *m, const char *name) {
  char wanted[200]; snprintf(wanted, sizeof wanted, "// %s ", name);
  const char *at = strstr(((module *)m)->text, wanted);
  kernels[many_kernels].kernel = at ? strndup(at + 3, strcspn(at + 3, "\n")) : strcpy(malloc(200), "_Z6gatherPKfPKjPfm gswn");
  if (!at && !strcmp(name, "louvain_um_now")) strcpy(kernels[many_kernels].kernel, "louvain_um_now n");
  kernels[many_kernels].of = m;
  *to = kernels[many_kernels++].kernel;
  return 0;
}
int cuLibraryGetKernel(void **to, void *m, const char *name) { return cuModuleGetFunction(to, m, name); }
int cuLinkCreate_v2(u32 n, int *o, void **v, void **state) { (void)n, (void)o, (void)v; *state = NULL; return 0; }
static char *linked;
int cuLinkAddData_v2(void *s, int type, void *data, size_t n, const char *name, u32 m, int *o, void **v) { (void)s, (void)type, (void)name, (void)m, (void)o, (void)v; linked = strndup(data, n); return getenv("STAND_IN_REFUSES") != NULL; }
int cuLinkComplete(void *s, void **code, size_t *n) { (void)s; *code = linked, *n = strlen(linked) + 1; return 0; }
int cuLinkDestroy(void *s) { (void)s; return 0; }
int cuCtxGetCurrent(void **to) { *to = current ? (void *)&current : NULL; return 0; }
int cuCtxSetCurrent(void *c) { (void)c; return 0; }
int cuCtxDestroy_v2(void *c) { u64 p[] = {(u64)c}; CALL(DESTROY, NULL, ); }
int cuDeviceGetAttribute(int *to, int what, int d) { (void)d; *to = what == 75 ? 9 : 0; return 0; }
int cuThreadExchangeStreamCaptureMode(int *m) { (void)m; return 0; }
static const char *const offered[] = {"cuModuleLoadData", "cuLibraryLoadData", "cuGetProcAddress"};
int cuGetProcAddress_v2(const char *name, void **to, int version, u64 flags, int *r) { (void)flags, (void)r; *to = NULL;
  for (int i = 0; i < 3; i++) if (!strcmp(name, offered[i])) *to = i < 2 ? (i ? (void *)cuLibraryLoadData : (void *)cuModuleLoadData) : version < 12000 ? NULL : (void *)cuGetProcAddress_v2; return 0; }
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned sh, void *s, void **values, void **extra) {
  struct { void *f; unsigned g[7]; void *s; void **values, **extra; } q = {f, {gx, gy, gz, bx, by, bz, sh}, s, values, extra}, *p = &q;
  char name[200]; snprintf(name, sizeof name, "%.*s", (int)(strchr(f, ' ') - (char *)f), (char *)f);
  CALL(LAUNCH, name, run(f, values)); }
/* Its arguments end with the kernel's: what follows them is no address. */
int cuLaunchCooperativeKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned sh, void *s, void **values) {
  struct { void *f; unsigned g[7]; void *s; void **values; u64 beyond; } q = {f, {gx, gy, gz, bx, by, bz, sh}, s, values, 8}, *p = &q;
  CALL(COOPERATIVE, "together", run(f, values)); }
