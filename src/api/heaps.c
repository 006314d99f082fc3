/* heaps.c: heaps of the program's own; include/hakmem/hakmem.h documents each function. */
#include <errno.h>
#include <string.h>

#include "api/malloc_family.h"
#include "cache/divert.h"
#include "hakmem/hakmem.h"
#include "heap/ask.h"
#include "heap/in_named.h"
#include "heap/thread.h"
#include "observe/report_heaps.h"
#include "report/report.h"

COLD static bool fail_heap(const struct hak_heap *heap, const char *verb) {
  report_misuse(&(struct misuse){"invalid", verb, (uintptr_t)heap, NULL, 0, false},
                heap ? "the heap was destroyed" : "no heap");
  return fail_with(EINVAL);
}

/* False, after a report, when the heap was destroyed. */
static bool is_heap(const struct hak_heap *heap, const char *verb) {
  os_settle_copy();
  return LIKELY(heap && !named_is(heap, NAMED_UNUSED)) || fail_heap(heap, verb);
}

/* is_heap, for a heap that the program has made. */
static bool is_made(const struct hak_heap *heap, const char *verb) {
  if (!is_heap(heap, verb)) return false;
  return LIKELY(!named_is(heap, NAMED_OF_THREAD)) || fail_with(EINVAL);
}

/* ---- heaps and figures ----------------------------------------------------------------------- */

hak_heap *family_heap_new(const char *name) {
  struct hak_heap *heap = heaps_ready() ? named_make(NAMED_IN_USE, name) : NULL;
  return heap ? heap : fail_with(ENOMEM);
}
hak_heap *hak_heap_new(const char *name) EXPORT_ALIAS_OF(family_heap_new);

hak_heap *hak_heap_of_thread(void) {
  struct heap *own = heap_of_this_thread();
  if (!own) return fail_with(ENOMEM);
  if (own->named) return own->named;
  struct hak_heap *heap = named_make(NAMED_OF_THREAD, NULL);
  if (!heap) return fail_with(ENOMEM);
  store_relaxed(&heap->thread_heap, own);
  return own->named = heap;
}

hak_heap *hak_heap_of(const void *block) {
  struct hak_heap *heap = named_of_block(block);
  while (heap && heap->stands_for) heap = heap->stands_for;
  return heap;
}

void hak_heap_set_name(hak_heap *heap, const char *name) {
  if (is_heap(heap, "hak_heap_set_name")) named_set_name(heap, name);
}
void hak_heap_set_tag(hak_heap *heap, uint64_t tag) {
  if (is_heap(heap, "hak_heap_set_tag")) store_relaxed(&heap->tag, tag);
}

bool hak_set_limit(hak_heap *heap, size_t bytes) {
  if (!is_made(heap, "hak_set_limit")) return false;
  heap = named_resolve(heap);
  if (heap) store_relaxed(&heap->limit_bytes, bytes); /* relaxed: seen late, it holds late */
  return heap;
}

void hak_heap_figures(hak_heap *heap, struct hak_figures *figures, size_t figures_bytes) {
  struct hak_figures now = {0};
  struct hak_heap *there = is_heap(heap, "hak_heap_figures") ? named_resolve(heap) : NULL;
  if (there && named_is(there, NAMED_IN_USE)) {
    named_collect(there);
    named_enter(there);
    named_note_total(there, there); /* a peak that was reported stays */
    named_leave(there);
  }
  if (there) heap_figures_take(there, &now);
  memcpy(figures, &now, figures_bytes < sizeof now ? figures_bytes : sizeof now);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Whether the request is malloc's: the heap is this thread's own. */
static bool is_own(const struct hak_heap *heap) {
  return named_is(heap, NAMED_OF_THREAD) && load_relaxed(&heap->thread_heap) == heap_of_thread;
}

static void *allocate(struct hak_heap *heap, const char *verb, struct allocation *allocation) {
  if (UNLIKELY(!is_heap(heap, verb))) return NULL;
  if (LIKELY(!named_is(heap, NAMED_OF_THREAD))) return heap_allocate_in(heap, allocation);
  return is_own(heap) ? heap_allocate_in(NULL, allocation) : fail_with(EPERM);
}

NOINLINE static void *malloc_slow(hak_heap *heap, size_t size, uint32_t site) {
  struct allocation allocation = {.size = size, .alignment = 1, .site = site};
  return allocate(heap, "hak_heap_malloc", &allocation);
}
void *hak_heap_malloc(hak_heap *heap, size_t size) {
  void *block = size <= TINY_MAX_BYTES
                    ? heap_named_take(heap, (unsigned)tiny_place_of_size(size) / PLACES_A_CLASS)
                    : NULL;
  return LIKELY(block != NULL) ? block : malloc_slow(heap, size, SITE());
}

void *hak_heap_calloc(hak_heap *heap, size_t count, size_t size) {
  struct allocation allocation = {.alignment = 1, .site = SITE()};
  if (multiply_overflows(count, size, &allocation.size)) allocation.size = SIZE_MAX;
  return family_zeroed(allocate(heap, "hak_heap_calloc", &allocation), &allocation);
}

void *hak_heap_aligned_alloc(hak_heap *heap, size_t alignment, size_t size) {
  struct allocation allocation = {.size = size, .alignment = alignment, .site = SITE()};
  return is_power_of_two(alignment) ? allocate(heap, "hak_heap_aligned_alloc", &allocation)
                                    : fail_with(EINVAL);
}

/* Moves the block to another heap. */
static void *move_to(hak_heap *heap, void *block, struct allocation *allocation) {
  size_t keep_bytes;
  if (UNLIKELY(!heap_ask(block, "hak_heap_realloc", &keep_bytes)))
    return fail_with(EINVAL); /* reported already */
  void *moved = allocate(heap, "hak_heap_realloc", allocation);
  if (!moved) return NULL;
  memcpy(moved, block, keep_bytes < allocation->size ? keep_bytes : allocation->size);
  heap_free(block);
  return moved;
}

void *hak_heap_realloc(hak_heap *heap, void *block, size_t size) {
  struct allocation allocation = {.size = size, .alignment = 1, .site = SITE()};
  if (!block) return allocate(heap, "hak_heap_realloc", &allocation);
  if (!is_heap(heap, "hak_heap_realloc")) return NULL;
  hak_heap *before = hak_heap_of(block);
  if (!size || before == heap || (!before && is_own(heap)))
    return family_realloc(block, size, allocation.site);
  return move_to(heap, block, &allocation);
}

/* ---- malloc's own ---------------------------------------------------------------------------- */

bool family_heap_use(hak_heap *heap, hak_heap **before) {
  if (heap && !is_heap(heap, "hak_heap_use")) return false;
  if (heap && named_is(heap, NAMED_OF_THREAD)) {
    if (!is_own(heap)) return fail_with(EPERM);
    heap = NULL;
  }
  struct heap *own = heap ? heap_of_this_thread() : heap_of_thread;
  if (!own) return fail_with(ENOMEM);
  hak_heap *used = own->used;
  if (!heap_use(own, heap)) return fail_heap(heap, "hak_heap_use");
  if (before) *before = used;
  return true;
}
bool hak_heap_use(hak_heap *heap, hak_heap **before) EXPORT_ALIAS_OF(family_heap_use);

/* Ends this thread's use and closes the heap for good; false when another thread uses it. */
static bool end_all_use(struct hak_heap *heap) {
  struct heap *own = heap_of_thread;
  bool is_used = own->used == heap;
  if (!named_close(heap, is_used)) return false;
  if (is_used) divert_use(own, NULL);
  return true;
}

/* ---- all at once ----------------------------------------------------------------------------- */

bool family_heap_free_all(hak_heap *heap) {
  if (!is_made(heap, "hak_heap_free_all")) return false;
  heap = named_resolve(heap);
  if (heap) heap_named_free_all(heap, "hak_heap_free_all");
  return true;
}
bool hak_heap_free_all(hak_heap *heap) EXPORT_ALIAS_OF(family_heap_free_all);

/* A heap that a fork cut off stays, with its blocks; its successors go. */
bool family_heap_destroy(hak_heap *heap) {
  if (!heap) return true;
  if (!is_made(heap, "hak_heap_destroy")) return false;
  if (!end_all_use(heap)) return fail_with(EBUSY);
  while (heap && named_is(heap, NAMED_CUT_OFF)) {
    store_relaxed(&heap->state, NAMED_UNUSED);
    /* acquire: its fields; pairs with next_successor.  The successor was cut off too, if the child
     * has forked. */
    heap = load_acquire(&heap->successor);
  }
  if (!heap) return true;
  heap_named_free_all(heap, "hak_heap_destroy");
  named_drop(heap);
  return true;
}
bool hak_heap_destroy(hak_heap *heap) EXPORT_ALIAS_OF(family_heap_destroy);
