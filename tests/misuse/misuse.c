/* misuse NAME: does one thing wrong with memory, and ends. */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "misuse/hide.h"
#include "ways.h"

enum { OTHERS = 20000 };

static void *others[OTHERS];

static void take_others(void) {
  for (int i = 0; i < OTHERS; i++) others[i] = malloc(64);
}

static void free_others(void) {
  for (int i = 0; i < OTHERS; i++) free(others[i]);
}

/* Runs body(block) on a thread that ends before this returns. */
static void *on_a_thread(void *(*body)(void *), void *block) {
  pthread_t thread;
  pthread_create(&thread, NULL, body, block);
  pthread_join(thread, &block);
  return block;
}

static void free_twice(void *block) {
  free(hide(block));
  free(hide(block));
}

/* ---- pointers that are no block's ------------------------------------------------------------ */

static char global[64];

static void *map(void) {
  return mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* An address far from every block, but where the allocator's memory could be. */
static void *never_allocated(void) { return hide((char *)malloc(64) + (1l << 31)); }

WAY(free_of_stack) {
  char local[64] = {0};
  free(hide(local));
}

WAY(free_of_global) { free(hide(global)); }
WAY(free_of_function) { free(hide((void *)(uintptr_t)free_twice)); }
WAY(free_of_literal) { free(hide("a string literal")); }
WAY(free_of_own_mapping) { free(hide((char *)map() + 64)); }

WAY(free_of_unmapped) {
  char *mapped = map();
  munmap(mapped, 1 << 20);
  free(hide(mapped + 64));
}

/* In the first page: a null pointer with a field's offset. */
WAY(free_of_small_number) { free(hide((void *)(uintptr_t)24)); }
/* An address that no process can have (not canonical). */
WAY(free_of_wild_pointer) { free(hide((void *)(uintptr_t)0xdeadbeefdeadbee0u)); }
WAY(free_of_never_allocated) { free(never_allocated()); }

WAY(realloc_of_stack) {
  char local[64] = {0};
  hide(realloc(hide(local), 100));
}

WAY(realloc_of_never_allocated) { hide(realloc(never_allocated(), 100)); }

WAY(usable_size_of_stack) {
  char local[64] = {0};
  malloc_usable_size(hide(local));
}

WAY(usable_size_of_never_allocated) { malloc_usable_size(never_allocated()); }

/* ---- pointers into a block ------------------------------------------------------------------- */

#define FREE_INSIDE(name, size, offset) \
  WAY(name) { free(hide((char *)malloc(size) + (offset))); }
#define REALLOC_INSIDE(name, size, offset) \
  WAY(name) { free(realloc(hide((char *)malloc(size) + (offset)), 10000000)); }

FREE_INSIDE(misaligned_tiny, 64, 16)
FREE_INSIDE(misaligned_tiny_odd, 100, 1)
FREE_INSIDE(misaligned_tiny_last, 1000, 999)
FREE_INSIDE(misaligned_mid, 5000, 512)
FREE_INSIDE(misaligned_mid_page, 30000, 4096)
FREE_INSIDE(misaligned_large, 100000, 64)
FREE_INSIDE(misaligned_large_page, 500000, 262144)
FREE_INSIDE(misaligned_big, 3000000, 16)
FREE_INSIDE(misaligned_big_page, 20000000, 16777216)
REALLOC_INSIDE(realloc_misaligned_tiny, 64, 16)
REALLOC_INSIDE(realloc_misaligned_mid, 5000, 1024)
REALLOC_INSIDE(realloc_misaligned_large, 100000, 4096)
REALLOC_INSIDE(realloc_misaligned_big, 3000000, 65536)

WAY(misaligned_aligned_alloc) { free(hide((char *)aligned_alloc(256, 1024) + 8)); }

static void *free_inside(void *block) {
  free(hide((char *)(block ? block : malloc(64)) + 16));
  return NULL;
}

/* Found when the thread ends, while main still waits. */
WAY(misaligned_at_thread_exit) {
  on_a_thread(free_inside, NULL);
  _exit(0);
}

WAY(misaligned_by_another_thread) {
  on_a_thread(free_inside, malloc(64));
  _exit(0);
}

/* ---- blocks that are free already ------------------------------------------------------------ */

#define FREE_TWICE(name, size) \
  WAY(name) { free_twice(malloc(size)); }
#define REALLOC_OF_FREED(name, size)      \
  WAY(name) {                             \
    void *block = hide(malloc(size));     \
    free(hide(block));                    \
    free(realloc(hide(block), 10000000)); \
  }

FREE_TWICE(double_free_zero, 0)
FREE_TWICE(double_free_tiny, 64)
FREE_TWICE(double_free_mid, 5000)
FREE_TWICE(double_free_large, 100000)
FREE_TWICE(double_free_big, 3000000)
REALLOC_OF_FREED(realloc_of_freed_tiny, 64)
REALLOC_OF_FREED(realloc_of_freed_mid, 5000)
REALLOC_OF_FREED(realloc_of_freed_large, 100000)
REALLOC_OF_FREED(realloc_of_freed_big, 3000000)

WAY(double_free_of_aligned) { free_twice(aligned_alloc(4096, 100)); }

WAY(double_free_after_another) {
  void *a = malloc(64), *b = malloc(64);
  free(hide(a));
  free(hide(b));
  free(hide(a));
}

/* The first free has long gone through the caches when the second comes. */
WAY(double_free_after_thousands) {
  void *block = malloc(64);
  take_others();
  free(hide(block));
  free_others();
  free(hide(block));
}

/* Found when the magazine overflows, long before the process ends. */
WAY(double_free_before_thousands) {
  void *block = malloc(64);
  take_others();
  free_twice(block);
  free_others();
  _exit(0);
}

static void *free_it(void *block) {
  free(hide(block));
  return NULL;
}

/* The owner frees it, and then another thread does. */
WAY(double_free_by_another_thread) {
  void *block = malloc(64);
  free(hide(block));
  on_a_thread(free_it, hide(block));
}

/* Two threads free the block of a third. */
WAY(double_free_by_two_others) {
  void *block = malloc(5000);
  for (int i = 0; i < 2; i++) on_a_thread(free_it, hide(block));
  _exit(0);
}

static void *take_and_free_twice(void *unused) {
  free_twice(malloc(64));
  return unused;
}

/* Found at the end of the thread, while main still waits. */
WAY(double_free_at_thread_exit) {
  on_a_thread(take_and_free_twice, NULL);
  _exit(0);
}

static void *take_and_free(void *unused) {
  (void)unused;
  void *block = malloc(64), *hidden = hide(block);
  free(block);
  return hidden;
}

/* The block's thread freed it and ended; then main frees it again. */
WAY(double_free_of_ended_thread) { free(on_a_thread(take_and_free, NULL)); }

/* realloc has moved the block; the program frees the old address. */
WAY(double_free_through_realloc) {
  void *block = malloc(100), *old = hide(block);
  block = realloc(block, 50000);
  free(old);
  free(block);
}

/* realloc(p, 0) has freed the block already. */
WAY(double_free_through_realloc_zero) {
  void *block = malloc(100), *old = hide(block);
  hide(realloc(block, 0));
  free(old);
}

int main(int count, char **arguments) { return count == 2 && run_way(arguments[1]) ? 0 : 2; }
