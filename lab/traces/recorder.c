/* recorder.c: records each allocation of a program, on glibc's malloc.
 *
 *   TRACE_FOLDER=folder LD_PRELOAD=recorder.so program     one file for each process: folder/<name>-<process>.trace
 *
 * The file is a sparse mapping, so what was written survives however the process ends. A forked child begins a file of its own; what it
 * inherited is unknown there. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "traces/event.h"

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

#define ROOM ((uint64_t)1 << 28) /* events: 4 GiB */

static struct header *_Atomic trace; /* NULL: not begun, or nothing can be recorded */
static atomic_bool is_begun;
static atomic_uint thread_count;
static _Thread_local unsigned thread_id __attribute__((tls_model("initial-exec")));
static pthread_key_t end_key;

static void record(enum operation operation, const void *block, size_t size) {
  struct header *header = atomic_load_explicit(&trace, memory_order_acquire);
  if (!header) return;
  if (!thread_id) {
    thread_id = atomic_fetch_add(&thread_count, 1) + 1;
    pthread_setspecific(end_key, header); /* may allocate: the thread has its number by then */
  }
  uint64_t index = atomic_fetch_add(&header->count, 1);
  if (index >= ROOM) return;
  ((struct event *)(header + 1))[index] =
      (struct event){(uintptr_t)block, size > UINT32_MAX ? UINT32_MAX : (uint32_t)size,
                     (uint16_t)thread_id, (uint16_t)operation};
}

static void note_thread_end(void *unused) {
  (void)unused;
  record(OPERATION_THREAD_END, NULL, 0);
}

static void begin_file(void) {
  const char *folder = getenv("TRACE_FOLDER");
  char path[4096];
  if (!folder || snprintf(path, sizeof path, "%s/%s-%d.trace", folder,
                          program_invocation_short_name, getpid()) >= (int)sizeof path)
    return;
  size_t bytes = sizeof(struct header) + ROOM * sizeof(struct event);
  int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0) {
    dprintf(2, "recorder: %s cannot be written (%m): this process is not recorded\n", path);
    if (file >= 0) close(file);
    return;
  }
  struct header *header =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  if (header == MAP_FAILED) return;
  header->magic = TRACE_MAGIC;
  header->room = ROOM;
  atomic_store_explicit(&trace, header, memory_order_release);
}

static void begin_in_child(void) {
  struct header *of_parent = atomic_exchange(&trace, NULL);
  if (of_parent) munmap(of_parent, sizeof(struct header) + ROOM * sizeof(struct event));
  begin_file();
}

__attribute__((constructor)) static void begin(void) {
  if (atomic_exchange(&is_begun, true)) return;
  pthread_key_create(&end_key, note_thread_end);
  pthread_atfork(NULL, NULL, begin_in_child);
  begin_file();
}

static void *taken(void *block, size_t size) {
  int error = errno;
  if (block) record(OPERATION_TAKE, block, size);
  errno = error;
  return block;
}

void *malloc(size_t size) { return taken(__libc_malloc(size), size); }
void *calloc(size_t count, size_t size) { return taken(__libc_calloc(count, size), count * size); }
void *memalign(size_t alignment, size_t size) {
  return taken(__libc_memalign(alignment, size), size);
}
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **place, size_t alignment, size_t size) {
  if (!alignment || alignment & (alignment - 1) || alignment % sizeof(void *)) return EINVAL;
  void *block = memalign(alignment, size);
  if (block) *place = block;
  return block ? 0 : ENOMEM;
}

void free(void *block) {
  int error = errno;
  if (block) record(OPERATION_FREE, block, 0);
  errno = error;
  __libc_free(block);
}

/* Where nothing could be had the old block lives on, with another size perhaps: that is one life more, not a wrong one. */
void *realloc(void *block, size_t size) {
  if (block) record(size ? OPERATION_MOVE : OPERATION_FREE, block, 0);
  void *moved = __libc_realloc(block, size);
  if (!size && block) return moved;
  taken(moved ? moved : block, size);
  return moved;
}
