#include "profile/sites.h"

#include <string.h>

#include "base/bits.h"
#include "profile/poisson.h"

/* ---- frames ---------------------------------------------------------------------------------- */

enum { CHUNK_FRAMES = 8190 };
struct frame_chunk {
  ATOMIC(uint32_t) taken;
  uintptr_t frames[CHUNK_FRAMES];
};
static ATOMIC(void *) frame_chunk; /* where new stacks go */

static uintptr_t *take_frames(size_t count) {
  /* acquire: the zeroes in it; pairs with profile_make_piece. */
  struct frame_chunk *chunk = load_acquire(&frame_chunk);
  for (;;) {
    if (chunk && load_relaxed(&chunk->taken) + count <= CHUNK_FRAMES) {
      uint32_t first = fetch_add_relaxed(&chunk->taken, (uint32_t)count);
      if (first + count <= CHUNK_FRAMES) return &chunk->frames[first];
    }
    chunk = profile_make_piece(TABLE_FRAMES, &frame_chunk, chunk, sizeof *chunk);
    if (!chunk) return NULL;
  }
}

/* ---- records --------------------------------------------------------------------------------- */

/* acquire: the zeroes in it; pairs with profile_make_piece. */
static struct site_segment *segment_if_any(unsigned number) {
  return load_acquire(&profile_state.site_segments[number]);
}

static bool has_segment(unsigned number) {
  if (number >= SITE_SEGMENTS) return false;
  return segment_if_any(number) ||
         profile_make_piece(TABLE_SITES, &profile_state.site_segments[number], NULL,
                            sizeof(struct site_segment));
}

struct profile_site *sites_record(uint32_t site) {
  struct site_segment *segment = segment_if_any(site / SEGMENT_SITES);
  return segment ? &segment->sites[site % SEGMENT_SITES] : NULL;
}

/* A new number that has a record; SITE_LOST without memory.  The first one is SITE_LOST's own. */
static uint32_t take_number(void) {
  uint64_t count = load_relaxed(&profile_state.site_count), next;
  do {
    next = count ? count : SITE_LOST + 1;
    if (!has_segment((unsigned)(next / SEGMENT_SITES))) return SITE_LOST;
    /* acq_rel: orders nothing; each number is taken once. */
  } while (!cas_weak_acq_rel(&profile_state.site_count, &count, next + 1));
  return (uint32_t)next;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

enum { ROWS = 4096 };
RARE_DATA static ATOMIC(uint32_t) rows[ROWS]; /* the first site of each hash row; 0: none */

static uint64_t hash_of(const uintptr_t *frames, size_t frame_count, bool is_complete) {
  uint64_t hash = frame_count * 2 + is_complete;
  for (size_t frame = 0; frame < frame_count; frame++)
    hash = mix_bits(hash ^ frames[frame]) + hash * 31;
  return hash;
}

static bool is_stack(const struct profile_site *site, uint64_t hash, const uintptr_t *frames,
                     size_t frame_count) {
  return site->hash == hash && load_relaxed(&site->frame_count) == frame_count &&
         memcmp(site->frames, frames, frame_count * sizeof *frames) == 0;
}

/* Searches a row from one site up to another, which is excluded. */
static uint32_t find(uint32_t from, uint32_t to, uint64_t hash, const uintptr_t *frames,
                     size_t frame_count) {
  for (uint32_t site = from; site != to; site = load_relaxed(&sites_record(site)->next))
    if (is_stack(sites_record(site), hash, frames, frame_count)) return site;
  return SITE_LOST;
}

static uint32_t make(uint64_t hash, const uintptr_t *frames, size_t frame_count, bool is_complete) {
  uintptr_t *kept = take_frames(frame_count);
  uint32_t number = kept ? take_number() : (uint32_t)SITE_LOST;
  if (number == SITE_LOST) return SITE_LOST;
  struct profile_site *site = sites_record(number);
  memcpy(kept, frames, frame_count * sizeof *frames);
  site->hash = hash;
  site->frames = kept;
  site->is_complete = is_complete;
  /* release: the frames; pairs with write_profile. */
  store_release(&site->frame_count, (uint32_t)frame_count);
  return number;
}

uint32_t sites_find(const uintptr_t *frames, size_t frame_count, bool is_complete) {
  uint64_t hash = hash_of(frames, frame_count, is_complete);
  ATOMIC(uint32_t) *row = &rows[hash % ROWS];
  /* acquire: the records in the row; pairs with the release below. */
  uint32_t first = load_acquire(row), found = find(first, 0, hash, frames, frame_count);
  if (LIKELY(found)) return found;
  uint32_t made = make(hash, frames, frame_count, is_complete);
  while (made) {
    uint32_t before = first;
    store_relaxed(&sites_record(made)->next, before);
    if (cas_strong_acq_rel(row, &first, made)) return made; /* release: the record */
    found = find(first, before, hash, frames, frame_count);
    if (!found) continue;
    store_relaxed(&sites_record(made)->frame_count, 0); /* another thread has made it */
    return found;
  }
  fetch_add_relaxed(&profile_state.lost_stacks, 1);
  return SITE_LOST;
}

bool sites_have_room(const uintptr_t *frames, size_t count, bool is_complete, unsigned eighths) {
  if (profile_tables_are_below(eighths) &&
      load_relaxed(&profile_state.site_count) < SITE_SEGMENTS * SEGMENT_SITES / 8 * eighths)
    return true;
  uint64_t hash = hash_of(frames, count, is_complete);
  /* acquire: the records in the row; pairs with the release above. */
  return find(load_acquire(&rows[hash % ROWS]), 0, hash, frames, count);
}

/* ---- weights --------------------------------------------------------------------------------- */

static void add_real(ATOMIC(uint64_t) *sum, double value) {
  uint64_t before = load_relaxed(sum);
  /* acq_rel: orders nothing; the sum alone matters. */
  while (!cas_weak_acq_rel(sum, &before, bits_of_real(real_of_bits(before) + value))) {
  }
}

/* The number of blocks that a sample stands for. */
static double blocks_of(const struct profile_sample *sample, unsigned halvings) {
  double p = poisson_probability(sample->block_bytes, sample->period_bytes);
  return (double)(UINT64_C(1) << halvings) / p;
}

static void add(struct profile_weights *sums, const struct profile_sample *sample,
                unsigned halvings) {
  double blocks = blocks_of(sample, halvings);
  double bytes = (double)sample->block_bytes * blocks;
  add_real(&sums->bytes, bytes);
  add_real(&sums->requested, (double)sample->requested_bytes * blocks);
  add_real(&sums->blocks, blocks);
  add_real(&sums->variance, bytes * bytes * (1 - 1 / blocks));
}

void sites_note_allocated(const struct profile_sample *sample) {
  struct profile_site *site = sites_record(sample->site);
  if (site) add(&site->allocated, sample, 0);
}

/* A counter that stays at its maximum misleads less than one that wraps around: with R = 64 some
 * sites free 2^32 samples in an hour. Fewer threads than LEFT_OUT can add at once. */
static void add_one(ATOMIC(uint32_t) *count) {
  enum { LEFT_OUT = 1 << 16 };
  if (LIKELY(load_relaxed(count) < UINT32_MAX - LEFT_OUT)) fetch_add_relaxed(count, 1);
}

enum { NS_PER_MS = 1000000 };

void sites_note_freed(const struct profile_sample *sample, unsigned halvings, uint64_t lived_ns) {
  struct profile_site *site = sites_record(sample->site);
  if (!site) return;
  add(&site->freed, sample, halvings);
  uint64_t lived_ms = lived_ns / NS_PER_MS;
  unsigned row = lived_ms ? highest_bit(lived_ms) + 1 : 0;
  if (row >= SITE_LIFETIMES) row = SITE_LIFETIMES - 1;
  add_one(&site->freed_samples);
  add_one(&site->lifetimes[row]);
}

void sites_note_resized(const struct profile_sample *before, unsigned halvings,
                        uint64_t requested_bytes) {
  struct profile_site *site = sites_record(before->site);
  double more = (double)requested_bytes - (double)before->requested_bytes;
  if (site) add_real(&site->allocated.requested, more * blocks_of(before, halvings));
}
