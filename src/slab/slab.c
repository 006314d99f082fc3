#include "slab/slab.h"

#include <string.h>

#include "report/report.h"
#include "slab/pages.h"

RESIDENT void slab_own(struct slab *slab, struct owner *owner) {
  owner_gains_slab(owner, slab);
  slab_set_map_entries(slab, owner_slab_tag(owner));
  store_relaxed(&slab->held_by, map_entry(owner->tag, slab->class));
  /* seq: all writes of make_slab before the owner is seen; pairs with pending_enqueue's load. */
  store_seq(&slab->owner, owner);
}

/* ---- faults ---------------------------------------------------------------------------------- */

struct block_description slab_describe(const struct slab *slab, uintptr_t address) {
  size_t index = (address - slab->base) / slab->block_bytes;
  const struct owner *owner = load_relaxed(&slab->owner);
  return (struct block_description){.base = slab->base + index * slab->block_bytes,
                                    .block_bytes = slab->block_bytes,
                                    .tier = class_tier_name(slab->class),
                                    .class_number = slab->class,
                                    .thread_id = owner_thread_id(owner),
                                    .heap_name = owner ? owner->name : NULL};
}

COLD bool slab_fail_double_free(const struct slab *slab, unsigned word, uint64_t twice) {
  size_t index = word * 64 + lowest_bit(twice);
  struct block_description block = slab_describe(slab, slab->base + index * slab->block_bytes);
  report_double_free("free", block.base, &block);
  return false;
}

COLD bool slab_fail_pointer(const struct slab *slab, uintptr_t address, const char *verb) {
  struct block_description block = slab_describe(slab, address);
  if (address - slab->base >= (size_t)slab->capacity * slab->block_bytes)
    report_invalid_pointer(verb, address); /* the slab's unused tail */
  else
    report_no_block(verb, address, &block);
  return false;
}

RESIDENT unsigned slab_index_of(const struct slab *slab, uintptr_t block, const char *verb) {
  unsigned index;
  if (LIKELY(slab_has_block(slab, block, &index))) return index;
  slab_fail_pointer(slab, block, verb);
  return NO_BLOCK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Moves blocks of one word, lowest first, downwards from `next` to `first` at most; returns the
 * remaining bits. */
static uint64_t take_scattered(uint64_t bits, uintptr_t word_base, size_t block_bytes, void **first,
                               void ***next) {
  void **at = *next;
  for (; bits && at != first; bits &= bits - 1)
    *--at = (void *)(word_base + lowest_bit(bits) * block_bytes);
  *next = at;
  return bits;
}

/* Does the same for adjacent bits: fresh slabs, blocks freed in order. */
static uint64_t take_neighbours(uint64_t bits, uintptr_t word_base, size_t block_bytes,
                                void **first, void ***next) {
  unsigned low = lowest_bit(bits), blocks = count_low_ones(bits >> low);
  if (blocks > (size_t)(*next - first)) blocks = (unsigned)(*next - first);
  uintptr_t block = word_base + low * block_bytes;
  void **at = *next, **end = at - blocks;
  for (; at - end >= 4; block += 4 * block_bytes) {
    at -= 4;
    at[3] = (void *)block;
    at[2] = (void *)(block + block_bytes);
    at[1] = (void *)(block + 2 * block_bytes);
    at[0] = (void *)(block + 3 * block_bytes);
  }
  for (; at != end; block += block_bytes) *--at = (void *)block;
  *next = at;
  return bits & ~(low_bits(blocks) << low);
}

/* The most bytes in a batch of fresh blocks: a page, or that part of the class's slabs. */
enum { FRESH_BATCH_BYTES = 4096, FRESH_BATCH_DIVISOR = 32 };

static unsigned fresh_batch(const struct slab *slab, const struct owner *owner) {
  size_t slabs = load_relaxed(&owner->bins[slab->class].slab_count);
  size_t bytes = slabs * slots_of_class(slab->class) * GRANULE_BYTES / FRESH_BATCH_DIVISOR;
  if (bytes < FRESH_BATCH_BYTES) bytes = FRESH_BATCH_BYTES;
  return slab->block_bytes < bytes ? (unsigned)(bytes / slab->block_bytes) : 1;
}

RESIDENT unsigned slab_batch(const struct slab *slab, const struct owner *owner, unsigned wanted) {
  unsigned reusable = slab_reusable(slab), most = reusable ? reusable : fresh_batch(slab, owner);
  return wanted < most ? wanted : most;
}

/* Counts blocks that have left `local`. */
INLINE void note_taken(struct slab *slab, struct owner *owner, void *const *blocks,
                       unsigned block_count) {
  slab_set_free(slab, slab->free_local - block_count);
  add_single_writer(&owner->bytes_out, (int64_t)block_count * slab->block_bytes);
  if (UNLIKELY(slab->has_free_pages)) pages_note_taken(slab, blocks, block_count);
  ASSERT(slab_is_valid(slab));
}

RESIDENT unsigned slab_take(struct slab *slab, struct owner *owner, void **blocks,
                            unsigned wanted) {
  ASSERT(slab_is_valid(slab));
  unsigned reusable = slab_reusable(slab);
  if (wanted > slab->free_local) wanted = slab->free_local;
  if (wanted > reusable) slab->handed_out = (uint16_t)(slab->handed_out + wanted - reusable);
  const size_t block_bytes = slab->block_bytes;
  void **next = blocks + wanted;
  unsigned word = slab->first_word;
  while (next != blocks) {
    uint64_t bits = slab->local[word];
    uintptr_t word_base = slab->base + (size_t)word * 64 * block_bytes;
    if (are_neighbours(bits))
      bits = take_neighbours(bits, word_base, block_bytes, blocks, &next);
    else
      bits = take_scattered(bits, word_base, block_bytes, blocks, &next);
    slab->local[word] = bits;
    if (!bits) word++;
  }
  slab->first_word = (uint8_t)(word < slab->word_count ? word : slab->word_count - 1u);
  store_relaxed(&owner->bins[slab->class].has_served, true); /* read without the latch */
  note_taken(slab, owner, blocks, wanted);
  return wanted;
}

/* Blocks, neighbours from a multiple of this number on, that end where a cache line ends. */
static unsigned blocks_a_line(size_t block_bytes) {
  unsigned blocks = CACHE_LINE_BYTES >> lowest_bit(block_bytes);
  return blocks ? blocks : 1;
}

/* Those of the bits that make whole groups of 1, 2, 4 or 8. */
static uint64_t whole_groups(uint64_t bits, unsigned group) {
  for (unsigned step = 1; step < group; step *= 2) bits &= bits >> step;
  return (bits & UINT64_MAX / low_bits(group)) * low_bits(group);
}

unsigned slab_lend(struct slab *slab, struct owner *owner, void **blocks, unsigned wanted) {
  ASSERT(slab_is_valid(slab));
  const size_t block_bytes = slab->block_bytes;
  const unsigned group = blocks_a_line(block_bytes), handed_out = slab->handed_out;
  wanted -= wanted % group;
  void **next = blocks + wanted;
  for (unsigned word = slab->first_word; next != blocks && word * 64 < handed_out; word++) {
    unsigned left = handed_out - word * 64;
    uint64_t bits = whole_groups(slab->local[word] & low_bits(left < 64 ? left : 64), group);
    slab->local[word] &= ~bits;
    slab->local[word] |= take_scattered(bits, slab->base + (size_t)word * 64 * block_bytes,
                                        block_bytes, blocks, &next);
  }
  unsigned lent = (unsigned)(blocks + wanted - next);
  memmove(blocks, next, lent * sizeof *blocks);
  note_taken(slab, owner, blocks, lent);
  return lent;
}

/* Fresh blocks come after all others, in order. */
void *slab_take_first(struct slab *slab, struct owner *owner) {
  ASSERT(slab_is_valid(slab) && slab->free_local);
  unsigned word = slab->first_word;
  while (UNLIKELY(!slab->local[word])) word++;
  unsigned index = word * 64 + lowest_bit(slab->local[word]);
  slab->local[word] &= slab->local[word] - 1;
  slab->first_word = (uint8_t)word;
  if (index >= slab->handed_out) slab->handed_out = (uint16_t)(index + 1);
  void *block = (void *)(slab->base + (size_t)index * slab->block_bytes);
  note_taken(slab, owner, &block, 1);
  return block;
}

/* The first free block from a random one on. */
void *slab_take_at_random(struct slab *slab, struct owner *owner, uint64_t random) {
  unsigned from = (unsigned)((random >> 32) * slab->capacity >> 32), word = from / 64;
  uint64_t bits = slab->local[word] & ~low_bits(from % 64);
  while (!bits) {
    word = word + 1u < slab->word_count ? word + 1 : 0;
    bits = slab->local[word];
  }
  unsigned bit = lowest_bit(bits);
  slab->local[word] &= ~(UINT64_C(1) << bit);
  slab->handed_out = slab->capacity;
  void *block = (void *)(slab->base + ((size_t)word * 64 + bit) * slab->block_bytes);
  note_taken(slab, owner, &block, 1);
  return block;
}

static void add_local(struct slab *slab, struct owner *owner, unsigned word, uint64_t bits) {
  uint64_t before = slab->local[word];
  if (UNLIKELY(before & bits)) slab_fail_double_free(slab, word, before & bits);
  slab->local[word] = before | bits;
  slab_note_freed(slab, owner, count_bits(bits & ~before), slab->block_bytes);
  slab_note_word(slab, word);
}

/* Wholly free slabs that stay with their class, against releasing and acquiring them in turns: a
 * load's memory varies by a part of its size. Rounds of purging take them after a while. */
enum { FREE_SLABS_KEPT = 1, FREE_SLABS_DIVISOR = 8 };

RESIDENT void slab_place(struct slab *slab, struct owner *owner) {
  ASSERT(slab_is_valid(slab));
  struct bin *bin = &owner->bins[slab->class];
  if (slab == bin->current) return;
  owner_set_spare(owner, slab->class, true);
  if (slab->free_local != slab->capacity) {
    if (!slab->is_listed) slab_list(slab, owner);
    return;
  }
  uint32_t enough = FREE_SLABS_KEPT + load_relaxed(&bin->slab_count) / FREE_SLABS_DIVISOR;
  bool has_enough = bin->free_count >= enough;
  if (slab->is_listed) { /* to the end of the list, if it stays */
    bin->free_count++;
    slab_unlist(slab, owner);
  }
  if (!has_enough || !slab_try_release(slab, owner)) slab_list(slab, owner);
}

/* Sets the bits of blocks from `at` on that are one of the `left` of a word whose first block is at
 * `base`, up to the first that is not, or is set already. The word stays in a register: most blocks
 * come in runs. */
INLINE void *const *set_run(uint64_t *word, uintptr_t base, unsigned left,
                            const struct slab_shape *shape, void *const *at, void *const *end) {
  const uint64_t inverse = shape->inverse;
  const unsigned shift = shape->shift;
  uint64_t bits = *word;
  for (; at != end; at++) {
    uint64_t bit = divide_exactly((uintptr_t)*at - base, inverse, shift);
    if (UNLIKELY(bit >= left) || UNLIKELY(add_bit(&bits, bit))) break;
  }
  *word = bits;
  return at;
}

/* Sets the bits of the first of blocks[0] … that are this slab's. */
static unsigned set_bits(struct slab *slab, struct owner *owner, void *const *blocks,
                         unsigned block_count) {
  const struct slab_shape *shape = &slab_shapes[slab->class];
  void *const *at = blocks, *const *const end = blocks + block_count;
  unsigned twice = 0;
  while (at != end) {
    size_t index = slab_block_index(shape, (uintptr_t)*at - slab->base);
    if (UNLIKELY(index >= shape->capacity)) break;
    unsigned word = (unsigned)(index / 64), left = shape->capacity - word * 64;
    uint64_t bits = slab->local[word];
    at++;
    if (UNLIKELY(add_bit(&bits, index))) {
      slab_fail_double_free(slab, word, UINT64_C(1) << index % 64);
      twice++;
      continue;
    }
    uintptr_t word_base = slab->base + (size_t)word * 64 * shape->block_bytes;
    at = set_run(&bits, word_base, left < 64 ? left : 64, shape, at, end);
    slab->local[word] = bits;
    slab_note_word(slab, word);
  }
  unsigned set = (unsigned)(at - blocks);
  slab_note_freed(slab, owner, set - twice, shape->block_bytes);
  return set;
}

RESIDENT unsigned slab_put(struct slab *slab, struct owner *owner, void *const *blocks,
                           unsigned block_count) {
  unsigned before = slab->free_local, put = set_bits(slab, owner, blocks, block_count);
  if (LIKELY(slab->free_local != before)) slab_place(slab, owner); /* else all were free already */
  return put;
}

RESIDENT unsigned slab_collect(struct slab *slab, struct owner *owner) {
  ASSERT(slab_is_valid(slab));
  unsigned before = slab->free_local;
  for (unsigned word = 0; word < slab->word_count; word++) {
    /* seq, both: after `queued` was cleared, if it was; pairs with the OR in slab_free_remote, and
     * brings the freeing threads' earlier writes to the blocks. */
    if (!load_seq(&slab->remote[word])) continue;
    uint64_t bits = exchange_seq(&slab->remote[word], 0);
    if (bits) add_local(slab, owner, word, bits);
  }
  unsigned collected = slab->free_local - before;
  if (collected) slab_place(slab, owner);
  return collected;
}

unsigned slab_count_remote(const struct slab *slab) {
  unsigned blocks = 0;
  for (unsigned word = 0; word < slab->word_count; word++)
    blocks += count_bits(load_relaxed(&slab->remote[word]));
  return blocks;
}

/* ---- the partial list ------------------------------------------------------------------------ */

RESIDENT void slab_list(struct slab *slab, struct owner *owner) {
  struct bin *bin = &owner->bins[slab->class];
  struct slab *first = bin->partial, *last = slab;
  ASSERT(!slab->is_listed && slab != bin->current && slab->free_local);
  if (first) {
    last = first->previous;
    first->previous = slab;
  }
  slab->previous = last;
  slab->next = first;
  slab->is_listed = true;
  bin->partial_count++;
  if (slab->free_local != slab->capacity) {
    bin->partial = slab;
    return;
  }
  bin->free_count++;
  if (first) slab->next = NULL;
  *(first ? &last->next : &bin->partial) = slab;
}

RESIDENT void slab_unlist(struct slab *slab, struct owner *owner) {
  struct bin *bin = &owner->bins[slab->class];
  ASSERT(slab->is_listed);
  struct slab *next = slab->next, *previous = slab->previous;
  if (slab == bin->partial)
    bin->partial = next;
  else
    previous->next = next;
  if (!next) next = bin->partial; /* the first knows the last */
  if (next) next->previous = previous;
  if (UNLIKELY(owner->page_cursor == slab)) owner->page_cursor = slab->next;
  bin->partial_count--;
  bin->free_count -= slab->free_local == slab->capacity;
  slab->is_listed = false;
}

void slab_rotate(struct bin *bin, struct slab *first) {
  struct slab *before = first->previous;
  if (first == bin->partial || bin->free_count) return;
  bin->partial->previous->next = bin->partial; /* the first knows the last */
  before->next = NULL;
  bin->partial = first;
}

bool slab_try_release(struct slab *slab, struct owner *owner) {
  ASSERT(slab->free_local == slab->capacity && load_relaxed(&slab->owner) == owner);
  /* The right to queue is also the right to release: a slab is never in a queue and in the pool at
   * once. */
  if (load_relaxed(&slab->queued) != 0 || exchange_seq(&slab->queued, 1) != 0) return false;
  if (slab->is_listed) slab_unlist(slab, owner);
  if (owner->bins[slab->class].current == slab) show(&owner->bins[slab->class], current, NULL);
  owner_loses_slab(owner, slab);
  if (UNLIKELY(slab->has_free_pages)) { /* in the pool all of it counts as resident */
    show(slab, given_pages, 0);
    slab->waiting_pages = 0;
    slab->has_free_pages = false;
  }
  slab_set_map_entries(slab, MAP_TAG_NONE);
  store_relaxed(&slab->held_by, 0);
  /* seq, both: pairs with pending_enqueue, whose caller may come late and must see that the slab
   * has no owner, or has one again. */
  store_seq(&slab->owner, NULL);
  store_seq(&slab->queued, 0);
  release_slab(slab, owner->free_age_ms, &owner->counters);
  return true;
}
