/* figures.c: the figures of all arenas, sampled together when the program advances `epoch`. */
#include <string.h>

#include "base/scan.h"
#include "heap/thread.h"
#include "jemalloc/arenas.h"
#include "observe/blocks.h"
#include "observe/snapshot.h"

static void take_off(uint64_t *from, uint64_t part) { *from = without_part(*from, part); }

/* Adds blocks of slabs, which may be cached in part; returns the figures of their bin, or NULL. In a
 * slab of a fitted class there are more blocks than its bin has. */
static uint64_t *add_blocks(struct je_arena *arena, const struct slab_shape *shape, uint64_t blocks,
                            void (*add)(uint64_t *, uint64_t)) {
  size_t bin = 0, capacity = shape->capacity;
  while (bin < JE_BINS && je_class_bytes(bin) < shape->block_bytes) bin++;
  add(&arena->sums[bin < JE_BINS ? FIGURE_SMALL : FIGURE_LARGE], blocks * shape->block_bytes);
  if (bin == JE_BINS) return NULL;
  uint64_t *figures = &arena->sums[FIGURE_BINS + bin * BIN_FIGURES];
  add(&figures[BIN_REGIONS], (blocks * je_regions(bin) + capacity / 2) / capacity);
  return figures;
}

static void add_to(uint64_t *sum, uint64_t part) { *sum += part; }

static void add_slab(void *context, struct slab *slab, const struct slab_shape *shape,
                     unsigned free_blocks) {
  uint64_t blocks = shape->capacity - free_blocks;
  struct owner *owner = load_relaxed(&slab->owner);
  bool is_named = owner && owner_is_named(owner);
  struct je_arena *arena = je_arena_at(is_named ? je_arena_of_heap(named_of_owner(owner)) : 0);
  (void)context;
  if (!blocks || !arena) return;
  uint64_t touched = load_relaxed(&slab->handed_out_shown);
  if (touched < blocks) touched = blocks;
  arena->sums[FIGURE_ACTIVE] += round_up(touched * shape->block_bytes, os_page_bytes());
  uint64_t *figures = add_blocks(arena, shape, blocks, add_to);
  if (!figures) return;
  figures[BIN_SLABS]++;
  figures[BIN_NOT_FULL] += free_blocks != 0;
}

/* Blocks in magazines are arena 0's, and look live in their slabs. */
static void take_off_cached(struct je_arena *arena) {
  struct cached_blocks cached;
  blocks_count_cached(&cached);
  take_off(&arena->sums[FIGURE_LARGE], cached.range_bytes);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    if (cached.of_class[class])
      add_blocks(arena, &slab_shapes[class], cached.of_class[class], take_off);
}

/* Anonymous memory of the whole process; UINT64_MAX where the system does not say. */
static uint64_t anonymous_bytes(void) {
  char statm[128];
  uint64_t pages[3] = {0}; /* of the program's addresses, resident, of those shared */
  os_read_file("/proc/self/statm", statm, sizeof statm);
  const char *at = statm;
  for (unsigned which = 0; which < 3; which++, at += *at == ' ')
    if (!scan_is_digit(*at) || !scan_number(&at, &pages[which])) return UINT64_MAX;
  return without_part(pages[1], pages[2]) * os_page_bytes();
}

/* Some memory that hakmem holds was never touched; some that the process has, others have
 * allocated. */
static void add_process(uint64_t *sums, const struct snapshot *snapshot) {
  uint64_t active = sums[FIGURE_ACTIVE], metadata = snapshot->metadata_bytes;
  uint64_t held = snapshot->committed_bytes, resident = anonymous_bytes();
  if (held < active) held = active;
  if (resident > held) resident = held;
  if (resident < active) resident = active;
  sums[FIGURE_RESIDENT] = resident;
  sums[FIGURE_LIVE] = sums[FIGURE_SMALL] + sums[FIGURE_LARGE];
  sums[FIGURE_DIRTY] = without_part(resident, active + metadata);
  sums[FIGURE_MAPPED] = held;
  sums[FIGURE_RETAINED] = without_part(snapshot->mapped_bytes + metadata, held);
  sums[FIGURE_METADATA] = metadata;
}

/* Large and Big blocks; a named heap's are among the process's Big ones. */
static void add_ranges(struct je_arena *arena, uint64_t *bytes_of_all) {
  uint64_t bytes = 0;
  const hak_heap *heap = load_relaxed(&arena->heap), *part;
  if (arena == je_arena_at(0))
    bytes = *bytes_of_all;
  else
    for (unsigned at = 0; heap && (part = named_next_part(heap, &at));)
      bytes += load_relaxed(&part->range_bytes);
  take_off(bytes_of_all, bytes);
  arena->sums[FIGURE_LARGE] += bytes;
  arena->sums[FIGURE_ACTIVE] += round_up(bytes, os_page_bytes());
}

static void show_sums(struct je_arena *arena) {
  for (unsigned which = 0; which < FIGURE_COUNT; which++)
    store_relaxed(&arena->shown[which], arena->sums[which]);
}

static void sample(void) {
  struct snapshot snapshot;
  struct je_arena *first = je_arena_at(0), *all = je_arena_at(ARENAS_ALL), *arena;
  size_t count = je_arena_count();
  for (size_t number = 0; number <= count; number++)
    if ((arena = je_arena_at(number))) memset(arena->sums, 0, sizeof arena->sums);
  snapshot_take(&snapshot);
  blocks_visit_slabs(add_slab, NULL);
  take_off_cached(first);
  uint64_t bytes =
      without_part(snapshot.large_live_bytes + snapshot.big_live_bytes, snapshot.uncounted_bytes);
  for (size_t number = count; number--;) { /* arena 0 has what is left */
    if (!(arena = je_arena_at(number))) continue;
    add_ranges(arena, &bytes);
    for (unsigned which = 0; which < FIGURE_RESIDENT; which++)
      all->sums[which] += arena->sums[which];
    arena->sums[FIGURE_RESIDENT] = arena->sums[FIGURE_ACTIVE];
    if (number) show_sums(arena);
  }
  add_process(all->sums, &snapshot);
  /* Free memory may serve any: it counts as arena 0's. */
  memcpy(&first->sums[FIGURE_RESIDENT], &all->sums[FIGURE_RESIDENT],
         (FIGURE_COUNT - FIGURE_RESIDENT) * sizeof *all->sums);
  show_sums(first);
  show_sums(all);
}

static ATOMIC(uint64_t) epoch;

int figures_sample(void) {
  static ATOMIC(uint32_t) sampler; /* the process in which a thread samples; 0: none does */
  uint32_t process = os_process_id(), before = load_relaxed(&sampler);
  if (!heaps_ready() || before == process) return 0;
  /* acq_rel: the sums; pairs with the release below. A parent's thread is not in a child. */
  if (!cas_strong_acq_rel(&sampler, &before, process)) return 0;
  sample();
  fetch_add_relaxed(&epoch, 1);
  store_release(&sampler, 0); /* the sums; pairs with the CAS above */
  return 0;
}

uint64_t figures_epoch(void) {
  if (!load_relaxed(&epoch)) figures_sample();
  return load_relaxed(&epoch);
}

size_t figure(size_t number, size_t which) {
  const struct je_arena *arena = je_arena_at(number);
  figures_epoch();
  return arena ? load_relaxed(&arena->shown[which]) : 0;
}
