#include "profile/samples.h"

#include "base/bits.h"

/* ---- places --------------------------------------------------------------------------------------------------- */

/* The hash's highest bits choose the bucket, its lowest the segment. */
enum {
  BUCKETS = SEGMENT_SAMPLES / BUCKET_SAMPLES,
  BUCKET_SHIFT = 64 - CONSTANT_LOWEST_BIT(BUCKETS)
};

struct place {
  struct sample_segment *segment; /* NULL: none */
  unsigned index;
};

static ATOMIC(uint64_t) *key_of(struct place place) { return &place.segment->keys[place.index]; }

static unsigned segment_number(uint64_t hash, unsigned level) {
  return (1u << level) - 1 + (unsigned)(hash & low_bits(level));
}
static unsigned first_of_bucket(uint64_t hash) {
  return (unsigned)(hash >> BUCKET_SHIFT) * BUCKET_SAMPLES;
}

/* acquire: the zeroes in it; pairs with make_segment. */
static struct sample_segment *segment_if_any(unsigned number) {
  return load_acquire(&profile_state.sample_segments[number]);
}

static struct sample_segment *make_segment(unsigned number) {
  struct sample_segment *made = profile_take_piece(TABLE_SAMPLES, sizeof *made), *first = NULL;
  if (!made) return NULL;
  /* release: the zeroes in it; pairs with segment_if_any. */
  if (cas_strong_acq_rel(&profile_state.sample_segments[number], &first, made)) {
    fetch_add_relaxed(&profile_state.sample_segment_count, 1);
    return made;
  }
  profile_keep_piece(TABLE_SAMPLES, made);
  return first;
}

/* A free place of the bucket becomes ours. */
static struct place claim(struct sample_segment *segment, unsigned first) {
  for (unsigned index = first; index < first + BUCKET_SAMPLES; index++) {
    uint64_t key = SAMPLE_KEY_FREE;
    /* acq_rel: whoever had the place has read what it held; pairs with samples_remove. */
    if (load_relaxed(&segment->keys[index]) == SAMPLE_KEY_FREE &&
        cas_strong_acq_rel(&segment->keys[index], &key, SAMPLE_KEY_BUSY))
      return (struct place){segment, index};
  }
  return (struct place){NULL, 0};
}

static struct place take_place(uint64_t hash) {
  struct place place = {NULL, 0};
  for (unsigned level = 0; level < SAMPLE_LEVELS && !place.segment; level++) {
    unsigned number = segment_number(hash, level);
    struct sample_segment *segment = segment_if_any(number);
    if (!segment) segment = make_segment(number);
    if (segment) place = claim(segment, first_of_bucket(hash));
  }
  return place;
}

static struct place find_in(struct sample_segment *segment, unsigned first, uintptr_t address) {
  for (unsigned index = first; index < first + BUCKET_SAMPLES; index++)
    /* acquire: the sample; pairs with samples_add. */
    if ((load_acquire(&segment->keys[index]) & SAMPLE_ADDRESS_MASK) == address)
      return (struct place){segment, index};
  return (struct place){NULL, 0};
}

static struct place find(uintptr_t address) {
  uint64_t hash = mix_bits(address);
  struct place place = {NULL, 0};
  for (unsigned level = 0; level < SAMPLE_LEVELS && !place.segment; level++) {
    struct sample_segment *segment = segment_if_any(segment_number(hash, level));
    if (segment) place = find_in(segment, first_of_bucket(hash), address);
  }
  return place;
}

/* ---- halving ---------------------------------------------------------------------------------------------------- */

static ATOMIC(uint32_t) is_halving; /* by one thread at a time: twice at once would be a quarter */

enum { HALVINGS_MAX = 62 }; /* nobody lives so long */

/* What comes later is thinned as what is there was, or the table would hold the youngest alone: of 2^thinning new samples one is
 * kept.  Less again when most of what was there then has been freed. */
static ATOMIC(uint32_t) thinning;
static ATOMIC(uint64_t) samples_then;

enum { FEW_SAMPLES = 1024 }; /* there is room for many times as many */

static void thin(uint64_t live) {
  uint32_t before = load_relaxed(&thinning);
  store_relaxed(&samples_then, live);
  if (before < HALVINGS_MAX) store_relaxed(&thinning, before + 1);
}

static uint32_t thinning_now(void) {
  uint32_t now = load_relaxed(&thinning);
  uint64_t live = load_relaxed(&profile_state.live_samples);
  if (LIKELY(!now) || (live >= FEW_SAMPLES && live >= load_relaxed(&samples_then) / 4)) return now;
  store_relaxed(&samples_then, live * 2);
  /* acq_rel: orders nothing; of threads that see it at once one goes on. */
  cas_strong_acq_rel(&thinning, &now, now - 1);
  return now;
}

/* Whoever frees the block meanwhile is faster, or finds no sample, or one that counts double. */
static void throw_coin(ATOMIC(uint64_t) *place, bool coin) {
  uint64_t key = load_relaxed(place);
  if (key == SAMPLE_KEY_FREE || key == SAMPLE_KEY_BUSY) return;
  bool goes = coin || key >> SAMPLE_HALVINGS_SHIFT == HALVINGS_MAX;
  uint64_t doubled = key + (UINT64_C(1) << SAMPLE_HALVINGS_SHIFT);
  /* acq_rel: orders nothing; of two that change a key one goes on. */
  bool is_changed = cas_strong_acq_rel(place, &key, goes ? SAMPLE_KEY_FREE : doubled);
  if (goes && is_changed) fetch_sub_relaxed(&profile_state.live_samples, 1);
}

static bool halve(uint64_t *random) {
  uint32_t nobody = 0;
  /* acq_rel: orders nothing; one thread goes on. */
  if (!cas_strong_acq_rel(&is_halving, &nobody, 1)) return false;
  for (unsigned number = 0; number < SAMPLE_SEGMENTS; number++) {
    struct sample_segment *segment = segment_if_any(number);
    for (unsigned index = 0; segment && index < SEGMENT_SAMPLES; index++)
      throw_coin(&segment->keys[index], mix_bits(random_next(random)) >> 63);
  }
  fetch_add_relaxed(&profile_state.halvings, 1);
  thin(load_relaxed(&profile_state.live_samples));
  store_relaxed(&is_halving, 0);
  return true;
}

/* ---- samples ---------------------------------------------------------------------------------------------------- */

bool samples_add(uintptr_t address, const struct profile_sample *sample, uint64_t *random) {
  uint64_t hash = mix_bits(address), halvings = thinning_now();
  if (UNLIKELY(halvings) && random_next(random) >> (64 - halvings)) return true; /* thinned out */
  struct place place = take_place(hash);
  for (; !place.segment && segment_if_any(0); place = take_place(hash)) {
    if (!halve(random)) return false;
    halvings++;
    if (random_next(random) >> 63) return true; /* it was in that half */
  }
  if (!place.segment) return false;
  place.segment->samples[place.index] = *sample;
  fetch_add_relaxed(&profile_state.live_samples, 1);
  /* release: the sample before; pairs with find_in. */
  store_release(key_of(place), address | halvings << SAMPLE_HALVINGS_SHIFT);
  return true;
}

bool samples_remove(uintptr_t address, struct profile_sample *sample, unsigned *halvings) {
  struct place place = find(address);
  if (!place.segment) return false;
  *sample = place.segment->samples[place.index];
  uint64_t key = load_relaxed(key_of(place));
  do {
    if ((key & SAMPLE_ADDRESS_MASK) != address) return false; /* a coin, or a double free */
    /* release: the sample has been read; pairs with claim. */
  } while (!cas_weak_acq_rel(key_of(place), &key, SAMPLE_KEY_FREE));
  fetch_sub_relaxed(&profile_state.live_samples, 1);
  *halvings = (unsigned)(key >> SAMPLE_HALVINGS_SHIFT);
  return true;
}

void samples_after_fork(void) { store_relaxed(&is_halving, 0); }
