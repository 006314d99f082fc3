#include "jemalloc/arenas.h"

#include <errno.h>

#include "api/malloc_family.h"
#include "base/text.h"
#include "cache/heap.h"
#include "map/metadata.h"
#include "named/named_heap.h"

RARE_DATA static struct je_arena all, destroyed, first;
RARE_DATA static ATOMIC(struct je_arena *) made[ARENAS_END]; /* from 1 on; never unmapped */
static ATOMIC(uint32_t) made_count;

static struct je_arena *made_at(size_t number) {
  /* acquire: its fields; pairs with place_heap. */
  return number && number <= load_relaxed(&made_count) ? load_acquire(&made[number]) : NULL;
}

static hak_heap *heap_at(size_t number) {
  struct je_arena *arena = made_at(number);
  return arena ? load_relaxed(&arena->heap) : NULL;
}

size_t je_arena_count(void) { return 1 + load_relaxed(&made_count); }

struct je_arena *je_arena_at(size_t number) {
  if (!number) return &first;
  if (number == ARENAS_ALL || number == je_arena_count()) return &all;
  if (number == ARENAS_DESTROYED) return &destroyed;
  return heap_at(number) ? made_at(number) : NULL;
}

size_t je_arena_of_heap(const hak_heap *heap) {
  while (heap && heap->stands_for) heap = heap->stands_for;
  size_t number = heap ? load_relaxed(&heap->tag) : 0;
  return number && heap_at(number) == heap ? number : 0;
}

static hak_heap *heap_without_cache(void) {
  hak_heap *heap = load_relaxed(&first.heap), *none = NULL;
  if (LIKELY(heap != NULL) || !(heap = family_heap_new("jemalloc: no tcache"))) return heap;
  /* acq_rel: orders nothing; a heap's fields are published by its state. */
  if (cas_strong_acq_rel(&first.heap, &none, heap)) return heap;
  family_heap_destroy(heap);
  return none;
}

hak_heap *je_heap_of_flags(int flags) {
  enum { TCACHE_SHIFT = 8, ARENA_SHIFT = 20, TCACHE_MASK = 0xfff, TCACHE_NONE = 1 };
  unsigned arena = (unsigned)flags >> ARENA_SHIFT; /* + 1; 0: the thread's */
  bool is_uncached = (flags >> TCACHE_SHIFT & TCACHE_MASK) == TCACHE_NONE;
  hak_heap *heap = arena ? heap_at(arena - 1) : heap_of_thread->used;
  return is_uncached && !heap ? heap_without_cache() : heap;
}

/* ---- for mallctl ----------------------------------------------------------------------------- */

/* Puts the heap into a record that has none, or into a new one. */
static bool place_heap(size_t number, hak_heap *heap) {
  hak_heap *none = NULL;
  struct je_arena *nothing = NULL, *arena;
  arena = load_acquire(&made[number]); /* its fields; pairs with the CAS below */
  /* acq_rel: orders nothing; one heap is placed. */
  if (arena) return cas_strong_acq_rel(&arena->heap, &none, heap);
  if (!(arena = metadata_allocate(sizeof *arena))) return false;
  store_relaxed(&arena->heap, heap);
  /* acq_rel: the record's fields; pairs with made_at. */
  return cas_strong_acq_rel(&made[number], &nothing, arena);
}

size_t je_arena_make(int *error) {
  char name[HEAP_NAME_BYTES] = {0};
  struct text text;
  hak_heap *heap = family_heap_new(NULL);
  uint32_t number = heap ? 1 : ARENAS_END, count = load_relaxed(&made_count);
  while (number < ARENAS_END && !place_heap(number, heap)) number++;
  if (number == ARENAS_END) {
    family_heap_destroy(heap);
    *error = EAGAIN;
    return 0;
  }
  text_init(&text, name, sizeof name - 1);
  text_format(&text, "arena %u", number);
  named_set_name(heap, name);
  store_relaxed(&heap->tag, number);
  /* acq_rel: orders nothing. */
  while (count < number && !cas_weak_acq_rel(&made_count, &count, number)) continue;
  return number;
}

int je_arena_reset(size_t number) {
  hak_heap *heap = heap_at(number);
  return heap && family_heap_free_all(heap) ? 0 : EFAULT;
}

int je_arena_destroy(size_t number) {
  hak_heap *heap = heap_at(number), *expected = heap;
  /* acq_rel: orders nothing; one thread destroys it. */
  if (!heap || !cas_strong_acq_rel(&made_at(number)->heap, &expected, NULL)) return EFAULT;
  if (family_heap_destroy(heap)) return 0;
  store_relaxed(&made_at(number)->heap, heap); /* a thread uses it */
  return EFAULT;
}

size_t je_arena_of_thread(void) { return je_arena_of_heap(heap_of_thread->used); }

int je_arena_use(size_t number) {
  hak_heap *heap = heap_at(number);
  if (number && !heap) return EFAULT;
  return family_heap_use(heap, NULL) ? 0 : EAGAIN;
}

/* Blocks of a named heap pass no magazine. */
bool je_thread_caches(void) { return !heap_of_thread->used; }

int je_thread_set_caching(bool is_on) {
  if (is_on == je_thread_caches() || je_arena_of_thread()) return 0;
  hak_heap *heap = is_on ? NULL : heap_without_cache();
  return (is_on || heap) && family_heap_use(heap, NULL) ? 0 : EAGAIN;
}
