#include "guard/guarded.h"

#include <string.h>

#include "base/bits.h"
#include "base/counters.h"
#include "config/options.h"
#include "foreign/operators.h"
#include "map/metadata.h"
#include "map/window.h"
#include "report/report.h"

/* Small blocks too are aligned as glibc's are: some programs keep bits in the pointer's last
 * four. */
enum { PATTERN = 0xA5, USUAL_ALIGNMENT = 16 };

struct guarded_region guarded_region;
RARE_DATA struct guard_report guard_report;
static struct guard_slot *slots;

/* When each slot became free, in steps of `steps`: 0 before its first block, IN_USE while it has
 * one. */
static ATOMIC(uint64_t) *free_since;
static ATOMIC(uint64_t) steps;
static ATOMIC(unsigned) used_count; /* relaxed: a hint */

enum { NO_SLOT = UINT16_MAX };
#define IN_USE UINT64_MAX

/* ---- the region ------------------------------------------------------------------------------ */

static size_t stride(void) { return guarded_region.slot_bytes + os_page_bytes(); }

static uintptr_t slot_begin(size_t index) {
  return load_relaxed(&guarded_region.begin) + os_page_bytes() + index * stride();
}

bool guarded_start(void) {
  unsigned count = (unsigned)options.guard_slots;
  size_t slot_bytes = round_up(options.guard_slot_bytes, os_page_bytes());
  size_t bytes = count * (slot_bytes + os_page_bytes()) + os_page_bytes();
  if (load_relaxed(&guarded_region.begin)) return true;
  if (!slots) slots = metadata_allocate(count * sizeof *slots);
  if (!free_since) free_since = metadata_allocate(count * sizeof *free_since);
  if (!slots || !free_since) return false;
  void *region = window_reserve_outside(bytes);
  if (!region) return false;
  guarded_region.bytes = bytes;
  guarded_region.slot_bytes = slot_bytes;
  guarded_region.slot_count = count;
  store_release(&guarded_region.begin, (uintptr_t)region); /* pairs with guarded_covers */
  return true;
}

/* ---- free slots ------------------------------------------------------------------------------ */

/* Takes the slot that has been free for the longest; NO_SLOT when there is none. A thread that a
 * fork cuts off here leaves one that the child never uses. */
static unsigned take_slot(void) {
  for (;;) {
    unsigned oldest = NO_SLOT;
    uint64_t since = IN_USE;
    for (unsigned index = 0; index < guarded_region.slot_count; index++) {
      uint64_t here = load_relaxed(&free_since[index]);
      if (here >= since) continue;
      since = here;
      oldest = index;
    }
    if (oldest == NO_SLOT) return NO_SLOT;
    /* acq_rel: one thread gets it; the slot as it was left, pairs with give_slot. */
    if (!cas_strong_acq_rel(&free_since[oldest], &since, IN_USE)) continue;
    fetch_add_relaxed(&used_count, 1);
    return oldest;
  }
}

static void give_slot(unsigned index) {
  fetch_sub_relaxed(&used_count, 1);
  /* release: earlier accesses to the slot; pairs with take_slot. */
  store_release(&free_since[index], fetch_add_relaxed(&steps, 1) + 1);
}

unsigned guarded_tenths_used(void) {
  unsigned count = guarded_region.slot_count;
  return count ? 10 * load_relaxed(&used_count) / count : 0;
}

/* ---- a block in its slot --------------------------------------------------------------------- */

/* The pages that a block lies in, which are open while it lives. */
struct pages {
  uintptr_t begin, end;
};

/* A block of no bytes has none. */
static struct pages pages_of(uintptr_t block, size_t size) {
  if (!size) return (struct pages){block, block};
  return (struct pages){round_down(block, os_page_bytes()),
                        round_up(block + size, os_page_bytes())};
}

static bool open_pages(struct pages pages) {
  return pages.begin == pages.end || os_open_pages((void *)pages.begin, pages.end - pages.begin);
}

static uintptr_t place(unsigned index, size_t size, size_t alignment, bool is_at_end) {
  uintptr_t begin = slot_begin(index);
  if (!is_at_end) return begin;
  uintptr_t last = begin + guarded_region.slot_bytes - (size ? size : 1);
  return round_down(last, alignment > USUAL_ALIGNMENT ? alignment : USUAL_ALIGNMENT);
}

bool guarded_fits(size_t size, size_t alignment) {
  if (!load_acquire(&guarded_region.begin)) return false; /* pairs with guarded_start */
  bool has_room = size <= guarded_region.slot_bytes && alignment <= os_page_bytes();
  return has_room && size <= MID_MAX_BYTES; /* callers treat larger blocks as ranges */
}

uintptr_t guarded_take(size_t size, size_t alignment, enum maker maker, bool is_at_end) {
  unsigned index = take_slot();
  if (index == NO_SLOT) return 0;
  struct guard_slot *slot = &slots[index];
  uintptr_t block = place(index, size, alignment, is_at_end);
  struct pages pages = pages_of(block, size);
  if (!open_pages(pages)) {
    give_slot(index);
    return 0;
  }
  store_relaxed(&slot->phase, GUARD_OPENING);
  slot->block = block;
  slot->size = size;
  slot->maker = maker;
  memset((void *)pages.begin, PATTERN, block - pages.begin);
  memset((void *)(block + size), PATTERN, pages.end - (block + size));
  call_stack_note(&slot->allocated, 0);
  fetch_add_relaxed(&totals.guarded_live_bytes, size);
  store_release(&slot->phase, GUARD_LIVE); /* the record before; pairs with find_live */
  os_watch_first();
  return block;
}

/* ---- reports --------------------------------------------------------------------------------- */

static bool is_freed(uint32_t phase) { return phase == GUARD_FREED || phase == GUARD_CLOSING; }

/* Where an address is: "<distance> bytes <side> the block of <size> bytes at <base> (guarded)". */
#define PLACE_FORMAT "%zu bytes %s the block of %zu bytes at %#zx (guarded)"
struct place {
  size_t distance;
  const char *side;
  const char *kind; /* of an access there */
};

static struct place place_of(const struct guard_slot *slot, uint32_t phase, uintptr_t address) {
  uintptr_t end = slot->block + slot->size;
  struct place place = {address - slot->block, "into", "use-after-free (and used again)"};
  if (address < slot->block)
    place = (struct place){slot->block - address, "before", "heap-buffer-underflow"};
  else if (address >= end)
    place = (struct place){address - end, "after", "heap-buffer-overflow"};
  if (is_freed(phase)) place.kind = "use-after-free";
  return place;
}

static void report_stacks(const char *what, uintptr_t address, const struct call_stack *here,
                          const struct guard_slot *slot, uint32_t phase) {
  guard_report = (struct guard_report){slot, address, what, *here};
  report_stack(what, here);
  report_stack("allocated", &slot->allocated);
  if (is_freed(phase)) report_stack("freed", &slot->freed);
}

static unsigned slot_index(uintptr_t address) {
  size_t offset = address - load_relaxed(&guarded_region.begin);
  size_t index = offset < os_page_bytes() ? 0 : (offset - os_page_bytes()) / stride();
  return index < guarded_region.slot_count ? (unsigned)index : guarded_region.slot_count - 1;
}

static void fail(const char *verb, uintptr_t address, const struct guard_slot *slot,
                 uint32_t phase) {
  struct call_stack here;
  if (phase == GUARD_UNUSED || phase == GUARD_OPENING) {
    report_invalid_pointer(verb, address);
    return;
  }
  if (misuse_action == MISUSE_IGNORE) return;
  struct place place = place_of(slot, phase, address);
  call_stack_note(&here, 0);
  if (address != slot->block)
    report_line("invalid %s of %#zx: " PLACE_FORMAT, verb, address, place.distance, place.side,
                slot->size, slot->block);
  else
    report_line("double %s of %#zx: the block of %zu bytes is free already (guarded)", verb,
                address, slot->size);
  report_stacks(verb, address, &here, slot, phase);
  if (misuse_action == MISUSE_ABORT) os_abort();
}

static void fail_overwritten(const char *verb, uintptr_t address, const struct guard_slot *slot) {
  if (misuse_action == MISUSE_IGNORE) return;
  struct place place = place_of(slot, GUARD_LIVE, address);
  report_line("%s: found by %s, written at %#zx, " PLACE_FORMAT, place.kind, verb, address,
              place.distance, place.side, slot->size, slot->block);
  report_stacks(verb, address, &slot->freed, slot, GUARD_LIVE);
  if (misuse_action == MISUSE_ABORT) os_abort();
}

/* Only hardened mode records the maker of a block. */
static void check_maker(const struct guard_slot *slot, enum maker freed_as, const char *verb) {
  struct call_stack here;
  if (LIKELY(slot->maker == freed_as) || misuse_action == MISUSE_IGNORE ||
      !operators_mismatch(slot->maker, freed_as))
    return;
  call_stack_note(&here, 0);
  report_line("mismatched %s of %#zx: the block of %zu bytes was made by %s (guarded)", verb,
              slot->block, slot->size, maker_name(slot->maker));
  report_stacks(verb, slot->block, &here, slot, GUARD_LIVE);
  if (misuse_action == MISUSE_ABORT) os_abort();
}

/* The slot whose live block begins there; NULL, after a report, when none does. */
static struct guard_slot *find_live(uintptr_t address, const char *verb) {
  struct guard_slot *slot = &slots[slot_index(address)];
  /* acquire: the record that was written before; pairs with guarded_take. */
  uint32_t phase = load_acquire(&slot->phase);
  if (LIKELY(phase == GUARD_LIVE && slot->block == address)) return slot;
  fail(verb, address, slot, phase);
  return NULL;
}

bool guarded_ask(uintptr_t block, const char *verb, size_t *bytes) {
  const struct guard_slot *slot = find_live(block, verb);
  if (slot) *bytes = slot->size;
  return slot != NULL;
}

enum guarded_state guarded_find(uintptr_t address, uintptr_t *block, size_t *bytes) {
  const struct guard_slot *slot = &slots[slot_index(address)];
  /* acquire: the record that was written before; pairs with guarded_take. */
  uint32_t phase = load_acquire(&slot->phase);
  if (phase == GUARD_OPENING || phase == GUARD_CLOSING) return SAMPLED_BUSY;
  if (phase != GUARD_LIVE) return SAMPLED_NONE;
  *block = slot->block;
  *bytes = slot->size;
  return SAMPLED_LIVE;
}

/* The nearest byte around the block that was overwritten; 0 when none was. */
static uintptr_t find_overwritten(const struct guard_slot *slot) {
  struct pages pages = pages_of(slot->block, slot->size);
  for (uintptr_t at = slot->block + slot->size; at < pages.end; at++)
    if (*(const unsigned char *)at != PATTERN) return at;
  for (uintptr_t at = slot->block; at > pages.begin; at--)
    if (*(const unsigned char *)(at - 1) != PATTERN) return at - 1;
  return 0;
}

void guarded_become_mallocs(uintptr_t block) {
  struct guard_slot *slot = find_live(block, "realloc");
  if (!slot) return;
  check_maker(slot, MADE_BY_MALLOC, "realloc");
  slot->maker = MADE_BY_MALLOC;
}

void guarded_give(uintptr_t block, enum maker maker, const char *verb) {
  struct guard_slot *slot = find_live(block, verb);
  uint32_t live = GUARD_LIVE;
  if (UNLIKELY(!slot)) return;
  /* acq_rel: of two threads that free it at once, one goes on; pairs with guarded_take. */
  if (!cas_strong_acq_rel(&slot->phase, &live, GUARD_CLOSING)) {
    fail(verb, block, slot, live);
    return;
  }
  fetch_sub_relaxed(&totals.guarded_live_bytes, slot->size);
  check_maker(slot, maker, maker_verb(maker));
  uintptr_t overwritten = find_overwritten(slot);
  call_stack_note(&slot->freed, 0);
  if (overwritten) fail_overwritten(verb, overwritten, slot);
  struct pages pages = pages_of(slot->block, slot->size);
  if (pages.begin != pages.end) /* refused: it stays open */
    os_close_pages((void *)pages.begin, pages.end - pages.begin);
  store_release(&slot->phase, GUARD_FREED); /* both stacks before; pairs with find_live */
  give_slot((unsigned)(slot - slots));
}

/* ---- faults ---------------------------------------------------------------------------------- */

static bool was_used(unsigned index) {
  uint32_t phase = load_relaxed(&slots[index].phase);
  return phase != GUARD_UNUSED && phase != GUARD_OPENING;
}

/* An address between two slots belongs to the nearer one, if that ever held a block. */
static const struct guard_slot *slot_of_fault(uintptr_t address) {
  unsigned index = slot_index(address);
  uintptr_t end = slot_begin(index) + guarded_region.slot_bytes;
  bool is_behind = address >= end, has_next = index + 1 < guarded_region.slot_count;
  bool is_nearer_to_next = is_behind && address - end >= os_page_bytes() / 2;
  if (is_behind && has_next && was_used(index + 1) && (is_nearer_to_next || !was_used(index)))
    return &slots[index + 1];
  return was_used(index) ? &slots[index] : NULL;
}

bool guarded_report_fault(const struct os_crash *crash) {
  if (!guarded_covers(crash->address)) return false;
  const struct guard_slot *slot = slot_of_fault(crash->address);
  static const char *const names[] = {"access", "read", "write"};
  const char *access = names[crash->access];
  struct call_stack here;
  call_stack_note(&here, crash->instruction);
  if (!slot) {
    report_line("invalid %s at %#zx: in the guarded region, where no block was ever placed", access,
                crash->address);
    report_stack(access, &here);
    return true;
  }
  /* acquire: the record; pairs with guarded_take and guarded_give. */
  uint32_t phase = load_acquire(&slot->phase);
  struct place place = place_of(slot, phase, crash->address);
  report_line("%s: %s at %#zx, " PLACE_FORMAT, place.kind, access, crash->address, place.distance,
              place.side, slot->size, slot->block);
  report_stacks(access, crash->address, &here, slot, phase);
  return true;
}
