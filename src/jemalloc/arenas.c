#include "jemalloc/arenas.h"

#include <errno.h>

#include "api/malloc_family.h"
#include "base/text.h"
#include "cache/heap.h"
#include "named/named_heap.h"

/* By number; NULL: none now, and of 0. */
RARE_DATA static ATOMIC(hak_heap *) heaps[ARENAS_END];
static ATOMIC(uint32_t) made_count;

size_t je_arena_count(void) { return 1 + load_relaxed(&made_count); }

hak_heap *je_heap_at(size_t number) {
  return number && number < ARENAS_END ? load_relaxed(&heaps[number]) : NULL;
}

bool je_arena_exists(size_t number) {
  return !number || number == je_arena_count() || number == ARENAS_ALL || number == ARENAS_GONE ||
         je_heap_at(number);
}

/* acq_rel: orders nothing; a heap's fields are published by its state. */
static bool place(size_t number, hak_heap *before, hak_heap *heap) {
  return cas_strong_acq_rel(&heaps[number], &before, heap);
}

hak_heap *je_heap_of_flags(int flags) {
  enum { ARENA_SHIFT = 20 };
  unsigned arena = (unsigned)flags >> ARENA_SHIFT; /* + 1; 0: the thread's */
  return arena ? je_heap_at(arena - 1) : heap_of_thread->used;
}

/* ---- for mallctl ----------------------------------------------------------------------------- */

size_t je_arena_make(int *error) {
  char name[HEAP_NAME_BYTES] = {0};
  struct text text;
  hak_heap *heap = family_heap_new(NULL);
  uint32_t number = heap ? 1 : ARENAS_END, count = load_relaxed(&made_count);
  while (number < ARENAS_END && !place(number, NULL, heap)) number++;
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
  hak_heap *heap = je_heap_at(number);
  return heap && family_heap_free_all(heap) ? 0 : EFAULT;
}

int je_arena_destroy(size_t number) {
  hak_heap *heap = je_heap_at(number);
  if (!heap || !place(number, heap, NULL)) return EFAULT;
  if (family_heap_destroy(heap)) return 0;
  store_relaxed(&heaps[number], heap); /* a thread uses it */
  return EFAULT;
}

size_t je_arena_of_thread(void) {
  const hak_heap *used = heap_of_thread->used;
  size_t number = used ? load_relaxed(&used->tag) : 0;
  return je_heap_at(number) == used ? number : 0;
}

int je_arena_use(size_t number) {
  hak_heap *heap = je_heap_at(number);
  if (number && !heap) return EFAULT;
  return family_heap_use(heap, NULL) ? 0 : EAGAIN;
}

/* Blocks of a named heap pass no magazine. */
bool je_thread_caches(void) { return !heap_of_thread->used && !heap_of_thread->is_moving; }

int je_thread_set_caching(bool is_on) {
  if (is_on == je_thread_caches() || je_arena_of_thread()) return 0;
  return family_move(!is_on) ? 0 : EAGAIN;
}
