#include "slab/pages.h"

#include "os/os.h"

static unsigned page_shift(void) { return lowest_bit(os_page_bytes()); }

static uint64_t bits_between(unsigned first, unsigned last) {
  return low_bits(last + 1) & ~low_bits(first);
}

/* The pages that blocks `first` to `last` lie in, wholly or in part. */
static uint64_t pages_of_bytes(uintptr_t first, uintptr_t last) {
  return bits_between((unsigned)(first >> page_shift()), (unsigned)(last >> page_shift()));
}

/* Whether blocks `first` to `last` are free. */
static bool are_free(const struct slab *slab, unsigned first, unsigned last) {
  uint64_t wanted = ~low_bits(first % 64);
  for (unsigned word = first / 64; word < last / 64; word++, wanted = ~UINT64_C(0))
    if (~slab->local[word] & wanted) return false;
  return !(~slab->local[last / 64] & wanted & low_bits(last % 64 + 1));
}

/* If there are fewer blocks than pages: all pages except those of used blocks. */
static uint64_t free_pages_of_few(const struct slab *slab, uint32_t end) {
  uint64_t used = 0;
  for (uint64_t rest = ~slab->local[0] & low_bits(slab->capacity); rest; rest &= rest - 1) {
    uintptr_t first = (uintptr_t)lowest_bit(rest) * slab->block_bytes;
    used |= pages_of_bytes(first, first + slab->block_bytes - 1);
  }
  return pages_of_bytes(0, end - 1) & ~used;
}

/* The pages of which all blocks, wholly or partly inside, are free. */
static uint64_t free_pages(const struct slab *slab) {
  const uint32_t page_bytes = (uint32_t)os_page_bytes();
  const uint32_t end = (uint32_t)slab->capacity * slab->block_bytes;
  if (slab->block_bytes > page_bytes && slab->capacity <= 64) return free_pages_of_few(slab, end);
  uint64_t pages = 0, bit = 1;
  for (uint32_t begin = 0; begin < end; begin += page_bytes, bit <<= 1) {
    uint32_t last = end - begin < page_bytes ? end - 1 : begin + page_bytes - 1;
    if (are_free(slab, begin / slab->block_bytes, last / slab->block_bytes)) pages |= bit;
  }
  return pages;
}

static void check_laws(const struct slab *slab) {
  ASSERT(slab_is_valid(slab));
  ASSERT(!((slab->waiting_pages | slab->given_pages) & ~free_pages(slab)));
  (void)slab;
}

/* The remaining budget of a scan of an owner's slabs. */
struct scan {
  struct purge *purge;
  uint32_t age_ms;           /* for pages first seen free */
  size_t calls, least_bytes; /* of neighbours that one call gives */
};

/* Gives neighbours in one call, including pages between them that were given before. Pages that the
 * system refuses, for example locked ones, are not offered again before they have been in use.
 * False when the calls were used up before. */
static bool give(struct slab *slab, struct scan *scan) {
  uint64_t rest = slab->waiting_pages;
  while (rest) {
    if (!scan->calls || !purge_may_go_on(scan->purge)) return false;
    unsigned first = lowest_bit(rest);
    unsigned run = count_low_ones((slab->waiting_pages | slab->given_pages) >> first);
    uint64_t pages = rest & bits_between(first, first + run - 1);
    rest &= ~pages;
    size_t span = (size_t)(highest_bit(pages) - first + 1) << page_shift();
    size_t bytes = (size_t)count_bits(pages) << page_shift();
    if (bytes < scan->least_bytes) {
      scan->purge->work_remains = true; /* it grows, or gets old */
      continue;
    }
    scan->calls--;
    purge_note_call(scan->purge);
    slab->waiting_pages &= ~pages;
    show(slab, given_pages, slab->given_pages | pages);
    superslab_refuse_huge(superslab_of_granule(granule_of(slab->base)));
    if (!os_purge((void *)(slab->base + ((uintptr_t)first << page_shift())), span)) continue;
    fetch_add_relaxed(&totals.given_page_bytes, bytes);
    purge_account(scan->purge, bytes);
  }
  return true;
}

static bool scan_slab(struct slab *slab, struct scan *scan) {
  bool is_done = true;
  if (!slab->waiting_pages && (size_t)slab->free_local * slab->block_bytes >= os_page_bytes()) {
    slab->waiting_pages = free_pages(slab) & ~slab->given_pages;
    slab->waiting_since_ms = scan->purge->now_ms - scan->age_ms;
    slab->has_free_pages |= slab->waiting_pages != 0;
  }
  if (slab->waiting_pages &&
      purge_is_due_after(scan->purge, slab->waiting_since_ms, scan->purge->page_decay_ms)) {
    bool is_early = scan->purge->now_ms - slab->waiting_since_ms < scan->purge->page_decay_ms;
    scan->least_bytes = is_early ? scan->purge->early_run_bytes : 0;
    is_done = give(slab, scan);
  }
  check_laws(slab);
  return is_done;
}

void pages_note_taken(struct slab *slab, void *const *blocks, unsigned block_count) {
  uint64_t used = 0;
  for (unsigned index = 0; slab->given_pages && index < block_count; index++) {
    uintptr_t offset = (uintptr_t)blocks[index] - slab->base;
    used |= pages_of_bytes(offset, offset + slab->block_bytes - 1);
  }
  uint64_t refaulted = (uint64_t)count_bits(slab->given_pages & used) << page_shift();
  if (refaulted) fetch_add_relaxed(&totals.refaulted_bytes, refaulted);
  show(slab, given_pages, slab->given_pages & ~used);
  slab->waiting_pages = 0;
  slab->has_free_pages = slab->given_pages != 0;
  check_laws(slab);
}

/* From the cursor to the end of the class's list; false when slabs or calls were used up before. */
static bool scan_class(struct owner *owner, struct scan *scan) {
  const struct bin *bin = &owner->bins[owner->page_class];
  struct slab *slab = owner->page_cursor;
  if (!slab) {
    if (bin->current && !scan_slab(bin->current, scan)) return false;
    slab = bin->partial;
  }
  for (; slab; slab = slab->next, scan->purge->slabs_left--) {
    owner->page_cursor = slab;
    if (!scan->purge->slabs_left || !scan->calls || !scan_slab(slab, scan)) return false;
  }
  owner->page_cursor = NULL;
  return true;
}

/* The scan ends in the class in which it begins, before its start. */
bool pages_scan(struct owner *owner, struct purge *purge, uint32_t age_ms) {
  size_t calls = purge->calls_left < PAGE_CALLS_A_SCAN ? purge->calls_left : PAGE_CALLS_A_SCAN;
  struct scan scan = {purge, age_ms, calls, 0};
  for (unsigned turn = 0; turn <= SLAB_CLASS_COUNT; turn++) {
    if (!scan_class(owner, &scan)) {
      purge->work_remains = true;
      purge->is_cut |= purge->slabs_left != 0;
      return !purge->slabs_left;
    }
    owner->page_class = (owner->page_class + 1) % SLAB_CLASS_COUNT;
  }
  return true;
}
