/* Tracing, a part of `inject.c`: modules that carry PTX are exchanged for instrumented ones, whose counts are kept.

   Preloaded (LD_PRELOAD), the library's versions of the driver's functions that load modules are what a program and the
   runtimes in it find: by linking, by `dlsym`, by `cuGetProcAddress`. What such a function is given goes to the command
   that started the program, which answers with instrumented PTX, or with nothing. Where the driver refuses that, the
   original is loaded.

   Instrumented code reads a block of constants in its own module: where the counters are, and which of their rows
   belong to which addresses. Before a launch, the blocks in its context are brought up to date, and bins of time are
   joined when half of them are past. One context is counted, the first; in others the counts are thrown away. At the
   end of that context, or of the program, the counters are written to a file. */

enum { USES = 3, BINS = 128, ELSEWHERE = 32, RANGES = 256, CONTEXTS = 8, MODULES = 4096, PAGE_SHIFT = 12, SPREAD = 1024 };
enum { TRACE_QUESTION = -2, MOST_IMAGE = 256 << 20, FIRST_BIN_SHIFT = 17 };
#define COUNTER_BYTES (64u << 20)
#define ROWS (COUNTER_BYTES / (4 * USES * BINS))
#define ROW_BYTES (4ul * BINS)
#define SLACK (1 << 20) /* nanoseconds before the first launch at which time begins */
#define TRACE_SYMBOL "louvain_um_trace"

/* The block, as `tracer/snippet.py` lays it out. */
typedef struct { u64 start, bytes; u32 row, shift, copies, rows; } counted_range;
typedef struct { u64 cells[USES], origin, log, logged, capacity; u32 limit, module, bins, last_bin, bin_shift, many;
                 u64 unused[6]; counted_range ranges[RANGES]; } block;
_Static_assert(sizeof(block) == 128 + 32 * RANGES, "the block of constants");

static struct {
  int (*current)(void **), (*make_current)(void *), (*synchronize)(void), (*capture_mode)(int *);
  int (*alloc)(u64 *, size_t), (*set)(u64, unsigned char, size_t);
  int (*up)(u64, const void *, size_t), (*down)(void *, u64, size_t);
  int (*load)(void **, const void *), (*unload)(void *), (*function)(void **, void *, const char *);
  int (*module_global)(u64 *, size_t *, void *, const char *), (*library_global)(u64 *, size_t *, void *, const char *);
  int (*launch)(void *, u32, u32, u32, u32, u32, u32, u32, void *, void **, void **);
  int (*link_begin)(u32, int *, void **, void **), (*link_end)(void *, void **, size_t *), (*link_drop)(void *);
  int (*link_add)(void *, int, void *, size_t, const char *, u32, int *, void **), (*attribute)(int *, int, int);
} cu;

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER; /* of what follows; held while the driver is called */
static const char *trace_path; /* of the command's socket; NULL: nothing is traced */
static struct { void *context; u64 cells; u32 version, loads; } contexts[CONTEXTS];
static struct { void *handle, *context; } modules[MODULES]; /* a library has no context of its own */
static u32 many_contexts, many_modules, loads; /* `loads` changes with `modules` */
static int counted_out; /* the counters are written */
static u64 bins_begin, clock_ahead; /* the first bin's begin by the device's clock, and how far `now` is ahead of that */
static u32 bin_shift = FIRST_BIN_SHIFT;

/* Arrays with counters: rows [row, row + rows * copies); one that is allocated again at its place gets its own. */
static struct { u64 address, bytes; u32 stack, slot, row, rows, copies, shift; } counted[ENTRIES / 16];
static u32 many_counted, next_row = ELSEWHERE, uncounted;

/* ---- counters ---- */

/* Return 1 + the index of an array's counters, 0 if none are left. The lock is held. */
static u32 counters_of(const node *n) {
  for (u32 i = 0; i < many_counted; i++)
    if (counted[i].address == n->address && counted[i].bytes == n->bytes && counted[i].stack == n->stack->number &&
        counted[i].slot == n->slot) return i + 1;
  u32 left = ROWS - next_row, most = left / 2 ? left / 2 : 1, shift = PAGE_SHIFT, copies = 1;
  if (!left || many_counted == sizeof counted / sizeof *counted) return uncounted = 1, 0;
  while (((n->bytes - 1) >> shift) + 1 > most) shift++;
  u32 rows = ((n->bytes - 1) >> shift) + 1, spread = most < SPREAD ? most : SPREAD;
  while (copies < ELSEWHERE && 2 * copies * rows <= spread) copies *= 2;
  counted[many_counted].address = n->address, counted[many_counted].bytes = n->bytes;
  counted[many_counted].stack = n->stack->number, counted[many_counted].slot = n->slot;
  counted[many_counted].row = next_row, counted[many_counted].rows = rows;
  counted[many_counted].copies = copies, counted[many_counted].shift = shift;
  next_row += rows * copies;
  return ++many_counted;
}

/* Write the block of the counted context; of more arrays than it has room for, the largest are in it. Return which
   version of the ranges it shows. */
static u32 describe(block *b, u64 cells) {
  pthread_mutex_lock(&lock);
  u64 least = LARGE;
  for (u32 many = RANGES; many >= RANGES; least *= 2) {
    many = 0;
    for (u32 i = 0; i < many_ranges; i++) many += ranges[i]->bytes >= least;
    if (many < RANGES) break;
    uncounted = 1;
  }
  for (u32 i = 0; i < many_ranges; i++) {
    node *n = ranges[i];
    if (n->bytes < least || !(n->counted || (n->counted = counters_of(n)))) continue;
    u32 k = n->counted - 1;
    b->ranges[++b->many] = (counted_range){.start = n->address, .bytes = n->bytes, .row = counted[k].row,
                                           .shift = counted[k].shift, .copies = counted[k].copies - 1, .rows = counted[k].rows};
  }
  u32 seen = ranges_version;
  pthread_mutex_unlock(&lock);
  for (int use = 0; use < USES; use++) b->cells[use] = cells + use * ROWS * ROW_BYTES;
  b->ranges[0] = (counted_range){.shift = 63, .copies = ELSEWHERE - 1, .rows = 1};
  b->origin = bins_begin, b->bins = BINS, b->last_bin = BINS - 1, b->bin_shift = bin_shift, b->many++;
  return seen;
}

/* Find out how far `now` is ahead of the device's clock: by the fastest of some readings. */
static void compare_clocks(u64 room) {
  static const char text[] = ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry " CLOCK_KERNEL
    "(.param .u64 out) {\n.reg .b64 %out, %time;\nld.param.u64 %out, [out];\nmov.u64 %time, %globaltimer;\n"
    "st.global.u64 [%out], %time;\nret;\n}\n";
  void *module, *kernel, *values[] = {&room};
  u64 fastest = ~0ull, there;
  if (cu.load(&module, text)) return;
  for (int k = 0; k < 5 && !cu.function(&kernel, module, CLOCK_KERNEL); k++) {
    u64 before = now();
    if (cu.launch(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, values, NULL) || cu.synchronize()) break;
    u64 after = now();
    if (cu.down(&there, room, 8) || after - before >= fastest) continue;
    fastest = after - before, clock_ahead = before + fastest / 2 - there;
  }
  cu.set(room, 0, 8);
  cu.unload(module);
}

/* Join bins so that the present is in the first half of them. */
static void join_bins(u64 cells) {
  u64 past = now() - clock_ahead - bins_begin, bytes = next_row * ROW_BYTES;
  u32 by = 0;
  while (past >> (bin_shift + by) >= BINS / 2) by++;
  u32 *rows = by ? malloc(bytes) : NULL;
  if (!rows || cu.synchronize()) by = 0;
  for (int use = 0; by && use < USES; use++) {
    if (cu.down(rows, cells + use * ROWS * ROW_BYTES, bytes)) continue;
    for (u64 i = 0; i < bytes / 4; i++) {
      u64 to = i / BINS * BINS + (i % BINS >> by);
      u32 count = rows[i];
      rows[i] = 0, rows[to] += count;
    }
    cu.up(cells + use * ROWS * ROW_BYTES, rows, bytes);
  }
  bin_shift += by;
  free(rows);
}

/* Bring the blocks of modules in the current context up to date: a launch follows. */
static void count_here(void) {
  static block b;
  void *context = NULL;
  if (!__atomic_load_n(&many_modules, __ATOMIC_ACQUIRE) || cu.current(&context) || !context) return;
  pthread_mutex_lock(&counting);
  u32 at = 0;
  while (at < many_contexts && contexts[at].context != context) at++;
  if (at == many_contexts) {
    if (at == CONTEXTS) at--;
    else many_contexts++;
    u64 cells = 0, bytes = at || counted_out ? 4 : COUNTER_BYTES;
    if (cu.alloc(&cells, bytes) && !at && !counted_out) {
      pthread_mutex_lock(&lock);
      append_text(NOTE, 0, "the counters of accesses found no room on the device; nothing was traced");
      pthread_mutex_unlock(&lock);
      counted_out = 1, cells = 0;
      cu.alloc(&cells, bytes = 4);
    }
    if (cells) cu.set(cells, 0, bytes);
    if (!at && !counted_out) {
      compare_clocks(cells);
      bins_begin = now() - clock_ahead - SLACK;
      pthread_mutex_lock(&lock);
      devices[device_now()].plain += bytes;
      pthread_mutex_unlock(&lock);
    }
    contexts[at].context = context, contexts[at].cells = cells, contexts[at].version = 0;
  }
  int here = !at && !counted_out, late = here && (now() - clock_ahead - bins_begin) >> bin_shift >= BINS / 2;
  u32 seen = here ? __atomic_load_n(&ranges_version, __ATOMIC_ACQUIRE) : 1;
  if (contexts[at].version != seen || contexts[at].loads != loads || late) {
    int mode = 2; /* calls that a capture of this thread must not see */
    cu.capture_mode(&mode);
    memset(&b, 0, sizeof b);
    b.bins = b.many = 1;
    for (int use = 0; use < USES; use++) b.cells[use] = contexts[at].cells;
    if (late) join_bins(contexts[at].cells);
    if (here) b.many = 0, seen = describe(&b, contexts[at].cells);
    if (contexts[at].version != seen || late) cu.synchronize(); /* kernels that run must not read half of it */
    for (u32 i = 0; i < many_modules; i++) {
      u64 address = 0;
      size_t bytes = 0;
      if (modules[i].context && modules[i].context != context) continue;
      int (*find)(u64 *, size_t *, void *, const char *) = modules[i].context ? cu.module_global : cu.library_global;
      if (!find(&address, &bytes, modules[i].handle, TRACE_SYMBOL) && bytes == sizeof b) cu.up(address, &b, sizeof b);
    }
    contexts[at].version = seen, contexts[at].loads = loads;
    cu.capture_mode(&mode);
  }
  pthread_mutex_unlock(&counting);
}

/* Write the counters to a file, once: at the end of the program, or before its context ends. */
static void write_counts(void) {
  void *before = NULL;
  descriptor to = {-1, 0, 0};
  int status = 1;
  u32 *rows = malloc(next_row * ROW_BYTES);
  if (rows && !cu.current(&before) && !cu.make_current(contexts[0].context)) {
    to = opened(".counts", O_WRONLY | O_CREAT | O_TRUNC);
    status = to.number < 0 || cu.synchronize();
    for (int use = 0; !status && use < USES; use++)
      status = cu.down(rows, contexts[0].cells + use * ROWS * ROW_BYTES, next_row * ROW_BYTES) ||
               write(to.number, rows, next_row * ROW_BYTES) != (ssize_t)(next_row * ROW_BYTES);
    cu.make_current(before);
  }
  if (to.number >= 0) close(to.number);
  free(rows);
  counted_out = 1;
  pthread_mutex_lock(&lock);
  for (u32 i = 0; i < many_counted; i++)
    append((slot){.kind = COUNTED, .a = counted[i].address, .b = counted[i].bytes, .c = counted[i].copies,
                  .d = counted[i].stack, .e = counted[i].slot, .f = counted[i].row, .g = counted[i].rows,
                  .h = counted[i].shift}, NULL, 0);
  append((slot){.kind = COUNTS, .a = bins_begin + clock_ahead, .b = next_row, .d = bin_shift, .e = BINS, .f = status,
                .g = uncounted}, NULL, 0);
  pthread_mutex_unlock(&lock);
}

/* Before a context ends, NULL for a device's own, or at the end of the program. */
static void end_counting(void *context) {
  pthread_mutex_lock(&counting);
  int all = !context || (many_contexts && context == contexts[0].context);
  if (all && many_contexts && !counted_out) write_counts();
  many_contexts = all ? 0 : many_contexts > 1; /* others are found anew */
  u32 kept = 0;
  for (u32 i = 0; i < many_modules; i++)
    if (!modules[i].context || (context && modules[i].context != context)) modules[kept++] = modules[i];
  many_modules = kept, loads++;
  pthread_mutex_unlock(&counting);
}

static void forget_module(void *handle) {
  if (!__atomic_load_n(&many_modules, __ATOMIC_ACQUIRE)) return;
  pthread_mutex_lock(&counting);
  for (u32 i = 0; i < many_modules; i++)
    if (modules[i].handle == handle) modules[i] = modules[--many_modules], loads++;
  pthread_mutex_unlock(&counting);
}

/* ---- modules ---- */

typedef struct { const void *image; u32 number; } answer;

/* Return the bytes of PTX, or of a binary with code for several devices; 0 of anything else. */
static u64 image_bytes(const void **image) {
  const u32 *words = *image;
  if (words && words[0] == 0x466243b1) words = *(const u32 *const *)(words + 2), *image = words; /* refers to one */
  if (words && words[0] == 0xba55ed50) return (words[1] >> 16) + *(const u64 *)(words + 2);
  for (int i = 0; words && i < 4; i++) {
    char c = ((const char *)words)[i];
    if (c < ' ' && c != '\n' && c != '\t' && c != '\r') return 0;
  }
  return words && strstr((const char *)words, ".version") ? strlen((const char *)words) : 0;
}

/* Return the device's code for PTX, which is kept; NULL if the driver refuses it. */
static void *finished(char *text, size_t bytes) {
  void *state, *code = NULL, *kept = NULL;
  size_t size = 0;
  if (cu.link_begin(0, NULL, NULL, &state)) return NULL;
  if (!cu.link_add(state, 1, text, bytes + 1, "traced", 0, NULL, NULL) && !cu.link_end(state, &code, &size) &&
      (kept = malloc(size)))
    memcpy(kept, code, size);
  cu.link_drop(state);
  return kept;
}

/* Return what to load in place of an image; its own is NULL for none. */
static answer answered(const void *image) {
  answer found = {NULL, 0};
  int wanted = trace_path && image && !stopped && !inside && !counted_out && many_modules < MODULES;
  u64 bytes = wanted ? image_bytes(&image) : 0;
  u32 head[3] = {TRACE_QUESTION, bytes, 0}, reply[2];
  int major = 0, minor = 0, was_inside = inside, to;
  void *context = NULL;
  if (!bytes || bytes > MOST_IMAGE || cu.current(&context) || !context) return found;
  inside = 1;
  int device = device_now();
  if (!cu.attribute(&major, 75, device) && !cu.attribute(&minor, 76, device)) head[2] = 10 * major + minor;
  if ((to = connected(trace_path, 600)) >= 0) {
    if (transfer(to, head, 12, 1) && transfer(to, (void *)image, bytes, 1) && transfer(to, reply, 8, 0) && reply[1]) {
      char *text = malloc(reply[1] + 1ul);
      if (text && transfer(to, text, reply[1], 0)) {
        text[reply[1]] = 0, found.number = reply[0];
        found.image = finished(text, reply[1]);
        if (!found.image) record((slot){.kind = TRACED, .d = reply[0], .e = 1});
      }
      free(text);
    }
    close(to);
  }
  inside = was_inside;
  return found;
}

/* Note how the driver took what was loaded in place of an image. */
static int loaded(void **handle, int is_library, answer a, int status) {
  void *context = NULL;
  record((slot){.kind = TRACED, .d = a.number, .e = status});
  if (status) return status;
  cu.current(&context);
  pthread_mutex_lock(&counting);
  modules[many_modules].handle = *handle, modules[many_modules].context = is_library ? NULL : context;
  __atomic_store_n(&many_modules, many_modules + 1, __ATOMIC_RELEASE);
  loads++;
  pthread_mutex_unlock(&counting);
  int was_inside = inside;
  inside = 1;
  count_here();
  inside = was_inside;
  return 0;
}

/* Return a file's content, NULL if it cannot be read. */
static void *content(const char *path) {
  FILE *from = path && trace_path ? fopen(path, "rbe") : NULL;
  char *data = NULL;
  long size = from && !fseek(from, 0, SEEK_END) ? ftell(from) : 0;
  if (size > 0 && size < MOST_IMAGE && (data = calloc(1, size + 8))) rewind(from), size = fread(data, 1, size, from);
  if (from) fclose(from);
  return data;
}

/* ---- the driver's functions, as programs find them ---- */

typedef void *finder(void *, const char *);
static finder *linker(void) { /* the linker's own `dlsym` */
  static finder *found;
  static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
  for (int i = 0; !found && i < 3; i++) found = (finder *)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
  return found;
}

enum { GET, GET_2, LOAD_DATA, LOAD_DATA_EX, LOAD_FAT, LOAD_FILE, LIBRARY_DATA, LIBRARY_FILE, EXCHANGED };
static const char *const exchanged[] = {"cuGetProcAddress", "cuGetProcAddress_v2", "cuModuleLoadData", "cuModuleLoadDataEx",
  "cuModuleLoadFatBinary", "cuModuleLoad", "cuLibraryLoadData", "cuLibraryLoadFromFile"};

static void *original(int which) {
  static void *found[EXCHANGED], *driver;
  if (!driver) driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!found[which] && driver) found[which] = linker()(driver, exchanged[which]);
  return found[which];
}

#define ABSENT 500 /* the driver's status for a function that it lacks */
#define PASS(which, type, ...) (original(which) ? ((int (*) type)original(which))(__VA_ARGS__) : ABSENT)
typedef const void *image;

static int module_instead(void **to, image of) {
  answer a = answered(of);
  return a.image && !loaded(to, 0, a, cu.load(to, a.image));
}

int cuModuleLoadData(void **to, image of) {
  return module_instead(to, of) ? 0 : PASS(LOAD_DATA, (void **, image), to, of);
}

int cuModuleLoadFatBinary(void **to, image of) {
  return module_instead(to, of) ? 0 : PASS(LOAD_FAT, (void **, image), to, of);
}

int cuModuleLoadDataEx(void **to, image of, u32 many, int *options, void **values) {
  if (module_instead(to, of)) return 0;
  return PASS(LOAD_DATA_EX, (void **, image, u32, int *, void **), to, of, many, options, values);
}

int cuModuleLoad(void **to, const char *path) {
  void *data = content(path);
  int done = data && module_instead(to, data);
  free(data);
  return done ? 0 : PASS(LOAD_FILE, (void **, const char *), to, path);
}

typedef int load(void **, image, int *, void **, u32, int *, void **, u32);

int cuLibraryLoadData(void **to, image of, int *jit, void **jit_values, u32 many_jit, int *options, void **values,
                      u32 many) {
  load *plain = (load *)original(LIBRARY_DATA);
  answer a = answered(of);
  if (a.image && plain && !loaded(to, 1, a, plain(to, a.image, NULL, NULL, 0, options, values, many))) return 0;
  return plain ? plain(to, of, jit, jit_values, many_jit, options, values, many) : ABSENT;
}

int cuLibraryLoadFromFile(void **to, const char *path, int *jit, void **jit_values, u32 many_jit, int *options,
                          void **values, u32 many) {
  load *plain = (load *)original(LIBRARY_DATA), *from_file = (load *)original(LIBRARY_FILE);
  void *data = content(path);
  answer a = answered(data);
  free(data);
  if (a.image && plain && !loaded(to, 1, a, plain(to, a.image, NULL, NULL, 0, options, values, many))) return 0;
  return from_file ? from_file(to, path, jit, jit_values, many_jit, options, values, many) : ABSENT;
}

static void *exchange(const char *name);

/* Exchange what the driver says that a function is; from CUDA 12 on, `cuGetProcAddress` means its second version. */
static int exchanged_address(const char *name, void **function, int version, int status) {
  int second = name && !strcmp(name, exchanged[GET]) && version >= 12000;
  void *ours = status || !name || !function || !*function ? NULL : exchange(second ? exchanged[GET_2] : name);
  if (ours) *function = ours;
  return status;
}

int cuGetProcAddress(const char *name, void **function, int version, u64 flags) {
  int status = PASS(GET, (const char *, void **, int, u64), name, function, version, flags);
  return exchanged_address(name, function, version, status);
}

int cuGetProcAddress_v2(const char *name, void **function, int version, u64 flags, int *result) {
  int status = PASS(GET_2, (const char *, void **, int, u64, int *), name, function, version, flags, result);
  return exchanged_address(name, function, version, status);
}

static void *exchange(const char *name) {
  static void *const ours[] = {cuGetProcAddress, cuGetProcAddress_v2, cuModuleLoadData, cuModuleLoadDataEx,
                               cuModuleLoadFatBinary, cuModuleLoad, cuLibraryLoadData, cuLibraryLoadFromFile};
  for (int i = 0; i < EXCHANGED; i++)
    if (!strcmp(name, exchanged[i])) return original(i) ? ours[i] : NULL;
  return NULL;
}

/* All other names are left to the linker by a jump, with the caller's address to return to: RTLD_NEXT depends on it. */
void *dlsym(void *restrict library, const char *restrict name) {
  void *ours = name[0] == 'c' && name[1] == 'u' ? exchange(name) : NULL;
  return ours ? ours : linker()(library, name);
}

/* ---- beginning ---- */

static void prepare_tracing(void) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  const char *path = getenv("LOUVAIN_UM_ATTACH_TRACE");
  struct { void *to; const char *name; } wanted[] = {
    {&cu.current, "cuCtxGetCurrent"}, {&cu.make_current, "cuCtxSetCurrent"}, {&cu.synchronize, "cuCtxSynchronize"},
    {&cu.alloc, "cuMemAlloc_v2"}, {&cu.set, "cuMemsetD8_v2"}, {&cu.up, "cuMemcpyHtoD_v2"}, {&cu.down, "cuMemcpyDtoH_v2"},
    {&cu.load, "cuModuleLoadData"}, {&cu.unload, "cuModuleUnload"}, {&cu.function, "cuModuleGetFunction"},
    {&cu.module_global, "cuModuleGetGlobal_v2"}, {&cu.launch, "cuLaunchKernel"}, {&cu.attribute, "cuDeviceGetAttribute"},
    {&cu.link_begin, "cuLinkCreate_v2"}, {&cu.link_add, "cuLinkAddData_v2"}, {&cu.link_end, "cuLinkComplete"},
    {&cu.link_drop, "cuLinkDestroy"}, {&cu.library_global, "cuLibraryGetGlobal"},
    {&cu.capture_mode, "cuThreadExchangeStreamCaptureMode"},
  };
  int missing = !driver || !path;
  for (int i = 0; !missing && i < (int)(sizeof wanted / sizeof *wanted); i++) {
    void *found = linker()(driver, wanted[i].name);
    memcpy(wanted[i].to, &found, sizeof found);
    missing = !found;
  }
  if (!missing) trace_path = path ? strdup(path) : NULL; /* the program may change its variables */
}
