/* A thread with a cancellation pending calls argv[1], an entry of the library, again and again: it
 * returns each time.  Then the thread is cancelled, and everybody else finds all as it should be:
 * rounds, failing requests, threads that end. Without an argument: the entries' names. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <threads.h>

#include "api/access.h" /* of src */
#include "api/entry_names.h"
#include "api/jemalloc_calls.h"
#include "api/sizes.h"
#include "concurrency/threads.h"
#include "hakmem/hakmem.h"
#include "jemalloc/mallctl.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

enum { BLOCKS = 400, ROUNDS = 3, HANG_S = 30 };

void cfree(void *block);
void free_sized(void *block, size_t size);
void free_aligned_sized(void *block, size_t alignment, size_t size);
int __libc_mallopt(int parameter, int value);
struct mallinfo __libc_mallinfo(void);
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                      void *library);

static size_t size_of(size_t index) { return 16 << index % 18; } /* to 2 MiB */

static void *blocks[BLOCKS];
static const char nothrow;
enum { ALIGNMENT = 64 };

/* ---- entries --------------------------------------------------------------------------------- */

/* A function that enters itself into the table: the linker lays the section's rows side by side. */
struct entry {
  const char *name;
  void (*call)(void);
};
extern const struct entry __start_entries[], __stop_entries[];
#define ENTRY(name)                                                     \
  static void call_##name(void);                                        \
  static const struct entry name##_entry                                \
      __attribute__((section("entries"), used)) = {#name, call_##name}; \
  static void call_##name(void)

/* Those that make blocks, each into its place; those that take them. */
#define MAKER(name, expression)           \
  ENTRY(name) {                           \
    for (size_t i = 0; i < BLOCKS; i++) { \
      size_t size = size_of(i);           \
      (void)size;                         \
      blocks[i] = (expression);           \
    }                                     \
  }
#define TAKER(name, statement)            \
  ENTRY(name) {                           \
    for (size_t i = 0; i < BLOCKS; i++) { \
      size_t size = size_of(i);           \
      (void)size;                         \
      statement;                          \
      blocks[i] = NULL;                   \
    }                                     \
  }
#define ASKER(name, statement)                \
  ENTRY(name) {                               \
    for (size_t i = 0; i < BLOCKS / 4; i++) { \
      statement;                              \
    }                                         \
  }

static void *posix(int (*function)(void **, size_t, size_t), size_t size) {
  void *block = NULL;
  return function(&block, ALIGNMENT, size) == 0 ? block : NULL;
}

MAKER(malloc, malloc(size))
MAKER(calloc, calloc(1, size))
MAKER(aligned_alloc, aligned_alloc(ALIGNMENT, size))
MAKER(posix_memalign, posix(posix_memalign, size))
MAKER(memalign, memalign(ALIGNMENT, size))
MAKER(valloc, valloc(size))
MAKER(pvalloc, pvalloc(size))
MAKER(__libc_malloc, __libc_malloc(size))
MAKER(__libc_calloc, __libc_calloc(1, size))
MAKER(__libc_memalign, __libc_memalign(ALIGNMENT, size))
MAKER(__libc_valloc, __libc_valloc(size))
MAKER(__libc_pvalloc, __libc_pvalloc(size))
MAKER(__posix_memalign, posix(__posix_memalign, size))
MAKER(hak_malloc, hak_malloc(size))
MAKER(hak_calloc, hak_calloc(1, size))
MAKER(hak_aligned_alloc, hak_aligned_alloc(ALIGNMENT, size))
MAKER(hak_aligned_calloc, hak_aligned_calloc(ALIGNMENT, 1, size))
MAKER(hak_posix_memalign, posix(hak_posix_memalign, size))
MAKER(hak_memalign, hak_memalign(ALIGNMENT, size))
MAKER(hak_valloc, hak_valloc(size))
MAKER(hak_pvalloc, hak_pvalloc(size))
MAKER(hak_malloc_site, hak_malloc_site(size, (uint32_t)i))
MAKER(mallocx, mallocx(size, LG_64 | ZERO))
MAKER(_Znwm, _Znwm(size))
MAKER(_Znam, _Znam(size))
MAKER(_ZnwmRKSt9nothrow_t, _ZnwmRKSt9nothrow_t(size, &nothrow))
MAKER(_ZnamRKSt9nothrow_t, _ZnamRKSt9nothrow_t(size, &nothrow))
MAKER(_ZnwmSt11align_val_t, _ZnwmSt11align_val_t(size, ALIGNMENT))
MAKER(_ZnamSt11align_val_t, _ZnamSt11align_val_t(size, ALIGNMENT))
MAKER(_ZnwmSt11align_val_tRKSt9nothrow_t,
      _ZnwmSt11align_val_tRKSt9nothrow_t(size, ALIGNMENT, &nothrow))
MAKER(_ZnamSt11align_val_tRKSt9nothrow_t,
      _ZnamSt11align_val_tRKSt9nothrow_t(size, ALIGNMENT, &nothrow))

/* Those that change the size of what there is. */
TAKER(realloc, free(realloc(blocks[i], size * 3)))
TAKER(reallocarray, free(reallocarray(blocks[i], 3, size)))
TAKER(__libc_realloc, free(__libc_realloc(blocks[i], size * 3)))
TAKER(hak_realloc, free(hak_realloc(blocks[i], size * 3)))
TAKER(hak_reallocarray, free(hak_reallocarray(blocks[i], 3, size)))
TAKER(hak_rezalloc, free(hak_rezalloc(blocks[i], size * 3)))
TAKER(hak_expand, (hak_expand(blocks[i], size * 2), free(blocks[i])))
TAKER(rallocx, dallocx(rallocx(blocks[i], size * 3, 0), 0))
TAKER(xallocx, (xallocx(blocks[i], size * 2, size, 0), free(blocks[i])))

TAKER(free, free(blocks[i]))
TAKER(dallocx, dallocx(blocks[i], 0))
TAKER(sdallocx, sdallocx(blocks[i], size, 0))
TAKER(cfree, cfree(blocks[i]))
TAKER(free_sized, free_sized(blocks[i], size))
TAKER(free_aligned_sized, free_aligned_sized(blocks[i], 16, size))
TAKER(__libc_free, __libc_free(blocks[i]))
TAKER(hak_free, hak_free(blocks[i]))
TAKER(hak_free_sized, hak_free_sized(blocks[i], size))
TAKER(hak_free_aligned_sized, hak_free_aligned_sized(blocks[i], 16, size))
TAKER(_ZdlPv, _ZdlPv(blocks[i]))
TAKER(_ZdaPv, _ZdaPv(blocks[i]))
TAKER(_ZdlPvm, _ZdlPvm(blocks[i], size))
TAKER(_ZdaPvm, _ZdaPvm(blocks[i], size))
TAKER(_ZdlPvRKSt9nothrow_t, _ZdlPvRKSt9nothrow_t(blocks[i], &nothrow))
TAKER(_ZdaPvRKSt9nothrow_t, _ZdaPvRKSt9nothrow_t(blocks[i], &nothrow))
TAKER(_ZdlPvSt11align_val_t, _ZdlPvSt11align_val_t(blocks[i], 16))
TAKER(_ZdaPvSt11align_val_t, _ZdaPvSt11align_val_t(blocks[i], 16))
TAKER(_ZdlPvmSt11align_val_t, _ZdlPvmSt11align_val_t(blocks[i], size, 16))
TAKER(_ZdaPvmSt11align_val_t, _ZdaPvmSt11align_val_t(blocks[i], size, 16))
TAKER(_ZdlPvSt11align_val_tRKSt9nothrow_t,
      _ZdlPvSt11align_val_tRKSt9nothrow_t(blocks[i], 16, &nothrow))
TAKER(_ZdaPvSt11align_val_tRKSt9nothrow_t,
      _ZdaPvSt11align_val_tRKSt9nothrow_t(blocks[i], 16, &nothrow))

ASKER(malloc_usable_size, malloc_usable_size(blocks[i]))
ASKER(hak_malloc_usable_size, hak_malloc_usable_size(blocks[i]))
ASKER(malloc_object_size, malloc_object_size(blocks[i]))
ASKER(malloc_object_size_fast, malloc_object_size_fast(blocks[i]))
ASKER(hak_owns, hak_owns(blocks[i]))
ASKER(hak_good_size, hak_good_size(i))
ASKER(nallocx, nallocx(i, 0))
ASKER(sallocx, sallocx(blocks[i], 0))
ASKER(hak_version, hak_version())
ASKER(malloc_trim, malloc_trim(0))
ASKER(hak_purge, hak_purge(i % 2))
static unsigned char answers[BLOCKS];
ASKER(hak_worth_moving, hak_worth_moving(blocks, BLOCKS, answers))
ASKER(hak_move_begin, (void)hak_move_begin())
ASKER(hak_move_end, hak_move_end())

static size_t mib[8], mib_length;
static uint64_t epoch = 1;
ASKER(mallctl, mallctl("epoch", NULL, NULL, &epoch, sizeof epoch))
ASKER(mallctlnametomib, (mib_length = 8, mallctlnametomib("epoch", mib, &mib_length)))
ASKER(mallctlbymib, mallctlbymib(mib, mib_length, NULL, NULL, &epoch, sizeof epoch))
static void write_nothing(void *data, const char *part) { (void)data, (void)part; }
ASKER(malloc_stats_print, malloc_stats_print(write_nothing, NULL, "J"))
ASKER(hak_thread_idle, hak_thread_idle())
ASKER(hak_profile_start, hak_profile_start(i % 2 ? 64 : 0))
ASKER(hak_profile_stop, hak_profile_stop())
ASKER(mallinfo, (void)mallinfo())
ASKER(mallinfo2, (void)mallinfo2())
ASKER(mallopt, mallopt(M_MMAP_THRESHOLD, 1 << 20))
ASKER(__libc_mallopt, __libc_mallopt(M_MMAP_THRESHOLD, 1 << 20))
ASKER(__libc_mallinfo, __libc_mallinfo().ordblks)
ASKER(malloc_stats, malloc_stats())

static FILE *null_stream; /* opening one is a cancellation point */
ASKER(malloc_info, malloc_info(0, null_stream))

ASKER(hak_stats_print, hak_stats_print(STDERR_FILENO))
static char text[1 << 16];
ASKER(hak_stats_json, hak_stats_json(text, sizeof text))

/* Of one heap, which holds the blocks of a round. */
static hak_heap *heap;
static struct hak_figures figures;
MAKER(hak_heap_malloc, hak_heap_malloc(heap, size))
MAKER(hak_heap_calloc, hak_heap_calloc(heap, 1, size))
MAKER(hak_heap_aligned_alloc, hak_heap_aligned_alloc(heap, ALIGNMENT, size))
TAKER(hak_heap_realloc, free(hak_heap_realloc(heap, blocks[i], size * 3)))
ASKER(hak_heap_of, hak_heap_of(blocks[i]))
ASKER(hak_heap_of_thread, hak_heap_of_thread())
ASKER(hak_heap_set_name, hak_heap_set_name(heap, "named"))
ASKER(hak_heap_set_tag, hak_heap_set_tag(heap, i))
ASKER(hak_heap_figures, hak_heap_figures(heap, &figures, sizeof figures))
ASKER(hak_set_limit, hak_set_limit(heap, i))
ASKER(hak_heap_use, (hak_heap_use(i % 2 ? NULL : heap, NULL), free(malloc(size_of(i)))))
ASKER(hak_heap_new, hak_heap_destroy(hak_heap_new(NULL)))
ASKER(hak_heap_destroy, hak_heap_destroy(hak_heap_new("gone")))
ASKER(hak_heap_free_all, (hak_heap_malloc(heap, size_of(i)), hak_heap_free_all(heap)))

static void *nothing(void *unused) { return unused; }
static int nothing_c11(void *unused) { return unused != NULL; }
static void no_handler(void) {}

ENTRY(pthread_create) {
  pthread_t thread;
  for (int i = 0; i < 20; i++) {
    CHECK(pthread_create(&thread, NULL, nothing, NULL) == 0);
    CHECK(pthread_detach(thread) == 0);
  }
}

ENTRY(thrd_create) {
  thrd_t thread;
  for (int i = 0; i < 20; i++) {
    CHECK(thrd_create(&thread, nothing_c11, NULL) == thrd_success);
    CHECK(thrd_detach(thread) == thrd_success);
  }
}

ENTRY(prctl) {
  char name[16];
  CHECK(prctl(PR_GET_NAME, name, 0, 0, 0) == 0);
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}

ENTRY(__register_atfork) {
  CHECK(__register_atfork(no_handler, no_handler, no_handler, NULL) == 0);
}

ENTRY(unshare) { CHECK(unshare(0) == 0); }
ENTRY(setns) { CHECK(setns(-1, 0) == -1); }

/* Of a byte that is there: nothing is said. */
ENTRY(hak_report_access) {
  for (size_t i = 0; i < BLOCKS; i++)
    hak_report_access(&(struct hak_access){.function = "memcpy", .pointer = blocks[i], .bytes = 1});
}

/* ---- what is no entry of its own ------------------------------------------------------------- */

ENTRY(misuse) {
  for (int i = 0; i < 5; i++) {
    char *volatile block = malloc(100000);
    free(block);
    free(block);                          /* a warning: HAKMEM_ON_MISUSE=warn */
    free((char *)(uintptr_t)(4096 + 16)); /* nobody's */
  }
}

ENTRY(failing) {
  for (int i = 0; i < 5; i++) CHECK(malloc((size_t)1 << 44) == NULL); /* gives all back first */
}

ENTRY(exit) { exit(0); }

/* ---- the program ----------------------------------------------------------------------------- */

static volatile bool has_returned;

static void *call_when_cancelled(void *argument) {
  const struct entry *entry = argument;
  CHECK(pthread_cancel(pthread_self()) == 0);
  for (int round = 0; round < ROUNDS; round++) entry->call();
  has_returned = true;
  for (;;) pthread_testcancel();
}

static void fill_places(void) {
  for (size_t i = 0; i < BLOCKS; i++) {
    free(blocks[i]);
    blocks[i] = MUST(malloc(size_of(i)));
  }
}

static void empty_places(void) {
  for (size_t i = 0; i < BLOCKS; i++) {
    free(blocks[i]);
    blocks[i] = NULL;
  }
}

static void *live(void *unused) {
  void *own[BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++) own[i] = malloc(size_of(i));
  for (size_t i = 0; i < BLOCKS; i++) free(own[i]);
  return unused;
}

static void all_goes_on(void) {
  threads_run(4, live);
  CHECK(malloc((size_t)1 << 44) == NULL);
  fill_places();
  empty_places();
  malloc_trim(0);
}

int main(int count, char **arguments) {
  const struct entry *entry = __start_entries;
  for (; count > 1 && strcmp(entry->name, arguments[1]) != 0; entry++)
    CHECK(entry + 1 < __stop_entries);
  if (count == 1) {
    for (; entry < __stop_entries; entry++) puts(entry->name);
    return 0;
  }
  alarm(HANG_S);
  null_stream = fopen("/dev/null", "we");
  CHECK(null_stream != NULL && setvbuf(null_stream, NULL, _IONBF, 0) == 0); /* each call writes */
  CHECK((heap = hak_heap_new("of the entries")) != NULL);
  fill_places();
  void *result;
  CHECK(pthread_join(thread_start(call_when_cancelled, (void *)(uintptr_t)entry), &result) == 0);
  CHECK_MSG(has_returned, "%s was a cancellation point", entry->name);
  CHECK(result == PTHREAD_CANCELED);
  empty_places();
  all_goes_on();
  return 0;
}
