#include "slab/slab.h"

#include "pool/slab_pool.h"
#include "report/report.h"
#include "slab/pending.h"

static void set_map_entries(const struct slab *slab, uint32_t tag) {
  size_t granule = granule_of(slab->base);
  for (unsigned slot = 0; slot < slab->slot_count; slot++)
    owner_map_set(granule + slot, tag | slab->class);
}

void slab_own(struct slab *slab, struct owner *owner) {
  owner->bins[slab->class].slab_count++;
  set_map_entries(slab, owner->tag);
  /* seq: everything make_slab wrote before the owner is seen; pairs with pending_enqueue's load. */
  store_seq(&slab->owner, owner);
}

/* ---- faults ---------------------------------------------------------------------------------------- */

static struct block_description describe(const struct slab *slab, unsigned index) {
  return (struct block_description){.base = slab->base + (size_t)index * slab->block_bytes,
                                    .block_bytes = slab->block_bytes,
                                    .tier = class_tier_name(slab->class),
                                    .class_number = slab->class};
}

COLD static void fail_double_free(const struct slab *slab, unsigned word, uint64_t twice) {
  struct block_description block = describe(slab, word * 64 + lowest_bit(twice));
  report_double_free("free", block.base, &block);
}

COLD static void fail_misaligned(const struct slab *slab, uintptr_t address, const char *verb) {
  unsigned index = slab_block_index(slab, address - slab->base);
  if (index >= slab->capacity) report_invalid_pointer(verb, address); /* the slab's unused tail */
  struct block_description block = describe(slab, index);
  report_misaligned_pointer(verb, address, &block);
}

unsigned slab_index_of(const struct slab *slab, uintptr_t block, const char *verb) {
  unsigned index;
  if (UNLIKELY(!slab_has_block(slab, block, &index))) fail_misaligned(slab, block, verb);
  return index;
}

/* ---- blocks ----------------------------------------------------------------------------------------- */

unsigned slab_take(struct slab *slab, struct owner *owner, void **blocks, unsigned wanted) {
  if (wanted > slab->free_local) wanted = slab->free_local;
  void **next = blocks + wanted;
  unsigned word = slab->first_word;
  while (next != blocks) {
    uint64_t bits = slab->local[word];
    uintptr_t word_base = slab->base + (size_t)word * 64 * slab->block_bytes;
    for (; bits && next != blocks; bits &= bits - 1)
      *--next = (void *)(word_base + lowest_bit(bits) * (size_t)slab->block_bytes);
    slab->local[word] = bits;
    if (!bits) word++;
  }
  slab->first_word = (uint8_t)(word < slab->word_count ? word : slab->word_count - 1u);
  slab->free_local = (uint16_t)(slab->free_local - wanted);
  add_single_writer(&owner->bytes_out, (int64_t)wanted * slab->block_bytes);
  return wanted;
}

static void add_local(struct slab *slab, struct owner *owner, unsigned word, uint64_t bits) {
  uint64_t before = slab->local[word];
  if (UNLIKELY(before & bits)) fail_double_free(slab, word, before & bits);
  slab->local[word] = before | bits;
  unsigned blocks = count_bits(bits);
  slab->free_local = (uint16_t)(slab->free_local + blocks);
  add_single_writer(&owner->bytes_out, -((int64_t)blocks * slab->block_bytes));
  if (word < slab->first_word) slab->first_word = (uint8_t)word;
}

/* Wholly free slabs that stay with their class, against releasing and acquiring them in turns: a load
 * swings by some part of what it holds.  Rounds of purging take them after a while. */
enum { FREE_SLABS_KEPT = 1, FREE_SLABS_DIVISOR = 8 };

static unsigned free_slabs_to_keep(const struct bin *bin) {
  return FREE_SLABS_KEPT + bin->slab_count / FREE_SLABS_DIVISOR;
}

/* After blocks came back: where the slab belongs now. */
static void place(struct slab *slab, struct owner *owner) {
  struct bin *bin = &owner->bins[slab->class];
  if (slab == bin->current) return;
  if (!slab->is_listed)
    slab_list(slab, owner);
  else if (slab->free_local == slab->capacity)
    bin->free_count++;
  if (slab->free_local == slab->capacity && bin->free_count > free_slabs_to_keep(bin))
    slab_try_release(slab, owner);
}

void slab_put(struct slab *slab, struct owner *owner, unsigned word, uint64_t bits) {
  add_local(slab, owner, word, bits);
  place(slab, owner);
}

unsigned slab_collect(struct slab *slab, struct owner *owner) {
  unsigned before = slab->free_local;
  for (unsigned word = 0; word < slab->word_count; word++) {
    /* seq, both: after `queued` was cleared, if it was; pairs with the OR in slab_free_remote, and brings
     * what the freeing threads did to the blocks before. */
    if (!load_seq(&slab->remote[word])) continue;
    uint64_t bits = exchange_seq(&slab->remote[word], 0);
    if (bits) add_local(slab, owner, word, bits);
  }
  unsigned collected = slab->free_local - before;
  if (collected) place(slab, owner);
  return collected;
}

unsigned slab_count_remote(const struct slab *slab) {
  unsigned blocks = 0;
  for (unsigned word = 0; word < slab->word_count; word++)
    blocks += count_bits(load_relaxed(&slab->remote[word]));
  return blocks;
}

void slab_free_remote(struct slab *slab, unsigned word, uint64_t bits, struct counters *counters) {
  /* seq: the bit before the look at `queued`; pairs with the clearing of `queued` before the exchange
   * of the word: either the owner's exchange finds our bit, or we find `queued` clear. */
  uint64_t before = fetch_or_seq(&slab->remote[word], bits);
  count_add(counters, COUNT_remote_freed_blocks, count_bits(bits));
  if (UNLIKELY(before & bits)) fail_double_free(slab, word, before & bits);
  if (load_seq(&slab->queued) == 0 && exchange_seq(&slab->queued, 1) == 0)
    pending_enqueue(slab, counters);
}

/* ---- the partial list --------------------------------------------------------------------------------- */

void slab_list(struct slab *slab, struct owner *owner) {
  struct bin *bin = &owner->bins[slab->class];
  ASSERT(!slab->is_listed && slab != bin->current && slab->free_local);
  slab->previous = NULL;
  slab->next = bin->partial;
  if (slab->next) slab->next->previous = slab;
  bin->partial = slab;
  bin->partial_count++;
  bin->free_count += slab->free_local == slab->capacity;
  slab->is_listed = true;
}

void slab_unlist(struct slab *slab, struct owner *owner) {
  struct bin *bin = &owner->bins[slab->class];
  ASSERT(slab->is_listed);
  if (slab->next) slab->next->previous = slab->previous;
  if (slab->previous)
    slab->previous->next = slab->next;
  else
    bin->partial = slab->next;
  bin->partial_count--;
  bin->free_count -= slab->free_local == slab->capacity;
  slab->is_listed = false;
}

bool slab_try_release(struct slab *slab, struct owner *owner) {
  ASSERT(slab->free_local == slab->capacity && load_relaxed(&slab->owner) == owner);
  /* The right to queue is also the right to release: no slab is in a queue and in the pool at once. */
  if (load_relaxed(&slab->queued) != 0 || exchange_seq(&slab->queued, 1) != 0) return false;
  if (slab->is_listed) slab_unlist(slab, owner);
  if (owner->bins[slab->class].current == slab) owner->bins[slab->class].current = NULL;
  owner->bins[slab->class].slab_count--;
  set_map_entries(slab, MAP_TAG_NONE);
  /* seq, both: pairs with pending_enqueue, whose caller may come late and must see that nobody owns
   * the slab, or that somebody does again. */
  store_seq(&slab->owner, NULL);
  store_seq(&slab->queued, 0);
  release_slab(slab, owner->free_age_ms, &owner->counters);
  return true;
}
