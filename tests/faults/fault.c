/* Makes the k-th call of a kind fail, as the system does when it is out of something.

   Loaded before the C library (LD_PRELOAD), it serves the whole process: Python, NumPy and Arrow.
   `fault_arm(kind, k, stay, least)` starts counting from 0; with `stay` all later calls fail too. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

enum { NONE, ALLOCATION, READ, WRITE, FLUSH, RENAME, THREAD };

static int kind = NONE, stays;
static long left, fired;
static size_t least_bytes;

void fault_arm(int which, long k, int stay, size_t least) {
  left = k, stays = stay, fired = 0, least_bytes = least;
  __atomic_store_n(&kind, which, __ATOMIC_SEQ_CST);
}

/* Stop; return how many calls failed. */
long fault_disarm(void) {
  __atomic_store_n(&kind, NONE, __ATOMIC_SEQ_CST);
  return fired;
}

/* Calls counted since `fault_arm`, given its k. */
long fault_seen(long k) { return k - left; }

static int fails(int which, int error) {
  if (__atomic_load_n(&kind, __ATOMIC_SEQ_CST) != which) return 0;
  long now = __atomic_fetch_sub(&left, 1, __ATOMIC_SEQ_CST);
  if (now > 0 || (now < 0 && !stays)) return 0;
  __atomic_fetch_add(&fired, 1, __ATOMIC_SEQ_CST);
  errno = error;
  return 1;
}

static int no_memory(size_t size) { return size >= least_bytes && fails(ALLOCATION, ENOMEM); }

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

void *malloc(size_t size) { return no_memory(size) ? NULL : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return no_memory(n * size) ? NULL : __libc_calloc(n, size); }
void *realloc(void *old, size_t size) { return no_memory(size) ? NULL : __libc_realloc(old, size); }

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset) {
  return no_memory(size) ? MAP_FAILED : NEXT(mmap)(at, size, protection, flags, file, offset);
}
void *mmap64(void *at, size_t size, int protection, int flags, int file, off64_t offset) {
  return no_memory(size) ? MAP_FAILED : NEXT(mmap64)(at, size, protection, flags, file, offset);
}

ssize_t read(int file, void *to, size_t size) {
  return fails(READ, EIO) ? -1 : NEXT(read)(file, to, size);
}
ssize_t pread64(int file, void *to, size_t size, off64_t at) {
  return fails(READ, EIO) ? -1 : NEXT(pread64)(file, to, size, at);
}
ssize_t write(int file, const void *from, size_t size) {
  return file > 2 && fails(WRITE, ENOSPC) ? -1 : NEXT(write)(file, from, size);
}
int fsync(int file) { return fails(FLUSH, EIO) ? -1 : NEXT(fsync)(file); }
int rename(const char *from, const char *to) {
  return fails(RENAME, EACCES) ? -1 : NEXT(rename)(from, to);
}
int link(const char *from, const char *to) {
  return fails(RENAME, EIO) ? -1 : NEXT(link)(from, to);
}
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*work)(void *), void *with) {
  return fails(THREAD, EAGAIN) ? EAGAIN : NEXT(pthread_create)(thread, how, work, with);
}
