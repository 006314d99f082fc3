#include "hardened/nothing.h"

#include "base/bits.h"
#include "map/metadata.h"
#include "map/window.h"
#include "os/os.h"
#include "report/report.h"

enum { WORDS = NOTHING_MAX / 64 };

ATOMIC(uintptr_t) nothing_begin;
static ATOMIC(uint64_t) *taken;    /* WORDS of them; constant from nothing_begin on */
static ATOMIC(uint32_t) cursor;    /* the unit where the next search begins: a hint */
static ATOMIC(uint32_t) was_tried; /* relaxed: one thread makes the region */

/* 0 also while another thread makes the region. */
COLD static uintptr_t start(void) {
  if (load_relaxed(&was_tried) || fetch_or_relaxed(&was_tried, 1)) return 0;
  taken = metadata_allocate(WORDS * sizeof *taken);
  void *region = taken ? window_reserve_outside(NOTHING_BYTES) : NULL;
  store_release(&nothing_begin,
                (uintptr_t)region); /* the bits; pairs with nothing_covers and find_begin */
  return (uintptr_t)region;
}

static uintptr_t find_begin(void) {
  uintptr_t begin = load_acquire(&nothing_begin); /* the bits; pairs with start */
  return LIKELY(begin) ? begin : start();
}

uintptr_t nothing_take(size_t alignment) {
  uintptr_t begin = find_begin();
  unsigned stride = alignment > NOTHING_UNIT_BYTES ? (unsigned)(alignment / NOTHING_UNIT_BYTES) : 1;
  /* Bits of the units whose address is a multiple of the alignment: a word's units begin at
   * multiples of 1,024. */
  uint64_t aligned = stride == 64 ? 1 : ~UINT64_C(0) / low_bits(stride);
  uint32_t at = load_relaxed(&cursor) % NOTHING_MAX;
  for (unsigned tries = 0; begin && tries <= WORDS; tries++) {
    uint32_t word = at / 64;
    uint64_t units = ~load_relaxed(&taken[word]) & aligned & ~low_bits(at % 64);
    if (!units) {
      at = (word + 1) % WORDS * 64;
      continue;
    }
    unsigned unit = lowest_bit(units);
    /* seq (relaxed would do): of two threads one finds it clear; nothing is read or written
     * there. */
    if (fetch_or_seq(&taken[word], UINT64_C(1) << unit) >> unit & 1) continue;
    store_relaxed(&cursor, word * 64 + unit + 1);
    return begin + ((size_t)word * 64 + unit) * NOTHING_UNIT_BYTES;
  }
  return 0;
}

bool nothing_check(uintptr_t address, const char *verb, bool is_given) {
  size_t unit = (address - load_relaxed(&nothing_begin)) / NOTHING_UNIT_BYTES;
  uint64_t bit = UINT64_C(1) << unit % 64;
  if (UNLIKELY(address % NOTHING_UNIT_BYTES)) {
    report_invalid_pointer(verb, address);
    return false;
  }
  /* seq (relaxed would do): of two threads that free it one finds it set.  There is nothing but the
   * bit. */
  uint64_t before =
      is_given ? fetch_and_seq(&taken[unit / 64], ~bit) : load_relaxed(&taken[unit / 64]);
  if (LIKELY(before & bit)) return true;
  struct block_description block = {.base = address, .tier = "tiny"};
  report_double_free(verb, address, &block);
  return false;
}
