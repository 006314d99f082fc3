#include "jemalloc/arenas.h"

#include <errno.h>

#include "api/malloc_family.h"
#include "cache/heap.h"
#include "named/named_heap.h"

hak_heap *je_next_heap(uint32_t *number) {
  hak_heap *heap;
  while ((heap = named_next(number)) && *number < ARENAS_END)
    if (named_is(heap, NAMED_IN_USE) || named_is(heap, NAMED_CUT_OFF)) return heap;
  return NULL;
}

/* Never less: numbers of destroyed ones are not that of all. */
size_t je_arena_count(void) {
  static ATOMIC(uint32_t) last;
  uint32_t number = load_relaxed(&last);
  while (je_next_heap(&number)) store_relaxed(&last, number);
  return 1 + load_relaxed(&last);
}

hak_heap *je_heap_at(size_t number) {
  uint32_t at = (uint32_t)number - 1;
  hak_heap *heap = je_next_heap(&at);
  return at == number ? heap : NULL;
}

bool je_arena_exists(size_t number) {
  return !number || number == je_arena_count() || number == ARENAS_ALL || number == ARENAS_GONE ||
         je_heap_at(number);
}

hak_heap *je_heap_of_flags(int flags) {
  enum { ARENA_SHIFT = 20 };
  unsigned arena = (unsigned)flags >> ARENA_SHIFT; /* + 1; 0: the thread's */
  return arena ? je_heap_at(arena - 1) : heap_of_thread->used;
}

/* ---- for mallctl ----------------------------------------------------------------------------- */

size_t je_arena_make(int *error) {
  hak_heap *heap = family_heap_new(NULL);
  if (heap && heap->owner.number < ARENAS_END) return heap->owner.number;
  family_heap_destroy(heap);
  *error = EAGAIN;
  return 0;
}

int je_arena_reset(size_t number) {
  hak_heap *heap = je_heap_at(number);
  return heap && family_heap_free_all(heap) ? 0 : EFAULT;
}

int je_arena_destroy(size_t number) {
  hak_heap *heap = je_heap_at(number);
  return heap && family_heap_destroy(heap) ? 0 : EFAULT;
}

size_t je_arena_of_thread(void) {
  const hak_heap *used = heap_of_thread->used;
  return used && used->owner.number < ARENAS_END ? used->owner.number : 0;
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
