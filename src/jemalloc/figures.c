/* figures.c: the process's figures, sampled together when the program advances `epoch`, and those
 * of an arena. */
#include "base/scan.h"
#include "heap/thread.h"
#include "jemalloc/arenas.h"
#include "observe/blocks.h"
#include "observe/snapshot.h"
#include "reclaim/due.h"

/* At the last epoch; each is exact by itself. */
RARE_DATA static ATOMIC(uint64_t) shown[FIGURE_COUNT];
static ATOMIC(uint64_t) epoch;

/* Bytes of a slab up to the last block that was ever handed out, without pieces as large as a slab
 * of jemalloc's that were given back as a whole. */
static uint64_t active_bytes(const struct slab *slab, const struct slab_shape *shape,
                             uint64_t live_bytes) {
  uint64_t page = os_page_bytes(), given = load_relaxed(&slab->given_pages_shown);
  uint64_t bytes = (uint64_t)load_relaxed(&slab->handed_out_shown) * shape->block_bytes;
  unsigned piece = page < JE_SLAB_BYTES ? (unsigned)(JE_SLAB_BYTES / page) : 1; /* pages */
  given &= low_bits((unsigned)(round_up(bytes, page) / page));
  for (unsigned step = 1; step < piece; step *= 2) given &= given >> step;
  given &= ~UINT64_C(0) / low_bits(piece); /* pieces by their first pages */
  bytes = without_part(bytes, count_bits(given) * piece * page);
  return bytes > live_bytes ? bytes : live_bytes;
}

/* Blocks of a class that are live or in magazines; bytes of its slabs, and of those that are not
 * full. */
struct class_sums {
  uint64_t blocks, active, not_full;
};

static void add_slab(void *classes, struct slab *slab, const struct slab_shape *shape,
                     unsigned free_blocks) {
  struct class_sums *sums = (struct class_sums *)classes + (shape - slab_shapes);
  uint64_t blocks = shape->capacity - free_blocks;
  uint64_t active = blocks ? active_bytes(slab, shape, blocks * shape->block_bytes) : 0;
  sums->blocks += blocks;
  sums->active += active;
  if (free_blocks) sums->not_full += active;
}

/* A bin has up to two classes, of which one is fitted: its figures are bytes first. */
static void add_class(uint64_t *sums, uint64_t block_bytes, const struct class_sums *class,
                      uint64_t cached) {
  size_t bin = je_bin_of(block_bytes);
  uint64_t bytes = without_part(class->blocks, cached) * block_bytes;
  sums[bin < JE_BINS ? FIGURE_SMALL : FIGURE_LARGE] += bytes;
  if (bin == JE_BINS) {
    sums[FIGURE_ACTIVE] += round_up(class->active, os_page_bytes());
    return;
  }
  uint64_t *figures = &sums[FIGURE_BINS + bin * BIN_FIGURES];
  figures[BIN_REGIONS] += bytes;
  figures[BIN_SLABS] += class->active;
  figures[BIN_NOT_FULL] += class->not_full;
}

/* Regions, and slabs as full as hakmem's. Blocks in magazines can make the bin seem emptier than
 * its full slabs. */
static void count_bin(uint64_t *sums, size_t bin) {
  uint64_t *figures = &sums[FIGURE_BINS + bin * BIN_FIGURES];
  uint64_t slab_bytes = je_slab_bytes(bin), live = figures[BIN_REGIONS];
  uint64_t full = without_part(figures[BIN_SLABS], figures[BIN_NOT_FULL]);
  figures[BIN_REGIONS] = live / je_class_bytes(bin);
  figures[BIN_SLABS] = (figures[BIN_SLABS] + slab_bytes - 1) / slab_bytes;
  figures[BIN_NOT_FULL] = figures[BIN_SLABS] - (full < live ? full : live) / slab_bytes;
  sums[FIGURE_ACTIVE] += round_up(figures[BIN_SLABS] * slab_bytes, os_page_bytes());
}

static void add_blocks(uint64_t *sums, const struct snapshot *snapshot) {
  struct class_sums classes[SLAB_CLASS_COUNT] = {0};
  struct cached_blocks cached;
  blocks_visit_slabs(add_slab, classes);
  blocks_count_cached(&cached);
  for (unsigned class = 0; class < SLAB_CLASS_COUNT; class ++)
    add_class(sums, slab_shapes[class].block_bytes, &classes[class], cached.of_class[class]);
  for (size_t bin = 0; bin < JE_BINS; bin++) count_bin(sums, bin);
  uint64_t bytes = without_part(snapshot->large_live_bytes + snapshot->big_live_bytes,
                                cached.range_bytes + snapshot->uncounted_bytes);
  sums[FIGURE_LARGE] += bytes;
  sums[FIGURE_LIVE] = sums[FIGURE_SMALL] + sums[FIGURE_LARGE];
  sums[FIGURE_ACTIVE] += round_up(bytes, os_page_bytes());
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
static void add_memory(uint64_t *sums, const struct snapshot *snapshot) {
  uint64_t active = sums[FIGURE_ACTIVE], metadata = snapshot->metadata_bytes;
  uint64_t held = snapshot->committed_bytes, resident = anonymous_bytes();
  if (held < active) held = active;
  if (resident > held) resident = held;
  if (resident < active) resident = active;
  sums[FIGURE_RESIDENT] = resident;
  sums[FIGURE_DIRTY] = without_part(resident, active + metadata);
  sums[FIGURE_MAPPED] = held;
  sums[FIGURE_RETAINED] = without_part(snapshot->mapped_bytes + metadata, held);
  sums[FIGURE_METADATA] = metadata;
}

/* Slabs that only blocks in a magazine keep, or that remote frees have emptied, would look sparse
 * to a program that defragments, and have no blocks to move. */
ATOMIC(bool) figures_for_moving;
static void flush_own(void) {
  struct heap *heap = heap_of_this_thread();
  if (!heap || !load_relaxed(&figures_for_moving)) return;
  store_relaxed(&figures_for_moving, false);
  (void)reclaim_flush_magazines(heap, true);
}

/* Threads that sample at once count the same. Redis does so ten times a second: where a visit to
 * all slabs takes longer than CHEAP_NS, as from 2 GiB on, the next comes SHARE times that later. */
int figures_sample(void) {
  enum { CHEAP_NS = 2000000, SHARE = 50, NS_PER_MS = 1000000 };
  static ATOMIC(uint64_t) next_ms;
  uint64_t sums[FIGURE_COUNT] = {0}, began_ns = os_thread_ns(), now_ms = os_now_coarse_ms();
  struct snapshot snapshot;
  fetch_add_relaxed(&epoch, 1);
  if (!heaps_ready() || now_ms < load_relaxed(&next_ms)) return 0;
  flush_own();
  snapshot_take(&snapshot);
  add_blocks(sums, &snapshot);
  add_memory(sums, &snapshot);
  for (unsigned which = 0; which < FIGURE_COUNT; which++) store_relaxed(&shown[which], sums[which]);
  uint64_t cost_ns = os_thread_ns() - began_ns;
  if (cost_ns > CHEAP_NS) store_relaxed(&next_ms, now_ms + cost_ns * SHARE / NS_PER_MS);
  return 0;
}

uint64_t figures_epoch(void) {
  if (!load_relaxed(&epoch)) figures_sample();
  return load_relaxed(&epoch);
}

/* An arena beyond 0. */
static uint64_t figure_of_heap(const hak_heap *heap, size_t which) {
  uint64_t slab_bytes = 0, range_bytes = 0;
  const hak_heap *part;
  for (unsigned at = 0; heap && (part = named_next_part(heap, &at));) {
    slab_bytes += (uint64_t)load_relaxed(&part->owner.bytes_out);
    range_bytes += load_relaxed(&part->range_bytes);
  }
  if (which > FIGURE_RESIDENT) return 0;
  return which == FIGURE_SMALL   ? slab_bytes
         : which == FIGURE_LARGE ? range_bytes
                                 : round_up(slab_bytes + range_bytes, os_page_bytes());
}

size_t figure(size_t number, size_t which) {
  const hak_heap *heap;
  figures_epoch();
  uint64_t of_all = load_relaxed(&shown[which]);
  if (number == je_arena_count() || number == ARENAS_ALL) return of_all;
  if (number) return figure_of_heap(je_heap_at(number), which);
  for (uint32_t at = 0; (heap = je_next_heap(&at));)
    of_all = without_part(of_all, figure_of_heap(heap, which));
  return of_all;
}
