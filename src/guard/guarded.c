#include "guard/guarded.h"

#include <string.h>

#include "base/bits.h"
#include "config/options.h"
#include "map/metadata.h"
#include "map/window.h"
#include "os/lock.h"
#include "report/report.h"

/* Small blocks too are aligned as glibc's are: some programs keep bits in the pointer's last four. */
enum { PATTERN = 0xA5, USUAL_ALIGNMENT = 16 };

/* A thread that moves a slot from one state to another by CAS may write the rest of its record. */
enum guard_phase { GUARD_UNUSED, GUARD_OPENING, GUARD_LIVE, GUARD_CLOSING, GUARD_FREED };

struct guard_slot {
  ATOMIC(uint32_t) phase; /* enum guard_phase */
  uintptr_t block;
  size_t size; /* as asked for */
  struct call_stack allocated, freed;
};

struct guarded_region guarded_region;
static struct guard_slot *slots;

/* Slots that no block lives in: a ring, the longest free first. */
static struct lock lock = {.rank = LOCK_RANK_GUARD};
static uint16_t *ring;                /* under the lock, as is the next */
static unsigned ring_first;           /* where the free ones begin */
static ATOMIC(unsigned) free_count;   /* single writer under the lock; read as a hint */
static struct counters lock_counters; /* of waits that are nobody's business */

/* ---- the region ------------------------------------------------------------------------------------- */

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
  if (!ring) ring = metadata_allocate(count * sizeof *ring);
  if (!slots || !ring) return false;
  void *region = window_reserve_outside(bytes);
  if (!region) return false;
  for (unsigned index = 0; index < count; index++) ring[index] = (uint16_t)index;
  store_relaxed(&free_count, count);
  guarded_region.bytes = bytes;
  guarded_region.slot_bytes = slot_bytes;
  guarded_region.slot_count = count;
  store_release(&guarded_region.begin, (uintptr_t)region); /* pairs with guarded_covers */
  return true;
}

/* ---- free slots ------------------------------------------------------------------------------------- */

enum { NO_SLOT = UINT16_MAX };

static unsigned pop_slot(void) {
  unsigned index = NO_SLOT;
  lock_take(&lock, &lock_counters);
  if (load_relaxed(&free_count)) {
    index = ring[ring_first];
    ring_first = (ring_first + 1) % guarded_region.slot_count;
    store_relaxed(&free_count, load_relaxed(&free_count) - 1);
  }
  lock_give(&lock);
  return index;
}

static void push_slot(unsigned index) {
  lock_take(&lock, &lock_counters);
  unsigned count = load_relaxed(&free_count);
  ring[(ring_first + count) % guarded_region.slot_count] = (uint16_t)index;
  store_relaxed(&free_count, count + 1);
  lock_give(&lock);
}

unsigned guarded_tenths_used(void) {
  unsigned count = guarded_region.slot_count;
  return count ? 10 * (count - load_relaxed(&free_count)) / count : 0;
}

/* What another thread had in hands stays lost to the child: one slot.  If it was changing the ring, that is filled anew. */
void guarded_after_fork(void) {
  if (!lock_reset_in_child(&lock)) return;
  unsigned count = 0;
  for (unsigned index = 0; index < guarded_region.slot_count; index++) {
    uint32_t phase = load_relaxed(&slots[index].phase);
    if (phase == GUARD_UNUSED || phase == GUARD_FREED) ring[count++] = (uint16_t)index;
  }
  ring_first = 0;
  store_relaxed(&free_count, count);
}

/* ---- a block in its slot ------------------------------------------------------------------------------ */

static void note_stack(struct call_stack *stack, uintptr_t from) {
  stack->thread = os_thread_id();
  stack->frame_count = os_backtrace(stack->frames, CALL_STACK_FRAMES, from);
}

/* The pages that a block lies in, which are open while it lives. */
struct pages {
  uintptr_t begin, end;
};

/* A block of no bytes has one too. */
static uintptr_t end_of(uintptr_t block, size_t size) { return block + (size ? size : 1); }

static struct pages pages_of(uintptr_t block, size_t size) {
  return (struct pages){round_down(block, os_page_bytes()),
                        round_up(end_of(block, size), os_page_bytes())};
}

static bool open_pages(struct pages pages) {
  return os_open_pages((void *)pages.begin, pages.end - pages.begin);
}

static uintptr_t place(unsigned index, size_t size, size_t alignment, bool is_at_end) {
  uintptr_t begin = slot_begin(index);
  if (!is_at_end) return begin;
  uintptr_t last = begin + guarded_region.slot_bytes - (size ? size : 1);
  return round_down(last, alignment > USUAL_ALIGNMENT ? alignment : USUAL_ALIGNMENT);
}

static void fill_around(uintptr_t block, size_t size, struct pages pages) {
  memset((void *)pages.begin, PATTERN, block - pages.begin);
  memset((void *)(block + size), PATTERN, pages.end - (block + size));
}

bool guarded_fits(size_t size, size_t alignment) {
  if (!load_acquire(&guarded_region.begin)) return false; /* pairs with guarded_start */
  bool has_room = size <= guarded_region.slot_bytes && alignment <= os_page_bytes();
  return has_room && size <= MID_MAX_BYTES; /* what is larger, others take for a range */
}

uintptr_t guarded_take(size_t size, size_t alignment, bool is_at_end) {
  unsigned index = pop_slot();
  if (index == NO_SLOT) return 0;
  struct guard_slot *slot = &slots[index];
  uintptr_t block = place(index, size, alignment, is_at_end);
  struct pages pages = pages_of(block, size);
  if (!open_pages(pages)) {
    push_slot(index);
    return 0;
  }
  store_relaxed(&slot->phase, GUARD_OPENING);
  slot->block = block;
  slot->size = size;
  fill_around(block, size, pages);
  note_stack(&slot->allocated, 0);
  fetch_add_relaxed(&totals.guarded_live_bytes, size);
  store_release(&slot->phase, GUARD_LIVE); /* the record before; pairs with find_live */
  os_watch_first();
  return block;
}

/* ---- reports -------------------------------------------------------------------------------------------- */

static struct guarded_block describe(const struct guard_slot *slot, uint32_t phase) {
  bool is_freed = phase == GUARD_FREED || phase == GUARD_CLOSING;
  return (struct guarded_block){.base = slot->block,
                                .size = slot->size,
                                .allocated = &slot->allocated,
                                .freed = is_freed ? &slot->freed : NULL};
}

static unsigned slot_index(uintptr_t address) {
  size_t offset = address - load_relaxed(&guarded_region.begin);
  size_t index = offset < os_page_bytes() ? 0 : (offset - os_page_bytes()) / stride();
  return index < guarded_region.slot_count ? (unsigned)index : guarded_region.slot_count - 1;
}

static void fail(const char *verb, uintptr_t address, const struct guard_slot *slot,
                 uint32_t phase) {
  struct call_stack here;
  note_stack(&here, 0);
  struct guarded_block block = describe(slot, phase);
  if (phase == GUARD_UNUSED || phase == GUARD_OPENING)
    report_invalid_pointer(verb, address);
  else if (address != block.base)
    report_guarded_interior(verb, address, &block, &here);
  else
    report_guarded_double_free(verb, address, &block, &here);
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

/* The nearest byte around the block that is not what it was; 0 when all are. */
static uintptr_t find_overwritten(const struct guard_slot *slot) {
  struct pages pages = pages_of(slot->block, slot->size);
  for (uintptr_t at = slot->block + slot->size; at < pages.end; at++)
    if (*(const unsigned char *)at != PATTERN) return at;
  for (uintptr_t at = slot->block; at > pages.begin; at--)
    if (*(const unsigned char *)(at - 1) != PATTERN) return at - 1;
  return 0;
}

void guarded_give(uintptr_t block, const char *verb) {
  struct guard_slot *slot = find_live(block, verb);
  uint32_t live = GUARD_LIVE;
  if (UNLIKELY(!slot)) return;
  /* Of two that free it at once, one goes on; acq_rel pairs with guarded_take. */
  if (!cas_strong_acq_rel(&slot->phase, &live, GUARD_CLOSING)) {
    fail(verb, block, slot, live);
    return;
  }
  fetch_sub_relaxed(&totals.guarded_live_bytes, slot->size);
  uintptr_t overwritten = find_overwritten(slot);
  note_stack(&slot->freed, 0);
  if (overwritten) {
    struct guarded_block description = describe(slot, GUARD_LIVE);
    report_guarded_overwrite(verb, overwritten, &description, &slot->freed);
  }
  struct pages pages = pages_of(slot->block, slot->size);
  os_close_pages((void *)pages.begin, pages.end - pages.begin); /* refused: it stays open */
  store_release(&slot->phase, GUARD_FREED); /* both stacks before; pairs with find_live */
  push_slot((unsigned)(slot - slots));
}

/* ---- faults ---------------------------------------------------------------------------------------------- */

static bool was_used(unsigned index) {
  uint32_t phase = load_relaxed(&slots[index].phase);
  return phase != GUARD_UNUSED && phase != GUARD_OPENING;
}

/* Between two slots: of the nearer one, if it ever held a block. */
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
  struct call_stack here;
  note_stack(&here, crash->instruction);
  if (!slot) {
    report_guarded_fault(crash, NULL, &here);
    return true;
  }
  /* acquire: the record; pairs with guarded_take and guarded_give. */
  struct guarded_block block = describe(slot, load_acquire(&slot->phase));
  report_guarded_fault(crash, &block, &here);
  return true;
}
