/* hak.c: hakmem's own API; include/hakmem/hakmem.h documents each function. */
#include "hakmem/hakmem.h"

#include <errno.h>

#include "api/malloc_family.h"
#include "base/text.h"
#include "cache/caches.h"
#include "cache/divert.h"
#include "cache/moving.h"
#include "heap/ask.h"
#include "heap/sampling.h"
#include "heap/sized_free.h"
#include "heap/thread.h"
#include "observe/reports.h"
#include "ranges/big.h"
#include "reclaim/helper.h"
#include "reclaim/reclaim.h"
#include "report/report.h"

#define FAMILY(residence, result, name, arguments, ...) \
  result hak_##name(__VA_ARGS__) { return family_##name(WITH_SITE arguments); }
#include "api/malloc_family.def"

void *hak_malloc(size_t size) { return heap_malloc(size); }

/* Zeroed to the end of the block, so that hak_rezalloc finds only zeroes beyond the requested size.
 * In hardened mode the block ends there, and a sized free must name it. */
static void *calloc_whole_block(size_t count, size_t size, uint32_t site) {
  struct allocation allocation = {.alignment = 1, .site = site};
  if (multiply_overflows(count, size, &allocation.size)) allocation.size = SIZE_MAX;
  if (allocation.size <= MID_MAX_BYTES && !window.hardened_bit)
    return family_calloc(1, heap_block_bytes(allocation.size, 1), site);
  return family_zeroed(heap_allocate(&allocation), &allocation);
}

void *hak_calloc(size_t count, size_t size) { return calloc_whole_block(count, size, SITE()); }
void hak_free(void *block) { heap_free(block); }
void hak_free_sized(void *block, size_t size) {
  heap_free_sized_or(block, size, heap_free_sized_slow);
}
void hak_free_aligned_sized(void *block, size_t alignment, size_t size) {
  heap_free_sized_loosely(block, size, alignment, MADE_BY_MALLOC);
}
size_t hak_malloc_usable_size(const void *block) { return family_usable_size(block); }
void *hak_aligned_calloc(size_t alignment, size_t count, size_t size) {
  size_t bytes;
  if (multiply_overflows(count, size, &bytes)) bytes = SIZE_MAX; /* refused there */
  return family_aligned_calloc(alignment, bytes, SITE());
}
void *hak_malloc_site(size_t size, uint32_t site) { return family_malloc_site(size, site); }

size_t hak_good_size(size_t size) {
  bool may_exist = size <= REQUEST_MAX_BYTES - GRANULE_BYTES;
  return may_exist ? heap_good_bytes(size, 1) : size;
}

void *hak_rezalloc(void *block, size_t size) {
  if (!block) return calloc_whole_block(1, size, SITE());
  size_t kept_bytes = family_usable_size(block);
  char *resized = family_realloc(block, size, SITE());
  if (!resized) return NULL;
  if (kept_bytes > size) kept_bytes = size;
  big_clear((uintptr_t)resized + kept_bytes, family_usable_size(resized) - kept_bytes);
  return resized;
}

void *hak_expand(void *block, size_t size) { return family_expand(block, size); }

size_t family_purge(bool force) {
  if (!heaps_ready()) return 0;
  size_t bytes = 0;
  struct purge purge;
  do {
    purge = reclaim(heap_of_thread, force ? RECLAIM_ALL : RECLAIM_ROUND);
    bytes += purge.purged_bytes;
  } while (purge.is_cut);
  return bytes;
}
size_t hak_purge(bool force) EXPORT_ALIAS_OF(family_purge);

void family_thread_idle(void) {
  os_settle_copy();
  if (!heap_is_real(heap_of_thread)) return;
  caches_offer(heap_of_thread);
  helper_start_when_worth();
}
void hak_thread_idle(void) EXPORT_ALIAS_OF(family_thread_idle);

size_t hak_worth_moving(void *const *blocks, size_t count, unsigned char *answers) {
  size_t worth = 0;
  for (size_t at = 0; at < count; at++)
    worth += (answers[at] = (unsigned char)moving_gain(blocks[at])) != 0;
  return worth;
}

bool family_move(bool is_moving) {
  struct heap *heap = is_moving ? heap_of_this_thread() : heap_of_thread;
  if (heap && heap_is_real(heap)) divert_move(heap, is_moving);
  return !is_moving || heap || fail_with(ENOMEM);
}
bool hak_move_begin(void) { return family_move(true); }
void hak_move_end(void) { family_move(false); }

bool hak_owns(const void *pointer) { return heap_owns(pointer); }

bool hak_profile_start(size_t period_bytes) {
  return heaps_ready() && sampling_switch(true, period_bytes);
}
void hak_profile_stop(void) {
  if (heaps_ready()) sampling_switch(false, 0);
}

const char *hak_version(void) { return HAKMEM_VERSION; }

void hak_stats_print(int fd) { report_to_descriptor(report_as_text, fd); }

size_t hak_stats_json(char *buffer, size_t buffer_bytes) {
  struct text text;
  text_init(&text, buffer, buffer_bytes ? buffer_bytes - 1 : 0);
  report_as_json(&text);
  if (buffer_bytes) buffer[text.length_bytes] = 0;
  return text.wanted_bytes;
}
