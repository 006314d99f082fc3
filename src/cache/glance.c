#include "cache/glance.h"

#include "cache/packing.h"
#include "foreign/pointer.h"
#include "slab/slab.h"

enum { GLANCED_AT = 4 };

/* No block begins there, or it is free in its slab as well.  A block in a magazine keeps its slab
 * from being released; for an invalid one only records are read, which are never unmapped. */
static bool is_wrong(const struct heap *heap, uintptr_t block) {
  struct slab *slab = slab_of_block(block);
  unsigned index;
  if (!slab_has_block(slab, block, &index)) return true;
  /* relaxed: the bit was set earlier, or the next glance sees it. With one thread there is none,
   * and its page stays untouched. */
  uint64_t free_bits = os_is_multi_threaded() ? load_relaxed(&slab->remote[index / 64]) : 0;
  /* relaxed: it can change to or from the heap's own only under the latch that we hold. */
  if (load_relaxed(&slab->owner) == &heap->owner) free_bits |= slab->local[index / 64];
  return free_bits >> index % 64 & 1;
}

static bool is_among(void *const *blocks, void *const *end, const void *block) {
  for (; blocks != end; blocks++)
    if (*blocks == block) return true;
  return false;
}

COLD static void drop(struct magazine *magazine, void **wrong) {
  pointer_fail("free", (uintptr_t)*wrong);
  packing_end(magazine); /* a batch would not be whole */
  for (; wrong + 1 != magazine->top; wrong++) *wrong = wrong[1];
  magazine_set_top(magazine, magazine->top - 1);
}

static void check_youngest(struct heap *heap, unsigned class) {
  struct magazine *magazine = &heap->magazines[class];
  unsigned count = magazine_count(magazine);
  void **first = magazine->top - (count < GLANCED_AT ? count : GLANCED_AT);
  for (void **at = first; at < magazine->top;) {
    bool is_twice = is_among(first, at, *at);
    if (UNLIKELY(is_twice || is_wrong(heap, (uintptr_t)*at)))
      drop(magazine, at);
    else
      at++;
  }
}

RESIDENT void glance(struct heap *heap, unsigned class) {
  if (LIKELY(load_relaxed(&heap->owner.counters.value[COUNT_refills]) >= GLANCES_MAX)) return;
  unsigned before = heap->refilled_class;
  heap->refilled_class = (uint8_t) class;
  if (before != class) check_youngest(heap, before);
}
