/* utilization.c: how full the slabs of blocks are (experimental.utilization.*), without a lock. */
#include <errno.h>
#include <string.h>

#include "heap/object.h"
#include "jemalloc/arenas.h"
#include "jemalloc/names.h"
#include "observe/blocks.h"
#include "slab/record.h"

/* The answer for a block. A larger one is a slab of its own; 0, 0, 0: no block. `query` has the
 * address of the slab that serves the bin before, which hakmem does not tell, and the bin's sums
 * after. */
enum { FREE_REGIONS, REGIONS, SLAB_BYTES, FIELDS };
enum { QUERY_FIELDS = 1 + FIELDS + 2 };

/* In regions of the bin, of which a slab of a fitted class has more. */
static void describe_slab(const struct slab *slab, size_t bin, size_t *fields) {
  size_t free_blocks = load_relaxed(&slab->free_local_shown);
  fields[REGIONS] = je_regions(bin);
  fields[FREE_REGIONS] = free_blocks * je_regions(bin) / slab->capacity;
  fields[SLAB_BYTES] = je_slab_bytes(bin);
}

/* Returns the bin, or JE_BINS. */
static size_t describe(const void *block, size_t *fields) {
  uint32_t entry = owner_map_entry((uintptr_t)block);
  unsigned class = map_entry_is_live(entry) ? map_slab_class(entry) : SLAB_CLASS_COUNT;
  size_t bin = class < SLAB_CLASS_COUNT ? je_bin_of(class_bytes(class)) : JE_BINS;
  struct object object;
  if (bin < JE_BINS) {
    describe_slab(slab_of_block((uintptr_t)block), bin, fields);
  } else if (object_find((uintptr_t)block, false, &object) == OBJECT_LIVE) {
    fields[REGIONS] = 1;
    fields[SLAB_BYTES] = object.bytes;
  }
  return bin;
}

int utilization(bool is_batch, const struct question *question) {
  size_t count = question->new_bytes / sizeof(void *);
  size_t words = is_batch ? FIELDS : QUERY_FIELDS;
  if (!question->old || !question->old_bytes || !question->new || !count ||
      question->new_bytes % sizeof(void *) || (!is_batch && count != 1) ||
      *question->old_bytes != count * words * sizeof(size_t))
    return EINVAL;
  store_relaxed(&figures_for_moving, true);
  for (size_t at = 0; at < count; at++) {
    size_t fields[QUERY_FIELDS] = {0};
    const void *block;
    memcpy(&block, (const char *)question->new + at * sizeof block, sizeof block);
    size_t bin = describe(block, fields + !is_batch);
    if (!is_batch && bin < JE_BINS) {
      size_t regions = bin_figure(0, bin, BIN_SLABS) * je_regions(bin);
      /* another thread may be taking the figures anew */
      fields[1 + FIELDS] = without_part(regions, bin_figure(0, bin, BIN_REGIONS));
      fields[1 + FIELDS + 1] = regions;
    }
    memcpy((char *)question->old + at * words * sizeof(size_t), fields, words * sizeof(size_t));
  }
  return 0;
}
