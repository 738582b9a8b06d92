/* Records what a CUDA program allocates, copies and launches, and places its managed memory.

   The driver loads this library into the program (CUDA_INJECTION64_PATH). It asks CUPTI for callbacks of the driver's
   interface, which runtimes linked statically call as well, and appends records to one file per process. A record is a
   slot of 64 bytes, followed by slots of 56 bytes of data each. Its kind is written last: a program that is killed
   leaves whole records. A forked child records nothing. Whatever fails here, the program goes on; it is ended in one
   case alone: managed memory beyond what the device has free. The lock is never held while the driver or CUPTI is
   called, whose own locks may be held by a thread that waits for ours.

   Declarations of the driver and of CUPTI are those that this file needs; arguments of a driver call are read as
   words of eight bytes, which is how CUPTI lays them out. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t u64;
typedef uint32_t u32;

/* What `records.py` reads: kinds of records, and of memory. */
enum { PROCESS = 1, STACK, ALLOC, FREE, COPY, SET, ADVISE, PREFETCH, NAME, LAUNCH, COUNTER, KERNEL, NOTE, REFUSED,
       PLACED, STREAM, END, COUNTED, TRACED, COUNTS, TAKEN, MORE = 255 };
enum { MANAGED, DEVICE, PINNED, POOL };

typedef struct { uint16_t kind, more; u32 thread; u64 time, a, b, c; u32 d, e, f, g; u64 h; } slot;
typedef struct { uint16_t kind, unused; u32 unused2; char data[56]; } more_slot;

#define CHUNK (4ul << 20) /* bytes by which the file grows */
#define ENTRIES (1u << 16) /* of the tables of call stacks, of names, and of ranges that launches are compared with */
#define DEPTH 32
#define DEVICES 16
#define ARGUMENTS 28
#define MARGIN (64ul << 20) /* free bytes left to the driver */
#define LARGE (64ul << 10) /* launches are compared with allocations from this size on */
#define FIRST_DECISION 4 /* launches before the policy is decided in the run, then four times as many, up to the last */
#define LAST_DECISION 256
#define NOT_READY 600 /* the driver's status of a stream that has work */
#define PATIENCE 2000000000ull /* nanoseconds that a decision waits for the kernels before it, if it is late */

/* ---- the file ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int inside; /* this thread is in a callback: calls made here are not recorded */
/* A descriptor of ours, and what is open under it: a program may close all descriptors, and use their numbers again. */
typedef struct { int number; dev_t device; ino_t inode; } descriptor;
static descriptor file = {-1, 0, 0};
static int stopped = 1;
static char base[4096]; /* path of the process's files, without their endings */
static char *chunk, *first;
static u64 chunk_at, used, limit;
static int (*get_timestamp)(u64 *);

#define LEAST_NUMBER 64 /* of descriptors: lower ones are those that a program expects to get */

static descriptor kept(int number) {
  struct stat found = {0};
  int higher = number < 0 ? -1 : fcntl(number, F_DUPFD_CLOEXEC, LEAST_NUMBER);
  if (higher >= 0) close(number), number = higher;
  if (number >= 0 && fstat(number, &found)) number = -1;
  return (descriptor){number, found.st_dev, found.st_ino};
}

static int is_ours(descriptor d) {
  struct stat found;
  return d.number >= 0 && fstat(d.number, &found) == 0 && found.st_dev == d.device && found.st_ino == d.inode;
}

static descriptor opened(const char *ending, int flags) {
  char path[sizeof base + 16];
  snprintf(path, sizeof path, "%s%s", base, ending);
  return kept(open(path, flags | O_CLOEXEC, 0600));
}

static u64 now(void) {
  u64 t = 0;
  struct timespec s;
  if (get_timestamp && get_timestamp(&t) == 0) return t;
  clock_gettime(CLOCK_REALTIME, &s);
  return s.tv_sec * 1000000000ull + s.tv_nsec;
}

/* Return zeroed room for some slots that follow each other, NULL if there is none. The lock is held. */
static slot *reserve(unsigned slots) {
  u64 bytes = slots * sizeof(slot);
  if (stopped || bytes > CHUNK) return NULL;
  if (!chunk || used + bytes > chunk_at + CHUNK) {
    u64 at = used & ~4095ull; /* a page that the last chunk has begun */
    char *next = MAP_FAILED;
    if (!is_ours(file)) file = opened(".record", O_RDWR);
    if (used + bytes <= limit && posix_fallocate(file.number, at, CHUNK) == 0)
      next = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file.number, at);
    if (next == MAP_FAILED) {
      if (first) ((slot *)first)->h++; /* the process's record counts what found no room */
      return NULL;
    }
    if (chunk && chunk != first) munmap(chunk, CHUNK);
    chunk = next, chunk_at = at;
    if (!first) first = chunk;
  }
  slot *found = (slot *)(chunk + (used - chunk_at));
  used += bytes;
  return found;
}

/* Append a record with some bytes of data. The lock is held. */
static void append(slot head, const void *data, size_t bytes) {
  static __thread u32 thread;
  unsigned more = (bytes + 55) / 56;
  slot *to = more < 60000 ? reserve(1 + more) : NULL;
  if (!to) return;
  int kind = head.kind;
  head.kind = 0, head.more = more;
  if (!head.time) head.time = now();
  if (!thread) thread = syscall(SYS_gettid);
  head.thread = thread;
  for (unsigned i = 0; i < more; i++) {
    more_slot *part = (more_slot *)(to + 1 + i);
    size_t left = bytes - 56ul * i;
    memcpy(part->data, (const char *)data + 56ul * i, left < 56 ? left : 56);
    part->kind = MORE;
  }
  *to = head;
  __atomic_store_n(&to->kind, (uint16_t)kind, __ATOMIC_RELEASE);
}

static void record(slot head) {
  pthread_mutex_lock(&lock);
  append(head, NULL, 0);
  pthread_mutex_unlock(&lock);
}

static void append_text(int kind, u32 number, const char *text) {
  slot head = {.kind = kind, .d = number, .e = strlen(text)};
  append(head, text, strlen(text));
}

static void in_child(void) { /* the file belongs to the parent */
  stopped = 1, file.number = -1;
  pthread_mutex_init(&lock, NULL);
}

/* ---- the driver and CUPTI ---- */

typedef struct { int site; const char *function; const void *arguments; void *result; const char *symbol;
                 void *context; u32 context_number; u64 *mine; u32 correlation; } call_data;
typedef struct { u32 scope, kind, device, enable; } counter_choice;

static int (*subscribe)(void **, void (*)(void *, int, u32, const call_data *), void *);
static int (*enable_callback)(u32, void *, int, u32);
static int (*callback_name)(int, u32, const char **);
static int (*register_buffers)(void (*)(char **, size_t *, size_t *), void (*)(void *, u32, char *, size_t, size_t));
static int (*next_record)(char *, size_t, char **);
static int (*dropped_records)(void *, u32, size_t *);
static int (*enable_activity)(int);
static int (*configure_counters)(counter_choice *, u32);
static int (*flush_all)(u32);

static int (*memory_info)(size_t *, size_t *);
static int (*current_device)(int *);
static int (*device_name)(char *, int, int);
static int (*advise)(u64, size_t, int, int);
static int (*prefetch)(u64, size_t, int, void *);
static int (*is_capturing)(void *, int *);
static int (*is_done)(void *);
static int (*capture_mode)(int *);
static int (*parameter)(void *, size_t, size_t *, size_t *);
static int (*kernel_parameter)(void *, size_t, size_t *, size_t *);

static u64 hash_of(const void *data, size_t bytes) {
  u64 h = 1469598103934665603ull;
  for (size_t i = 0; i < bytes; i++) h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211ull;
  return h ? h : 1;
}

/* ---- call stacks, and what a policy says of each ---- */

typedef struct { int slot, kind; double share; } rule; /* slot −1: all others */
typedef struct node node;
typedef struct { u64 hash; u32 number, next_slot, version; node *freed; rule *rules; int many_rules; } stack;
struct node { u64 address, bytes; stack *stack; node *next; u32 slot; uint8_t kind, device, pending, placed; float share; u32 counted; };

static stack stacks[ENTRIES], unknown_stack;
static u32 many_stacks, version; /* of the policy; a stack keeps that of its rules */
static descriptor policy_socket = {-1, 0, 0};

enum { LEAVE, TO_DEVICE, ON_HOST, READ_MOSTLY, SPLIT };

static int transfer(int to, void *data, size_t bytes, int sends) {
  for (size_t done = 0; done < bytes;) {
    ssize_t n = sends ? send(to, (char *)data + done, bytes - done, MSG_NOSIGNAL)
                      : recv(to, (char *)data + done, bytes - done, 0);
    if (n <= 0) return 0;
    done += n;
  }
  return 1;
}

/* Return a connection to the command that started the program, with its patience for an answer; negative for none. */
static int connected(const char *path, int seconds) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  struct timeval patience = {seconds, 0};
  int made = path && strlen(path) < sizeof to.sun_path ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
  if (made < 0) return -1;
  strcpy(to.sun_path, path);
  setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (connect(made, (struct sockaddr *)&to, sizeof to) == 0) return made;
  close(made);
  return -1;
}

static void end_policy(void) { /* the lock is held */
  if (is_ours(policy_socket)) close(policy_socket.number);
  policy_socket.number = -1;
  append_text(NOTE, 0, "the policy's answers ended early; later allocations were left as they are");
}

/* Ask the command that started the program where allocations of a call stack go; the text of a known one is empty. The
   lock is held. */
static void ask(stack *s, const char *text) {
  u32 head[2] = {s->number, strlen(text)}, bytes = 0;
  s->version = version;
  int to = policy_socket.number;
  if (to < 0 || !s->number) return;
  s->many_rules = 0;
  if (is_ours(policy_socket) && transfer(to, head, 8, 1) && transfer(to, (void *)text, head[1], 1) && transfer(to, &bytes, 4, 0) && bytes < 1 << 20) {
    char *answer = calloc(1, bytes + 1), *line = answer, *rest;
    if (answer && transfer(to, answer, bytes, 0)) {
      while ((rest = strchr(line, '\n'))) {
        rule r;
        rule *grown = realloc(s->rules, (s->many_rules + 1) * sizeof r);
        if (!grown) break;
        s->rules = grown;
        if (sscanf(line, "%d %d %lf", &r.slot, &r.kind, &r.share) == 3) s->rules[s->many_rules++] = r;
        line = rest + 1;
      }
      free(answer);
      return;
    }
    free(answer);
  }
  end_policy();
}

/* Frames of Python code, "@file:line" each, the innermost first; those of installed packages are left out. The lock is
   not held: the interpreter's lock is taken here, and whoever has that may be waiting for ours. */
static size_t python_frames(char *to, size_t room) {
  static int (*initialized)(void), (*ensure)(void), (*line_of)(void *);
  static void (*release)(int), (*drop)(void *);
  static void *(*frame_now)(void), *(*code_of)(void *), *(*back)(void *), *(*attribute)(void *, const char *);
  static const char *(*text_of)(void *);
  if (!initialized) {
    ensure = dlsym(RTLD_DEFAULT, "PyGILState_Ensure"), release = dlsym(RTLD_DEFAULT, "PyGILState_Release");
    frame_now = dlsym(RTLD_DEFAULT, "PyEval_GetFrame"), code_of = dlsym(RTLD_DEFAULT, "PyFrame_GetCode");
    back = dlsym(RTLD_DEFAULT, "PyFrame_GetBack"), line_of = dlsym(RTLD_DEFAULT, "PyFrame_GetLineNumber");
    attribute = dlsym(RTLD_DEFAULT, "PyObject_GetAttrString"), text_of = dlsym(RTLD_DEFAULT, "PyUnicode_AsUTF8");
    drop = dlsym(RTLD_DEFAULT, "Py_DecRef"), initialized = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
  }
  if (!initialized || !ensure || !release || !frame_now || !code_of || !back || !line_of || !attribute || !text_of ||
      !drop || !initialized())
    return 0;
  size_t n = 0, kept = 0;
  int state = ensure();
  void *frame = frame_now();
  for (int first_frame = 1; frame && kept < 4; first_frame = 0) {
    void *code = code_of(frame), *name = code ? attribute(code, "co_filename") : NULL;
    const char *path = name ? text_of(name) : NULL;
    if (path && !strstr(path, "site-packages") && !strstr(path, "dist-packages") && path[0] != '<') {
      int wrote = snprintf(to + n, room - n, "@%s:%d\n", path, line_of(frame));
      if (wrote > 0 && n + wrote < room) n += wrote, kept++;
    }
    if (name) drop(name);
    if (code) drop(code);
    void *outer = back(frame);
    if (!first_frame) drop(frame); /* the innermost is borrowed */
    frame = outer;
  }
  if (frame && kept == 4) drop(frame);
  release(state);
  to[n] = 0;
  return n;
}

/* Frames of native code, "path+0xoffset" each; those of CUDA's libraries and of this one are left out. */
static void native_frames(void **pcs, int depth, char *to, size_t room) {
  Dl_info info, mine = {0};
  size_t n = 0;
  dladdr((void *)native_frames, &mine);
  for (int i = 0; i < depth; i++) {
    struct link_map *map = NULL;
    if (!dladdr1(pcs[i], &info, (void **)&map, RTLD_DL_LINKMAP) || !map || !info.dli_fname || info.dli_fbase == mine.dli_fbase) continue;
    const char *name = strrchr(info.dli_fname, '/');
    name = name ? name + 1 : info.dli_fname;
    if (!strncmp(name, "libcuda", 7) || !strncmp(name, "libcupti", 8) || !strncmp(name, "libc.so", 7)) continue;
    char whole[4096]; /* the program itself may be known by a relative name */
    ssize_t length = 0;
    if (!realpath(info.dli_fname, whole) && (length = readlink("/proc/self/exe", whole, sizeof whole - 1)) > 0)
      whole[length] = 0;
    int wrote = snprintf(to + n, room - n, "%s+0x%lx %s\n", length < 0 ? info.dli_fname : whole,
                         (unsigned long)pcs[i] - map->l_addr - 1, info.dli_sname ? info.dli_sname : "");
    if (wrote <= 0 || n + wrote >= room) break;
    n += wrote;
  }
  to[n] = 0;
}

static stack *find_stack(u64 hash, int *is_new) {
  for (u32 at = hash % ENTRIES;; at = (at + 1) % ENTRIES) {
    *is_new = !stacks[at].hash;
    if (*is_new || stacks[at].hash == hash) return stacks + at;
  }
}

/* Return the entry of the caller's call stack, with the lock held. */
static stack *locked_stack(void) {
  char text[8192];
  void *pcs[DEPTH];
  int depth = 0, is_new;
  size_t bytes = python_frames(text, sizeof text);
  if (!bytes) depth = backtrace(pcs, DEPTH);
  u64 hash = bytes ? hash_of(text, bytes) : hash_of(pcs, depth * sizeof *pcs);
  pthread_mutex_lock(&lock);
  stack *found = find_stack(hash, &is_new);
  if (!is_new && found->version != version) ask(found, "");
  if (!is_new) return found;
  if (many_stacks > ENTRIES / 2) return &unknown_stack;
  pthread_mutex_unlock(&lock); /* the linker's lock comes before ours */
  if (!bytes) native_frames(pcs, depth, text, sizeof text);
  pthread_mutex_lock(&lock);
  found = find_stack(hash, &is_new);
  if (is_new) {
    found->hash = hash, found->number = ++many_stacks;
    append_text(STACK, found->number, text);
    ask(found, text);
  }
  return found;
}

/* ---- allocations that are alive ---- */

static node **alive; /* by hash of the address */
static u64 alive_room, many_alive;
static node *ranges[ENTRIES]; /* large ones, by address */
static u32 many_ranges, ranges_version = 1;
static struct { u64 free, managed, plain, coming; } devices[DEVICES]; /* `coming`: calls that have not returned */
static int guarded;
static u64 pending; /* allocations that are to be prefetched by the next launch that gets them */

static node **place_of(u64 address) {
  u64 at = (address * 0x9E3779B97F4A7C15ull >> 32) % alive_room;
  while (alive[at] && alive[at]->address != address) at = (at + 1) % alive_room;
  return alive + at;
}

static u32 range_after(u64 address) { /* the first range that begins beyond an address */
  u32 low = 0, high = many_ranges;
  while (low < high) {
    u32 middle = (low + high) / 2;
    if (ranges[middle]->address <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

static node *range_of(u64 address) {
  u32 at = range_after(address);
  return at && address < ranges[at - 1]->address + ranges[at - 1]->bytes ? ranges[at - 1] : NULL;
}

static void forget(u64 address) {
  if (!alive_room) return;
  node **at = place_of(address), *gone = *at;
  if (!gone) return;
  *at = NULL;
  for (u64 i = (at - alive + 1) % alive_room; alive[i]; i = (i + 1) % alive_room) { /* later ones move up */
    node *moved = alive[i];
    alive[i] = NULL;
    *place_of(moved->address) = moved;
  }
  many_alive--;
  u32 r = range_after(address);
  if (r && ranges[r - 1] == gone) {
    memmove(ranges + r - 1, ranges + r, (--many_ranges - (r - 1)) * sizeof *ranges);
    ranges_version++;
  }
  if (gone->kind == MANAGED) devices[gone->device].managed -= gone->bytes;
  else if (gone->kind != PINNED) devices[gone->device].plain -= gone->bytes;
  if (gone->pending) pending--;
  gone->next = gone->stack->freed, gone->stack->freed = gone;
}

/* Return a new entry; its slot is the lowest that the call stack has released, or its next. */
static node *remember(stack *s, int kind, u64 address, u64 bytes, int device) {
  if (2 * many_alive >= alive_room) {
    u64 old = alive_room;
    node **before = alive, **grown = calloc(old ? 2 * old : 4096, sizeof *grown);
    if (!grown) return NULL;
    alive = grown, alive_room = old ? 2 * old : 4096;
    for (u64 i = 0; i < old; i++)
      if (before[i]) *place_of(before[i]->address) = before[i];
    free(before);
  }
  forget(address); /* its release was not seen */
  node *made = s->freed;
  if (made) s->freed = made->next;
  else if ((made = calloc(1, sizeof *made))) made->slot = s->next_slot++;
  if (!made) return NULL;
  made->address = address, made->bytes = bytes, made->stack = s, made->kind = kind, made->device = device;
  made->pending = 0, made->placed = LEAVE, made->share = 1, made->counted = 0;
  *place_of(address) = made;
  many_alive++;
  if (bytes >= LARGE && many_ranges < ENTRIES) {
    u32 at = range_after(address);
    memmove(ranges + at + 1, ranges + at, (many_ranges++ - at) * sizeof *ranges);
    ranges[at] = made, ranges_version++;
  }
  if (kind == MANAGED) devices[device].managed += bytes;
  else if (kind != PINNED) devices[device].plain += bytes;
  return made;
}

static int device_now(void) {
  int device = 0;
  return current_device && current_device(&device) == 0 && device >= 0 && device < DEVICES ? device : 0;
}

/* End the program if managed memory could be more than the device has free: the driver would evict. */
static void refuse_beyond(int kind, u64 bytes) {
  int device = device_now();
  size_t there = 0, total = 0;
  pthread_mutex_lock(&lock);
  int is_known = devices[device].free > 0;
  pthread_mutex_unlock(&lock);
  if (!is_known && memory_info && memory_info(&there, &total) == 0) {
    char name[256] = "";
    if (device_name) device_name(name, sizeof name, device);
    pthread_mutex_lock(&lock);
    devices[device].free = there;
    slot head = {.kind = NOTE, .a = there, .b = total, .d = 1 + device, .e = strlen(name)};
    append(head, name, strlen(name));
    pthread_mutex_unlock(&lock);
  }
  pthread_mutex_lock(&lock);
  devices[device].coming += bytes;
  u64 managed = devices[device].managed + (kind == MANAGED ? bytes : 0);
  u64 need = devices[device].managed + devices[device].plain + devices[device].coming + MARGIN;
  int allowed = !guarded || !managed || !devices[device].free || need <= devices[device].free;
  pthread_mutex_unlock(&lock);
  if (allowed) return;
  stack *s = locked_stack();
  slot head = {.kind = REFUSED, .a = bytes, .b = devices[device].free, .c = need, .d = s->number};
  append(head, NULL, 0);
  pthread_mutex_unlock(&lock);
  fflush(NULL);
  _exit(1);
}

/* ---- placing ---- */

#define BLOCK (2ul << 20)
enum { SET_READ_MOSTLY = 1, UNSET_READ_MOSTLY, SET_PREFERRED, UNSET_PREFERRED, SET_ACCESSED_BY, UNSET_ACCESSED_BY,
       HOST = -1 };

static u64 cut(const node *n) { return (u64)(n->bytes * (double)n->share) / BLOCK * BLOCK; }

static int on_host(u64 address, u64 bytes, int device) {
  int status = bytes ? advise(address, bytes, SET_PREFERRED, HOST) : 0;
  return status || !bytes ? status : advise(address, bytes, SET_ACCESSED_BY, device);
}

/* Advise the driver about a managed allocation, before it is touched or when its rule changes. Return the bytes at its
   end that are to be on the host. */
static u64 place(node *n) {
  const rule *chosen = NULL;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < n->stack->many_rules; i++) {
    const rule *r = n->stack->rules + i;
    if (r->slot == (int)n->slot || (r->slot < 0 && !chosen)) chosen = r;
  }
  int kind = chosen && advise ? chosen->kind : LEAVE, before = n->placed, status = 0;
  float share = kind == SPLIT ? chosen->share : 1;
  int same = kind == before && share == n->share;
  u64 here = 0;
  if (!same) {
    n->placed = kind, n->share = share;
    if (kind == SPLIT || kind == TO_DEVICE) here = kind == SPLIT ? cut(n) : n->bytes;
    pending -= n->pending;
    n->pending = here && n->bytes >= LARGE; /* launches know no smaller ones */
    pending += n->pending;
  }
  pthread_mutex_unlock(&lock);
  if (same) return 0;
  if (before != LEAVE)
    for (int what = UNSET_READ_MOSTLY; what <= UNSET_ACCESSED_BY; what += 2) advise(n->address, n->bytes, what, n->device);
  if (kind == READ_MOSTLY) status = advise(n->address, n->bytes, SET_READ_MOSTLY, n->device);
  if (here) status = advise(n->address, here, SET_PREFERRED, n->device);
  u64 there = kind == ON_HOST || kind == SPLIT ? n->bytes - here : 0;
  if (!status && there) status = on_host(n->address + here, there, n->device);
  record((slot){.kind = PLACED, .a = n->address, .b = n->bytes, .d = kind, .e = status});
  return there;
}

static int captures(void *stream) {
  int status = 0;
  return is_capturing && (is_capturing(stream, &status) || status);
}

static void prefetched(u64 address, u64 bytes, int where, void *stream) {
  record((slot){.kind = PREFETCH, .a = address, .b = bytes, .d = where, .e = 1, .h = (u64)stream,
                .f = prefetch(address, bytes, where, stream)});
}

/* Prefetch the arrays at some addresses that were to come to the device; all of them, if there is no list. */
static void bring(const u64 *addresses, int many, void *stream) {
  if (!pending || !prefetch || captures(stream)) return;
  for (u32 i = 0; addresses ? i < (u32)many : i < many_ranges; i++) {
    u64 address = 0, bytes = 0;
    int device = 0;
    pthread_mutex_lock(&lock);
    node *n = addresses ? range_of(addresses[i] & ~(255ull << 56)) : i < many_ranges ? ranges[i] : NULL;
    if (n && n->pending) {
      n->pending = 0, pending--;
      address = n->address, bytes = n->share < 1 ? cut(n) : n->bytes, device = n->device;
    }
    pthread_mutex_unlock(&lock);
    if (bytes) prefetched(address, bytes, device, stream);
  }
}

/* ---- names of kernels ---- */

static struct { u64 hash; u32 number; } names[ENTRIES];
static u32 many_names;

static u32 name_number(const char *name) { /* the lock is held */
  if (!name || many_names > ENTRIES / 2) return 0;
  u64 hash = hash_of(name, strlen(name));
  u32 at = hash % ENTRIES;
  while (names[at].hash && names[at].hash != hash) at = (at + 1) % ENTRIES;
  if (!names[at].hash) {
    names[at].hash = hash, names[at].number = ++many_names;
    append_text(NAME, many_names, name);
  }
  return names[at].number;
}

/* What launches of a kernel need; kept by thread until a module is unloaded, whose functions' addresses are used again. */
typedef struct { void *function; const char *symbol; u32 number, unloads; int many; uint8_t words[64]; } kernel;
static u32 unloads;

static const kernel *kernel_of(void *function, const char *symbol) {
  static __thread kernel kernels[64];
  kernel *k = kernels + ((u64)function * 0x9E3779B97F4A7C15ull >> 58); /* six bits */
  u32 seen = __atomic_load_n(&unloads, __ATOMIC_ACQUIRE);
  if (k->function == function && k->symbol == symbol && k->unloads == seen) return k;
  *k = (kernel){.function = function, .symbol = symbol, .unloads = seen};
  for (size_t offset, bytes; k->many < 64; k->many++) {
    if (!(parameter && parameter(function, k->many, &offset, &bytes) == 0) &&
        !(kernel_parameter && kernel_parameter(function, k->many, &offset, &bytes) == 0)) break;
    k->words[k->many] = bytes / 8 < 4 * ARGUMENTS ? bytes / 8 : 4 * ARGUMENTS;
  }
  pthread_mutex_lock(&lock);
  k->number = name_number(symbol);
  pthread_mutex_unlock(&lock);
  return k;
}

#define CLOCK_KERNEL "louvain_um_now" /* `trace.c` launches it */

/* ---- activity records: unified-memory counters, times of kernels ---- */

enum { ACTIVITY_KERNEL = 10, ACTIVITY_COUNTER = 25 };
static int buffers;

static void give(char **buffer, size_t *bytes, size_t *most) {
  *most = 0, *bytes = 1 << 20;
  *buffer = __atomic_add_fetch(&buffers, 1, __ATOMIC_RELAXED) < 256 ? aligned_alloc(8, *bytes) : NULL;
  if (!*buffer) *bytes = 0;
}

static void take(void *context, u32 stream, char *buffer, size_t bytes, size_t valid) {
  (void)bytes;
  char *r = NULL;
  const char *name = NULL; /* all records of a kernel have the same */
  u32 number = 0;
  int ours = 0;
  size_t lost = 0;
  int was_inside = inside;
  inside = 1;
  int failed = dropped_records ? dropped_records(context, stream, &lost) : 1;
  while (buffer && next_record(buffer, valid, &r) == 0) {
    const u64 *w = (const u64 *)r;
    const u32 *v = (const u32 *)r;
    pthread_mutex_lock(&lock);
    if (v[0] == ACTIVITY_COUNTER) {
      slot head = {.kind = COUNTER, .time = w[2], .a = w[3], .b = w[4], .c = w[1], .d = v[1], .e = v[14], .f = v[10], .g = v[11]};
      append(head, NULL, 0);
    } else if (v[0] == ACTIVITY_KERNEL) {
      if (name != (const char *)w[13]) {
        name = (const char *)w[13], ours = name && !strcmp(name, CLOCK_KERNEL);
        number = ours ? 0 : name_number(name);
      }
      slot head = {.kind = KERNEL, .time = w[2], .a = w[3], .d = number, .e = v[23], .f = v[10]};
      if (!ours) append(head, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
  }
  pthread_mutex_lock(&lock);
  if (!failed && lost && first && !stopped) ((slot *)first)->h += lost;
  pthread_mutex_unlock(&lock);
  inside = was_inside;
  free(buffer);
  __atomic_sub_fetch(&buffers, 1, __ATOMIC_RELAXED);
}

static void start_activities(void) {
  counter_choice choice[8];
  int status = register_buffers(give, take);
  int device = device_now();
  for (int i = 0; i < 8; i++) choice[i] = (counter_choice){1, i + 1, device, 1};
  if (!status && (status = configure_counters(choice, 8))) {
    int worked = 0; /* one by one: older GPUs lack some */
    for (int i = 0; i < 8; i++) worked += configure_counters(choice + i, 1) == 0;
    if (worked) status = 0;
  }
  if (!status) status = enable_activity(ACTIVITY_COUNTER);
  int kernels = enable_activity(ACTIVITY_KERNEL);
  pthread_mutex_lock(&lock);
  slot head = {.kind = NOTE, .d = 100, .e = 0, .f = status, .g = kernels};
  append(head, NULL, 0);
  pthread_mutex_unlock(&lock);
}

static void flush(int forced) {
  static u64 last;
  u64 t = now();
  if (!flush_all || (!forced && t - last < 20000000)) return;
  last = t;
  flush_all(forced);
}

#include "trace.c"

/* ---- a policy decided in the run ---- */

static u64 many_launches, next_decision; /* 0: no decision is to come */
static u64 due_since;
static descriptor decision_socket = {-1, 0, 0};
static int awaited; /* the command decides, and the program goes on */
static int most_wait; /* milliseconds that a launch waits for the answer */

static void end_decisions(void) { /* the lock is held */
  if (is_ours(decision_socket)) close(decision_socket.number);
  decision_socket.number = -1, next_decision = 0, awaited = 0;
}

static int has_ended(void *stream) {
  int mode = 2; /* captures of this thread must not see the call */
  if (capture_mode) capture_mode(&mode);
  int found = !is_done || is_done(stream) != NOT_READY;
  if (capture_mode) capture_mode(&mode);
  return found;
}

/* Ask the command to decide from what was recorded until now, if the kernels before have ended or take too long. */
static void ask_for_decision(void *stream) {
  u32 question[2] = {UINT32_MAX, 0};
  if (!due_since) due_since = now();
  int is_late = now() - due_since > PATIENCE / 4;
  for (u64 begun = now(); !has_ended(stream) && now() - begun < PATIENCE; usleep(100))
    if (!is_late) return;
  flush(1);
  pthread_mutex_lock(&lock);
  if (!awaited && next_decision) {
    next_decision = next_decision < LAST_DECISION ? 4 * next_decision : 0, due_since = 0;
    awaited = is_ours(decision_socket) && transfer(decision_socket.number, question, 8, 1);
    if (!awaited) end_decisions();
  }
  pthread_mutex_unlock(&lock);
}

/* Place what is alive as the command has decided, once it has. */
static void take_decision(void *stream) {
  u32 answer = 0;
  struct pollfd ready = {decision_socket.number, POLLIN, 0};
  if (poll(&ready, 1, most_wait) <= 0) return;
  pthread_mutex_lock(&lock);
  if (!awaited || poll(&ready, 1, 0) <= 0) { /* another thread took the answer */
    pthread_mutex_unlock(&lock);
    return;
  }
  int taken = is_ours(decision_socket) && transfer(decision_socket.number, &answer, 4, 0);
  if (taken) {
    version++, awaited = 0;
    slot head = {.kind = TAKEN, .d = version};
    append(head, NULL, 0);
  } else end_decisions();
  u64 room = taken ? alive_room : 0;
  pthread_mutex_unlock(&lock);
  for (u64 i = 0; i < room; i++) {
    pthread_mutex_lock(&lock);
    node *n = i < alive_room && alive[i] && alive[i]->kind == MANAGED ? alive[i] : NULL;
    if (n && n->stack->version != version) ask(n->stack, "");
    pthread_mutex_unlock(&lock);
    u64 home = n ? place(n) : 0;
    if (home && prefetch) prefetched(n->address + n->bytes - home, home, HOST, stream);
  }
}

/* ---- calls of the driver ---- */

enum { DO_ALLOC = 1, DO_PITCH, DO_GIVEN, DO_FREE, DO_COPY, DO_SET, DO_ADVISE, DO_ADVISE2, DO_PREFETCH, DO_PREFETCH2,
       DO_LAUNCH, DO_LAUNCH_EX, DO_STREAM, DO_SYNC, DO_GRAPH, DO_UNLOAD };
enum { WITHOUT_BUFFER = 1, A_DEVICE = 1, A_CONTEXT }; /* a launch whose arguments come in no buffer; what ends */
static const struct { const char *name; int action, detail; } known[] = {
  {"cuMemAllocManaged", DO_ALLOC, MANAGED}, {"cuMemAlloc_v2", DO_ALLOC, DEVICE}, {"cuMemAllocPitch_v2", DO_PITCH, DEVICE},
  {"cuMemAllocAsync", DO_ALLOC, POOL}, {"cuMemAllocFromPoolAsync", DO_ALLOC, POOL}, {"cuMemHostAlloc", DO_ALLOC, PINNED},
  {"cuMemHostAlloc_v2", DO_ALLOC, PINNED}, {"cuMemAllocHost_v2", DO_ALLOC, PINNED},
  {"cuMemHostRegister", DO_GIVEN, PINNED}, {"cuMemHostRegister_v2", DO_GIVEN, PINNED}, {"cuMemMap", DO_GIVEN, DEVICE},
  {"cuMemFree_v2", DO_FREE, 0}, {"cuMemFreeHost", DO_FREE, 0}, {"cuMemFreeAsync", DO_FREE, 0},
  {"cuMemHostUnregister", DO_FREE, 0}, {"cuMemUnmap", DO_FREE, 0},
  {"cuMemcpyHtoD_v2", DO_COPY, 1}, {"cuMemcpyHtoDAsync_v2", DO_COPY, 1}, {"cuMemcpyDtoH_v2", DO_COPY, 2},
  {"cuMemcpyDtoHAsync_v2", DO_COPY, 2}, {"cuMemcpyDtoD_v2", DO_COPY, 3}, {"cuMemcpyDtoDAsync_v2", DO_COPY, 3},
  {"cuMemcpy", DO_COPY, 0}, {"cuMemcpyAsync", DO_COPY, 0},
  {"cuMemsetD8_v2", DO_SET, 1}, {"cuMemsetD16_v2", DO_SET, 2}, {"cuMemsetD32_v2", DO_SET, 4},
  {"cuMemsetD8Async", DO_SET, 1}, {"cuMemsetD16Async", DO_SET, 2}, {"cuMemsetD32Async", DO_SET, 4},
  {"cuMemAdvise", DO_ADVISE, 0}, {"cuMemAdvise_v2", DO_ADVISE2, 0},
  {"cuMemPrefetchAsync", DO_PREFETCH, 0}, {"cuMemPrefetchAsync_v2", DO_PREFETCH2, 0},
  {"cuLaunchKernel", DO_LAUNCH, 0}, {"cuLaunchCooperativeKernel", DO_LAUNCH, WITHOUT_BUFFER}, {"cuLaunchKernelEx", DO_LAUNCH_EX, 0},
  {"cuGraphLaunch", DO_GRAPH, 0}, {"cuStreamCreate", DO_STREAM, 0}, {"cuStreamCreateWithPriority", DO_STREAM, 0},
  {"cuStreamDestroy_v2", DO_STREAM, 1}, {"cuCtxSynchronize", DO_SYNC, 0}, {"cuStreamSynchronize", DO_SYNC, 0},
  {"cuEventSynchronize", DO_SYNC, 0}, {"cuCtxDestroy_v2", DO_SYNC, A_CONTEXT}, {"cuDevicePrimaryCtxRelease_v2", DO_SYNC, A_DEVICE},
  {"cuDevicePrimaryCtxReset_v2", DO_SYNC, A_DEVICE}, {"cuModuleUnload", DO_UNLOAD, 0}, {"cuLibraryUnload", DO_UNLOAD, 0},
};
#define KNOWN ((int)(sizeof known / sizeof *known))
#define CALLBACKS 4096
static uint8_t entry_of[CALLBACKS]; /* 1 + index into `known` */

enum { ENTER, EXIT };
enum { DRIVER = 1, RESOURCE = 3, CONTEXT_CREATED = 1 };

/* Record a launch and the arrays among its arguments, each by its address and the argument's number. */
static void launched(const u64 *p, int extended, int buffered, const call_data *call) {
  const u32 *grid = extended ? (const u32 *)p[0] : (const u32 *)(p + 1);
  if (!grid) return;
  void *function = (void *)p[extended ? 1 : 0], *stream = extended ? *(void **)(grid + 8) : (void *)p[5];
  void **values = (void **)p[extended ? 2 : 6];
  const u64 *extra = buffered ? (const u64 *)p[extended ? 3 : 7] : NULL;
  u64 words[4 * ARGUMENTS], found[ARGUMENTS];
  uint8_t numbers[4 * ARGUMENTS];
  const kernel *k = kernel_of(function, call->symbol);
  int read = 0, many = 0, seen = values && k->many;
  for (int i = 0; values && i < k->many; i++)
    for (int at = 0; values[i] && at < k->words[i] && read < 4 * ARGUMENTS; at++) {
      memcpy(words + read, (char *)values[i] + 8 * at, 8);
      numbers[read++] = i;
    }
  if (extra && extra[0] == 1) { /* arguments in one buffer: pointer, size */
    const char *buffer = (const char *)extra[1];
    size_t whole = extra[2] == 2 && extra[3] ? *(const size_t *)extra[3] : 0;
    seen = whole > 0;
    for (size_t at = 0; at + 8 <= whole && read < 4 * ARGUMENTS; at += 8) {
      memcpy(words + read, buffer + at, 8);
      numbers[read++] = 255;
    }
  }
  int capturing = (next_decision || awaited) && captures(stream);
  pthread_mutex_lock(&lock);
  for (int i = 0; i < read && many < ARGUMENTS; i++) {
    node *n = range_of(words[i]);
    if (n) found[many++] = n->address | (u64)numbers[i] << 56;
  }
  slot head = {.kind = LAUNCH, .a = (u64)grid[0] * grid[1] * grid[2], .b = (u64)grid[3] * grid[4] * grid[5],
               .d = k->number, .e = call->correlation, .f = many, .g = seen, .h = (u64)stream};
  append(head, found, many * 8);
  int due = ++many_launches >= next_decision && next_decision && !awaited && !capturing;
  pthread_mutex_unlock(&lock);
  if (due) ask_for_decision(stream);
  if (awaited && !capturing) take_decision(stream);
  if (trace_path && !captures(stream)) count_here();
  bring(seen ? found : NULL, many, stream);
}

static void allocated(int action, int kind, const u64 *p) {
  u64 address = action == DO_GIVEN ? p[0] : *(const u64 *)p[0];
  u64 bytes = action == DO_PITCH ? *(const u64 *)p[1] * p[3] : p[1];
  int device = device_now();
  stack *s = locked_stack();
  node *n = remember(s, kind, address, bytes, device);
  slot head = {.kind = ALLOC, .a = address, .b = bytes, .d = s->number, .e = n ? n->slot : 0, .f = kind, .g = device};
  append(head, NULL, 0);
  pthread_mutex_unlock(&lock);
  if (n && kind == MANAGED && n->stack->many_rules) place(n);
}

static void called(void *user, int domain, u32 number, const call_data *call) {
  (void)user;
  if (inside || stopped) return;
  if (domain == RESOURCE) {
    static int started;
    if (number == CONTEXT_CREATED && !__atomic_exchange_n(&started, 1, __ATOMIC_RELAXED)) {
      inside = 1;
      start_activities();
      inside = 0;
    }
    return;
  }
  if (domain != DRIVER || number >= CALLBACKS || !entry_of[number]) return;
  int action = known[entry_of[number] - 1].action, detail = known[entry_of[number] - 1].detail;
  const u64 *p = call->arguments;
  const int *words = (const int *)p;
  int done = call->site == EXIT, failed = done && call->result && *(const int *)call->result;
  if (!p) return;
  inside = 1;
  if (done && action <= DO_GIVEN && detail != PINNED) {
    int device = device_now();
    pthread_mutex_lock(&lock);
    devices[device].coming -= action == DO_PITCH ? p[2] * p[3] : p[1];
    pthread_mutex_unlock(&lock);
  }
  if (failed) action = 0;
  switch (action) {
    case DO_ALLOC: case DO_PITCH: case DO_GIVEN:
      if (done) allocated(action, detail, p);
      else if (detail != PINNED) refuse_beyond(detail, action == DO_PITCH ? p[2] * p[3] : p[1]);
      break;
    case DO_FREE:
      if (done) break;
      flush(0);
      pthread_mutex_lock(&lock);
      append((slot){.kind = FREE, .a = p[0]}, NULL, 0);
      forget(p[0]);
      pthread_mutex_unlock(&lock);
      break;
    case DO_COPY:
      if (done) record((slot){.kind = COPY, .a = p[0], .b = p[2], .c = p[1], .d = detail, .e = call->correlation});
      break;
    case DO_SET:
      if (done) record((slot){.kind = SET, .a = p[0], .b = p[2] * detail, .e = call->correlation});
      break;
    case DO_ADVISE: /* the location as the first version numbers it: −1 is the host */
      if (done) record((slot){.kind = ADVISE, .a = p[0], .b = p[1], .d = words[4], .e = words[5]});
      break;
    case DO_ADVISE2:
      if (done) record((slot){.kind = ADVISE, .a = p[0], .b = p[1], .d = words[4], .e = words[5] == 1 ? words[6] : HOST});
      break;
    case DO_PREFETCH:
      if (done) record((slot){.kind = PREFETCH, .a = p[0], .b = p[1], .d = words[4], .h = p[3]});
      break;
    case DO_PREFETCH2:
      if (done) record((slot){.kind = PREFETCH, .a = p[0], .b = p[1], .d = words[4] == 1 ? words[5] : HOST, .h = p[4]});
      break;
    case DO_LAUNCH: case DO_LAUNCH_EX:
      if (!done) launched(p, action == DO_LAUNCH_EX, detail != WITHOUT_BUFFER, call);
      break;
    case DO_GRAPH:
      if (!done) bring(NULL, 0, (void *)p[1]);
      if (!done && !captures((void *)p[1])) count_here();
      break;
    case DO_STREAM:
      if (done && !detail) record((slot){.kind = STREAM, .a = *(const u64 *)p[0], .d = 1});
      else if (!done && detail) record((slot){.kind = STREAM, .a = p[0], .d = 0});
      break;
    case DO_SYNC:
      if (done == !detail) flush(detail);
      if (detail && !done) end_counting(detail == A_CONTEXT ? (void *)p[0] : NULL);
      if (detail) __atomic_add_fetch(&unloads, 1, __ATOMIC_RELEASE);
      break;
    case DO_UNLOAD:
      if (!done) forget_module((void *)p[0]);
      __atomic_add_fetch(&unloads, 1, __ATOMIC_RELEASE);
      break;
  }
  inside = 0;
}

/* ---- beginning and end ---- */

static void at_end(void) {
  if (stopped) return;
  inside = 1;
  end_counting(NULL);
  flush(1);
  pthread_mutex_lock(&lock);
  append((slot){.kind = END}, NULL, 0);
  if (first) ((slot *)first)->g = 1; /* the process's record says that it ended, also where the file is full */
  pthread_mutex_unlock(&lock);
}

static void *function_of(void *library, const char *name) { return library ? linker()(library, name) : NULL; }

static int find_functions(void) {
  const char *path = getenv("LOUVAIN_UM_ATTACH_CUPTI");
  void *cupti = path ? dlopen(path, RTLD_NOW) : NULL, *driver = dlopen("libcuda.so.1", RTLD_NOW);
  subscribe = function_of(cupti, "cuptiSubscribe"), enable_callback = function_of(cupti, "cuptiEnableCallback");
  callback_name = function_of(cupti, "cuptiGetCallbackName"), get_timestamp = function_of(cupti, "cuptiGetTimestamp");
  register_buffers = function_of(cupti, "cuptiActivityRegisterCallbacks");
  next_record = function_of(cupti, "cuptiActivityGetNextRecord");
  dropped_records = function_of(cupti, "cuptiActivityGetNumDroppedRecords");
  enable_activity = function_of(cupti, "cuptiActivityEnable"), flush_all = function_of(cupti, "cuptiActivityFlushAll");
  configure_counters = function_of(cupti, "cuptiActivityConfigureUnifiedMemoryCounter");
  memory_info = function_of(driver, "cuMemGetInfo_v2"), current_device = function_of(driver, "cuCtxGetDevice");
  device_name = function_of(driver, "cuDeviceGetName"), advise = function_of(driver, "cuMemAdvise");
  prefetch = function_of(driver, "cuMemPrefetchAsync"), is_capturing = function_of(driver, "cuStreamIsCapturing");
  is_done = function_of(driver, "cuStreamQuery");
  capture_mode = function_of(driver, "cuThreadExchangeStreamCaptureMode");
  parameter = function_of(driver, "cuFuncGetParamInfo"), kernel_parameter = function_of(driver, "cuKernelGetParamInfo");
  return subscribe && enable_callback && callback_name && register_buffers && next_record && enable_activity &&
         configure_counters && flush_all;
}

static void connect_policy(void) {
  const char *path = getenv("LOUVAIN_UM_ATTACH_POLICY"), *wait = getenv("LOUVAIN_UM_ATTACH_WAIT");
  policy_socket = kept(connected(path, 10));
  if (policy_socket.number < 0 || !getenv("LOUVAIN_UM_ATTACH_DECIDES")) return;
  decision_socket = kept(connected(path, 10));
  next_decision = decision_socket.number < 0 ? 0 : FIRST_DECISION;
  most_wait = wait ? atoi(wait) : 0;
}

__attribute__((visibility("default"))) int InitializeInjection(void) {
  const char *folder = getenv("LOUVAIN_UM_ATTACH"), *most = getenv("LOUVAIN_UM_ATTACH_LIMIT");
  void *pcs[4], *subscriber = NULL;
  if (!folder || file.number >= 0) return 1;
  inside = 1;
  for (int before = 0; before < 100 && file.number < 0; before++) { /* programs that the process was before `exec` */
    snprintf(base, sizeof base, "%s/%d-%02d", folder, (int)getpid(), before);
    file = opened(".record", O_RDWR | O_CREAT | O_EXCL);
  }
  limit = most ? strtoull(most, NULL, 10) : 512ull << 20;
  stopped = file.number < 0;
  backtrace(pcs, 4); /* its first call loads a library */
  int found = find_functions();
  pthread_mutex_lock(&lock);
  append((slot){.kind = PROCESS, .a = 0x31484341545441ull, .b = getpid()}, NULL, 0);
  pthread_mutex_unlock(&lock);
  guarded = !getenv("LOUVAIN_UM_ATTACH_UNGUARDED");
  pthread_atfork(NULL, NULL, in_child);
  connect_policy();
  int status = found ? subscribe(&subscriber, called, NULL) : 1;
  for (u32 number = 1; !status && number < CALLBACKS; number++) {
    const char *name = NULL;
    if (callback_name(DRIVER, number, &name) || !name) continue;
    size_t length = strlen(name);
    if (length > 5 && (!strcmp(name + length - 5, "_ptsz") || !strcmp(name + length - 5, "_ptds"))) length -= 5;
    for (int k = 0; k < KNOWN; k++)
      if (strlen(known[k].name) == length && !strncmp(known[k].name, name, length) &&
          enable_callback(1, subscriber, DRIVER, number) == 0)
        entry_of[number] = 1 + k;
  }
  if (!status) enable_callback(1, subscriber, RESOURCE, CONTEXT_CREATED);
  if (!status) prepare_tracing();
  pthread_mutex_lock(&lock);
  append((slot){.kind = NOTE, .d = 101, .f = status}, NULL, 0);
  pthread_mutex_unlock(&lock);
  atexit(at_end);
  inside = 0;
  return 1;
}
