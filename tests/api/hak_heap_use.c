/* A heap in use: all that allocates gives its blocks, whatever lies ready in caches, and nothing
 * else does; what is resized stays where it is; uses nest, and end; what is refused. */
#include "api/check.h"
#include "api/entry_names.h"
#include "api/figures.h"
#include "api/jemalloc_calls.h"
#include "api/sizes.h"
#include "api/stamp.h"
#include "concurrency/threads.h"

/* Weak: preloaded, the library is not there when the program is linked. */
#pragma weak hak_aligned_alloc
#pragma weak hak_aligned_calloc
#pragma weak hak_calloc
#pragma weak hak_heap_destroy
#pragma weak hak_heap_figures
#pragma weak hak_heap_free_all
#pragma weak hak_heap_malloc
#pragma weak hak_heap_new
#pragma weak hak_heap_of
#pragma weak hak_heap_of_thread
#pragma weak hak_heap_realloc
#pragma weak hak_heap_use
#pragma weak hak_malloc
#pragma weak hak_malloc_site
#pragma weak hak_memalign
#pragma weak hak_posix_memalign
#pragma weak hak_profile_start
#pragma weak hak_profile_stop
#pragma weak hak_pvalloc
#pragma weak hak_realloc
#pragma weak hak_reallocarray
#pragma weak hak_rezalloc
#pragma weak hak_set_limit
#pragma weak hak_valloc

enum { ALIGNMENT = 64, READY = 40, END_BYTES = 64 << 10, NOTHING = -1 };

/* ---- all that allocates ---------------------------------------------------------------------- */

struct taker {
  const char *name;
  void *(*take)(size_t size);
  void (*give)(void *block);
  int zeroed; /* NOTHING, so many bytes as were asked for (0), or all (1) */
};
/* The linker lays the section's rows side by side. */
extern const struct taker __start_takers[], __stop_takers[];
#define TAKE(name, give, zeroed, call)                    \
  static void *take_##name(size_t size) {                 \
    void *block = NULL, *place = NULL, **out = &place;    \
    size_t count = 1, alignment = ALIGNMENT;              \
    (void)block, (void)out, (void)count, (void)alignment; \
    void *given = (void *)(uintptr_t)(call);              \
    return place ? place : given;                         \
  }                                                       \
  static const struct taker name##_taker                  \
      __attribute__((section("takers"), used)) = {#name, take_##name, give, zeroed};

/* Each entry of the library's own list, under its two names, makes a block, by result or by
 * *out. */
#define FAMILY(residence, result, name, arguments, ...) \
  TAKE(name, free, NOTHING, name arguments) TAKE(hak_##name, free, NOTHING, hak_##name arguments)
#include "../../src/api/malloc_family.def"

#pragma weak mallocx
#pragma weak rallocx
#pragma weak _Znwm
#pragma weak _Znam
#pragma weak _ZnwmRKSt9nothrow_t
#pragma weak _ZnamRKSt9nothrow_t
#pragma weak _ZnwmSt11align_val_t
#pragma weak _ZnamSt11align_val_t
#pragma weak _ZnwmSt11align_val_tRKSt9nothrow_t
#pragma weak _ZnamSt11align_val_tRKSt9nothrow_t
#pragma weak _ZdlPv
#pragma weak _ZdaPv
static const char nothrow;

static void delete_one(void *block) { _ZdlPv(block); }
static void delete_array(void *block) { _ZdaPv(block); }

TAKE(malloc, free, NOTHING, malloc(size))
TAKE(hak_malloc, free, NOTHING, hak_malloc(size))
TAKE(hak_malloc_site, free, NOTHING, hak_malloc_site(size, 7))
TAKE(mallocx, free, NOTHING, mallocx(size, 0))
TAKE(mallocx_zero_aligned, free, 1, mallocx(size, ZERO | LG_64))
TAKE(calloc, free, 0, calloc(count, size))
TAKE(hak_calloc, free, 1, hak_calloc(count, size))
TAKE(hak_aligned_calloc, free, 0, hak_aligned_calloc(alignment, count, size))
TAKE(hak_rezalloc, free, 1, hak_rezalloc(block, size))
TAKE(new, delete_one, NOTHING, _Znwm(size))
TAKE(new_array, delete_array, NOTHING, _Znam(size))
TAKE(new_nothrow, delete_one, NOTHING, _ZnwmRKSt9nothrow_t(size, &nothrow))
TAKE(new_array_nothrow, delete_array, NOTHING, _ZnamRKSt9nothrow_t(size, &nothrow))
TAKE(new_aligned, delete_one, NOTHING, _ZnwmSt11align_val_t(size, alignment))
TAKE(new_array_aligned, delete_array, NOTHING, _ZnamSt11align_val_t(size, alignment))
TAKE(new_aligned_nothrow, delete_one, NOTHING,
     _ZnwmSt11align_val_tRKSt9nothrow_t(size, alignment, &nothrow))
TAKE(new_array_aligned_nothrow, delete_array, NOTHING,
     _ZnamSt11align_val_tRKSt9nothrow_t(size, alignment, &nothrow))

#ifdef __GLIBC__
#pragma weak __posix_memalign
TAKE(__libc_malloc, free, NOTHING, __libc_malloc(size))
TAKE(__libc_calloc, free, 0, __libc_calloc(count, size))
TAKE(__libc_realloc, free, NOTHING, __libc_realloc(block, size))
TAKE(__libc_memalign, free, NOTHING, __libc_memalign(alignment, size))
TAKE(__libc_valloc, free, NOTHING, __libc_valloc(size))
TAKE(__libc_pvalloc, free, NOTHING, __libc_pvalloc(size))
TAKE(__posix_memalign, free, NOTHING, __posix_memalign(out, alignment, size))
#endif

static bool use(hak_heap *heap) { return hak_heap_use(heap, NULL); }

/* Both ends of it; smaller blocks wholly. */
static void check_block(const struct taker *taker, char *block, size_t size, hak_heap *heap) {
  CHECK_MSG(block != NULL, "%s, %zu", taker->name, size);
  CHECK_MSG(hak_heap_of(block) == heap, "%s, %zu", taker->name, size);
  size_t usable = malloc_usable_size(block);
  CHECK_MSG(usable >= size, "%s, %zu", taker->name, size);
  size_t end = usable < END_BYTES ? usable : END_BYTES;
  if (taker->zeroed >= 0) {
    size_t zeroed = taker->zeroed ? usable : size, rest = zeroed < end ? zeroed : end;
    CHECK_MSG(all_bytes_are(block, rest, 0), "%s, %zu", taker->name, size);
    CHECK_MSG(all_bytes_are(block + zeroed - rest, rest, 0), "%s, %zu", taker->name, size);
  }
  memset(block, 0x5A, end);
  memset(block + usable - end, 0x5A, end);
}

/* In every cache that there is blocks lie ready. */
static void fill_caches(size_t size) {
  void *blocks[READY];
  size_t count = size > MIB ? 2 : READY;
  for (size_t i = 0; i < count; i++) CHECK((blocks[i] = malloc(size)) != NULL);
  for (size_t i = 0; i < count; i++) free(blocks[i]);
}

static void take_of_all(hak_heap *heap, size_t size) {
  fill_caches(size);
  for (const struct taker *taker = __start_takers; taker < __stop_takers; taker++) {
    char *own = taker->take(size);
    check_block(taker, own, size, NULL);
    CHECK(use(heap));
    char *first = taker->take(size), *second = taker->take(size);
    check_block(taker, first, size, heap);
    check_block(taker, second, size, heap);
    taker->give(own);
    taker->give(first);
    first = taker->take(size);
    check_block(taker, first, size, heap);
    CHECK(use(NULL));
    own = taker->take(size);
    check_block(taker, own, size, NULL);
    taker->give(own);
    taker->give(second);
    taker->give(first);
  }
  CHECK(figures_of(heap).live_blocks == 0);
}

/* ---- what is resized ------------------------------------------------------------------------- */

static char *resize(char *block, size_t size, unsigned way) {
  return way == 0   ? realloc(block, size)
         : way == 1 ? hak_realloc(block, size)
         : way == 2 ? hak_rezalloc(block, size)
         : way == 3 ? reallocarray(block, 1, size)
                    : rallocx(block, size, LG_PAGE);
}

/* A block of one heap, while another is in use. */
static void resize_from(hak_heap *heap, hak_heap *in_use, size_t size) {
  for (unsigned way = 0; way < 5; way++) {
    CHECK(use(heap));
    char *block = malloc(size);
    size_t now = size;
    CHECK(block != NULL && use(in_use));
    stamp_write(block, size, 3);
    for (size_t other = 0; other < TIER_SIZES; other += 3) {
      size_t kept = now < tier_sizes[other] ? now : tier_sizes[other];
      block = resize(block, now = tier_sizes[other], way);
      CHECK_MSG(block != NULL && hak_heap_of(block) == heap, "%zu to %zu, way %u", size, now, way);
      CHECK_MSG(stamp_holds(block, kept, 3), "%zu to %zu, way %u", size, now, way);
      stamp_write(block, now, 3);
      char *fresh = malloc(size);
      CHECK(fresh != NULL && hak_heap_of(fresh) == in_use);
      free(fresh);
    }
    free(block);
  }
  CHECK(use(NULL));
}

/* By name: a block goes where it is sent. */
static void send(hak_heap *heap, size_t size) {
  hak_heap *own = hak_heap_of_thread();
  CHECK(own != NULL && use(heap));
  char *block = malloc(size);
  CHECK(hak_heap_of(block) == heap);
  stamp_write(block, size, 4);
  block = hak_heap_realloc(own, block, size + 1);
  CHECK(block != NULL && hak_heap_of(block) == NULL && stamp_holds(block, size, 4));
  block = hak_heap_realloc(own, block, size + 5000);
  CHECK(block != NULL && hak_heap_of(block) == NULL && stamp_holds(block, size, 4));
  free(block);
  block = hak_heap_malloc(own, size);
  CHECK(block != NULL && hak_heap_of(block) == NULL);
  free(block);
  CHECK(use(own));
  block = malloc(size);
  CHECK(block != NULL && hak_heap_of(block) == NULL);
  free(block);
}

/* ---- beginnings and ends --------------------------------------------------------------------- */

static hak_heap *heap_of_new_block(size_t size) {
  void *volatile block = MUST(malloc(size));
  hak_heap *heap = hak_heap_of(block);
  free(block);
  return heap;
}

static void nest(hak_heap *first, hak_heap *second) {
  hak_heap *before = first;
  CHECK(hak_heap_use(NULL, &before) && before == NULL);
  CHECK(hak_heap_use(first, &before) && before == NULL && heap_of_new_block(100) == first);
  CHECK(hak_heap_use(second, &before) && before == first && heap_of_new_block(100) == second);
  CHECK(hak_heap_use(second, &before) && before == second && heap_of_new_block(100) == second);
  CHECK(hak_heap_use(first, &before) && before == second && heap_of_new_block(100) == first);
  CHECK(hak_heap_use(hak_heap_of_thread(), &before) && before == first);
  CHECK(heap_of_new_block(100) == NULL && hak_heap_use(NULL, &before) && before == NULL);
}

static void empty_and_destroy(void) {
  hak_heap *heap = hak_heap_new("short"), *before;
  CHECK(use(heap));
  for (size_t i = 0; i < 1000; i++) CHECK(malloc(i * 50) != NULL);
  CHECK(figures_of(heap).live_blocks == 1000 && hak_heap_free_all(heap));
  CHECK(figures_of(heap).live_blocks == 0 && heap_of_new_block(100) == heap);
  CHECK(hak_heap_destroy(heap) && heap_of_new_block(100) == NULL);
  CHECK(hak_heap_use(NULL, &before) && before == NULL);
}

/* Lots of blocks that a profile has counted belong to the thread's heap alone. */
static void switch_profile(hak_heap *heap) {
  for (int round = 0; round < 4; round++) {
    if (round & 1) CHECK(use(heap));
    bool is_on = hak_profile_start(round & 2 ? 64 : 0);
    for (size_t i = 0; i < 300; i++) CHECK(heap_of_new_block(64) == (round & 1 ? heap : NULL));
    CHECK(use(heap) && heap_of_new_block(64) == heap);
    if (is_on) hak_profile_stop();
    for (size_t i = 0; i < 300; i++) CHECK(heap_of_new_block(64) == heap);
    CHECK(use(NULL));
    for (size_t i = 0; i < 300; i++) CHECK(heap_of_new_block(64) == NULL);
  }
}

static hak_heap *shared;

static void *begin_elsewhere(void *unused) {
  CHECK(heap_of_new_block(100) == NULL && use(shared) && heap_of_new_block(100) == shared);
  return unused;
}

/* Without an allocation before. */
static void *begin_at_once(void *unused) {
  CHECK(use(shared) && heap_of_new_block(3000) == shared);
  return unused;
}

static void *end_at_once(void *unused) {
  hak_heap *before;
  CHECK(hak_heap_use(NULL, &before) && before == NULL);
  return unused;
}

/* Threads end in the middle of a use; who gets their heaps next does not go on with it. */
static void end_threads(void) {
  CHECK((shared = hak_heap_new("theirs")) != NULL);
  for (int thread = 0; thread < 6; thread++) {
    thread_run(begin_elsewhere, NULL);
    thread_run(begin_at_once, NULL);
    thread_run(end_at_once, NULL);
  }
  CHECK(use(shared));
  thread_run(begin_elsewhere, NULL);
  CHECK(heap_of_new_block(100) == shared && hak_heap_destroy(shared));
  CHECK(heap_of_new_block(100) == NULL);
}

/* ---- limits, refusals ------------------------------------------------------------------------ */

static void limits(void) {
  hak_heap *heap = hak_heap_new("limited");
  char *before = malloc(64 * KIB);
  CHECK(before != NULL && hak_set_limit(heap, MIB) && use(heap));
  void *blocks[2 * KIB];
  size_t count = 0;
  errno = 0;
  while (count < COUNT_OF(blocks) && (blocks[count] = malloc(KIB - 8))) count++;
  CHECK_MSG(count == KIB && errno == ENOMEM, "%zu", count);
  CHECK_FAILS(calloc(3, MIB), ENOMEM);
  CHECK(_ZnwmRKSt9nothrow_t(2 * KIB, &nothrow) == NULL);
  CHECK(aligned_alloc(4 * KIB, 64 * KIB) == NULL && realloc(blocks[0], 3 * MIB) == NULL);
  CHECK(figures_of(heap).refusals >= 5 && figures_of(heap).live_bytes == MIB);
  CHECK((before = realloc(before, 2 * MIB)) != NULL && hak_heap_of(before) == NULL);
  CHECK(use(NULL));
  free(before);
  for (size_t i = 0; i < count; i++) free(blocks[i]);
  CHECK(hak_heap_destroy(heap));
}

static int to_worker[2], from_worker[2];

static void tell(int descriptor) { CHECK(write(descriptor, "", 1) == 1); }
static void hear(int descriptor) {
  char byte;
  CHECK(read(descriptor, &byte, 1) == 1);
}

static void *use_until_told(void *theirs) {
  errno = 0;
  CHECK(!use(theirs) && errno == EPERM && heap_of_new_block(100) == NULL);
  CHECK(use(shared));
  tell(from_worker[1]);
  hear(to_worker[0]);
  CHECK(heap_of_new_block(100) == shared && use(NULL));
  tell(from_worker[1]);
  hear(to_worker[0]);
  return theirs;
}

static void refuse_to_destroy(void) {
  CHECK(pipe(to_worker) == 0 && pipe(from_worker) == 0);
  CHECK((shared = hak_heap_new("busy")) != NULL && use(shared));
  void *kept = malloc(100);
  pthread_t worker = thread_start(use_until_told, hak_heap_of_thread());
  hear(from_worker[0]);
  CHECK_FAILS(hak_heap_destroy(shared), EBUSY);
  CHECK(heap_of_new_block(100) == shared && hak_heap_of(kept) == shared);
  CHECK(use(NULL) && !hak_heap_destroy(shared) && errno == EBUSY);
  tell(to_worker[1]);
  hear(from_worker[0]);
  CHECK(use(shared) && hak_heap_destroy(shared) && heap_of_new_block(100) == NULL);
  tell(to_worker[1]);
  thread_join(worker);
}

int main(void) {
  hak_heap *heap = hak_heap_new("in use"), *other = hak_heap_new(NULL);
  CHECK(heap != NULL && other != NULL);
  for (size_t i = 0; i < TIER_SIZES; i++) take_of_all(heap, tier_sizes[i]);
  for (size_t i = 0; i < TIER_SIZES; i += 4) {
    resize_from(NULL, heap, tier_sizes[i]);
    resize_from(heap, other, tier_sizes[i]);
    resize_from(heap, NULL, tier_sizes[i]);
    send(heap, tier_sizes[i]);
  }
  nest(heap, other);
  empty_and_destroy();
  switch_profile(heap);
  end_threads();
  limits();
  refuse_to_destroy();
  CHECK(use(heap) && use(NULL) && figures_of(heap).live_blocks == 0);
  CHECK(hak_heap_destroy(heap) && hak_heap_destroy(other));
  return 0;
}
