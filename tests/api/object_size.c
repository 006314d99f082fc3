/* malloc_object_size: from any address to the end of its block; exact in hardened mode
 * (HAKMEM_HARDEN) and of guarded blocks, whatever the address, and in time for a signal handler.
 * hak_owns: whether it is in a block at all. */
#include <signal.h>
#include <sys/mman.h>

#include "api/sizes.h"
#include "concurrency/threads.h"
#include "hakmem/hakmem.h"

static bool is_exact;
static int in_data = 1;

static size_t size_of(const void *pointer) {
  size_t slow = malloc_object_size(pointer), fast = malloc_object_size_fast(pointer);
  CHECK_MSG(fast == slow || fast == SIZE_MAX, "%p: %zu, fast %zu", pointer, slow, fast);
  return slow;
}

static void check_block(const char *block, size_t size) {
  size_t whole = size_of(block), usable = hak_malloc_usable_size(block);
  CHECK_MSG(whole >= size && whole <= usable, "size %zu: %zu, usable %zu", size, whole, usable);
  CHECK_MSG(hak_owns(block) && hak_owns(block + size / 2) && hak_owns(block + size - 1), "%zu",
            size);
  CHECK_MSG(!is_exact || whole == size, "size %zu: %zu", size, whole);
  size_t step = size < 5000 ? 1 : size / 997;
  for (size_t offset = 0; offset < size; offset += step)
    CHECK_MSG(size_of(block + offset) == whole - offset, "size %zu, offset %zu", size, offset);
  if (is_exact)
    CHECK_MSG(size_of(block + size) == 0, "behind size %zu: %zu", size, size_of(block + size));
}

static void check_size(size_t size) {
  char *block = MUST(malloc(size));
  check_block(block, size);
  block = MUST(realloc(block, size + size / 4 + 1));
  check_block(block, size + size / 4 + 1);
  free(block);
  size_t freed = size_of(block);
  CHECK_MSG(!is_exact || freed == 0, "freed of %zu: %zu", size, freed);
  if (size == 100) CHECK(hak_owns(block)); /* a free one, too */
  block = MUST(aligned_alloc(4096, size));
  check_block(block, size);
  free(block);
}

static void check_what_is_none(void) {
  int on_stack = 1;
  void *mapping = mmap(NULL, MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(mapping != MAP_FAILED);
  const void *none[] = {NULL,
                        &on_stack,
                        &in_data,
                        "literal",
                        (const void *)(uintptr_t)check_block,
                        mapping,
                        (void *)8,
                        (void *)UINTPTR_MAX,
                        (void *)0xdead000000000000u};
  for (size_t i = 0; i < COUNT_OF(none); i++)
    CHECK_MSG(size_of(none[i]) == SIZE_MAX && !hak_owns(none[i]), "%p", none[i]);
}

/* Anywhere in 4 GiB around what lives, and anywhere at all. */
static void check_wild(const char *around) {
  uint64_t random = 1;
  for (unsigned round = 0; round < 300000; round++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    uintptr_t offset = round % 2 ? (uintptr_t)(random >> 32) - (UINT64_C(1) << 31) : random;
    size_of((const void *)((uintptr_t)around + offset));
  }
}

/* Blocks come and go under those who ask: whatever is said, nobody falls. */
static _Atomic(char *) shared[16];
static _Atomic bool is_over;

static void *come_and_go(void *unused) {
  for (unsigned round = 0; round < 20000; round++) {
    char *block = MUST(malloc(round * 7919 % (round % 50 ? 4000 : 30000) + 1));
    free(__atomic_exchange_n((char **)&shared[round % 16], block, __ATOMIC_ACQ_REL));
  }
  is_over = true;
  return unused;
}

static void ask_always(void) {
  pthread_t thread = thread_start(come_and_go, NULL);
  while (!is_over)
    for (unsigned index = 0; index < 16; index++) {
      size_t slow = malloc_object_size(shared[index]),
             fast = malloc_object_size_fast(shared[index]);
      CHECK(slow <= 32 * KIB || slow == SIZE_MAX);
      CHECK(fast <= 32 * KIB || fast == SIZE_MAX);
    }
  thread_join(thread);
}

static char *asked_by_handler;
static void handler(int unused) {
  (void)unused;
  size_t size = malloc_object_size_fast(asked_by_handler);
  CHECK(size == SIZE_MAX || (size >= 100 && size <= 112));
}

static void ask_in_handlers(void) {
  asked_by_handler = malloc(100);
  signal(SIGPROF, handler);
  for (unsigned round = 0; round < 20000; round++) {
    if (round % 100 == 0) raise(SIGPROF);
    free(malloc(round % 3000));
  }
}

int main(void) {
  is_exact = getenv("HAKMEM_HARDEN") != NULL;
  check_what_is_none(); /* before the first block, as far as that is possible */
  for (size_t size = 1; size <= 3000; size += size < 300 ? 1 : 13) check_size(size);
  for (size_t i = 0; i < TIER_SIZES; i++)
    if (tier_sizes[i]) check_size(tier_sizes[i]);
  check_size(200 * MIB);
  char *around = malloc(100);
  check_wild(around);
  ask_in_handlers();
  ask_always();
  return 0;
}
