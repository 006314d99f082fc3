#include "profile/samples.h"

#include "base/bits.h"

/* ---- places ---------------------------------------------------------------------------------- */

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

/* acquire: the zeroes in it; pairs with profile_make_piece. */
static struct sample_segment *segment_if_any(unsigned number) {
  return load_acquire(&profile_state.sample_segments[number]);
}

/* Claims a free place of the bucket. */
static struct place claim(struct sample_segment *segment, unsigned first) {
  for (unsigned index = first; index < first + BUCKET_SAMPLES; index++) {
    uint64_t key = SAMPLE_KEY_FREE;
    /* acq_rel: the place's last holder has read its sample; pairs with samples_remove. */
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
    if (!segment)
      segment = profile_make_piece(TABLE_SAMPLES, &profile_state.sample_segments[number], NULL,
                                   sizeof *segment);
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

/* ---- halving --------------------------------------------------------------------------------- */

enum { HALVINGS_MAX = 62 }; /* more than a process can reach */

/* How often the table was found full, less the times taken back since. One of 2^thinning new
 * samples is kept, or the table would hold the youngest alone; samples in the table throw their
 * missing coins when their place is wanted, so that no thread ever walks through it. */
static ATOMIC(uint32_t) thinning;
static ATOMIC(uint64_t) samples_then;

enum { FEW_SAMPLES = 1024 }; /* there is room for many times as many */

/* Lowers thinning when most of the samples counted at its last change have been freed. */
static uint32_t thinning_now(void) {
  uint32_t now = load_relaxed(&thinning);
  uint64_t live = load_relaxed(&profile_state.live_samples);
  if (LIKELY(!now) || (live >= FEW_SAMPLES && live >= load_relaxed(&samples_then) / 8)) return now;
  store_relaxed(&samples_then, live * 4);
  /* acq_rel: orders nothing; of threads that see it at once one goes on. */
  cas_strong_acq_rel(&thinning, &now, now - 1);
  return now;
}

/* Called when the table is full of samples that have thrown `seen` coins: from now on each throws
 * one more. */
static void thin(uint32_t seen) {
  if (seen >= HALVINGS_MAX) return;
  /* acq_rel: orders nothing; of threads that see it at once one goes on. */
  if (!cas_strong_acq_rel(&thinning, &seen, seen + 1)) return;
  store_relaxed(&samples_then, load_relaxed(&profile_state.live_samples));
  fetch_add_relaxed(&profile_state.halvings, 1);
}

/* Whether a sample survives that number of coins; a survivor counts double for each. */
static bool survives(uint64_t coins, uint64_t *random) {
  return !coins || !(mix_bits(random_next(random)) >> (64 - coins));
}

/* A thread that frees the block meanwhile comes first, or finds no sample, or one that counts
 * more. */
static bool throw_coins(ATOMIC(uint64_t) *place, uint64_t halvings, uint64_t *random) {
  uint64_t key = load_relaxed(place), thrown = key >> SAMPLE_HALVINGS_SHIFT;
  if (key == SAMPLE_KEY_FREE || key == SAMPLE_KEY_BUSY || thrown >= halvings) return false;
  bool stays = survives(halvings - thrown, random);
  uint64_t doubled = (key & SAMPLE_ADDRESS_MASK) | halvings << SAMPLE_HALVINGS_SHIFT;
  /* acq_rel: orders nothing; of two that change a key one goes on. */
  if (!cas_strong_acq_rel(place, &key, stays ? doubled : SAMPLE_KEY_FREE) || stays) return false;
  fetch_sub_relaxed(&profile_state.live_samples, 1);
  return true;
}

/* Makes room where a sample may lie, if the coins that are due there leave any. */
static bool make_room(uint64_t hash, uint64_t halvings, uint64_t *random) {
  unsigned first = first_of_bucket(hash);
  bool has_room = false;
  for (unsigned level = 0; level < SAMPLE_LEVELS; level++) {
    struct sample_segment *segment = segment_if_any(segment_number(hash, level));
    for (unsigned index = first; segment && index < first + BUCKET_SAMPLES; index++)
      has_room |= throw_coins(&segment->keys[index], halvings, random);
  }
  return has_room;
}

/* ---- samples --------------------------------------------------------------------------------- */

int samples_throw_coins(uint64_t *random) {
  uint32_t coins = thinning_now();
  return LIKELY(!coins) || survives(coins, random) ? (int)coins : SAMPLE_THINNED_OUT;
}

bool samples_add(uintptr_t address, const struct profile_sample *sample, int coins,
                 uint64_t *random) {
  uint64_t hash = mix_bits(address), halvings = (uint64_t)coins;
  struct place place = take_place(hash);
  /* Another thread may take the room that was made. */
  for (unsigned attempt = 0; !place.segment; place = take_place(hash)) {
    if (!segment_if_any(0) || attempt++ > HALVINGS_MAX) return false;
    if (make_room(hash, halvings, random)) continue;
    thin((uint32_t)halvings++);
    if (halvings > HALVINGS_MAX || !survives(1, random)) return true;
  }
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

/* The key is busy meanwhile: threads that throw coins skip it, and if its thread never goes on a
 * place is lost. */
bool samples_resize(uintptr_t address, uint64_t requested_bytes, struct profile_sample *before,
                    unsigned *halvings) {
  struct place place = find(address);
  if (!place.segment) return false;
  uint64_t key = load_relaxed(key_of(place));
  do {
    if ((key & SAMPLE_ADDRESS_MASK) != address) return false; /* a coin */
    /* acquire: the place's last holder; pairs with samples_remove. */
  } while (!cas_weak_acq_rel(key_of(place), &key, SAMPLE_KEY_BUSY));
  struct profile_sample *sample = &place.segment->samples[place.index];
  *before = *sample;
  sample->requested_bytes = requested_bytes;
  store_release(key_of(place), key); /* the sample; pairs with find_in */
  *halvings = (unsigned)(key >> SAMPLE_HALVINGS_SHIFT);
  return true;
}
