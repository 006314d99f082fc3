/* guarded.h: blocks with pages of their own (HAKMEM_GUARD=1).
 *
 *   | closed | slot 0 | closed | slot 1 | closed | …      slots are closed too while no block lives there
 *
 * Half of the blocks end at the end of their slot, half begin at its start: the first byte beyond
 * on that side faults.  On the other side the rest of the page is filled with a pattern, which free
 * checks.  A freed slot stays closed until all others that are free have been used: any access to
 * it faults.
 *
 * The region lies outside the window, so the fast paths know nothing of it.  Without the option,
 * and where the system refuses, no block is ever guarded. */
#ifndef HAK_GUARD_GUARDED_H
#define HAK_GUARD_GUARDED_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "os/os.h"
#include "report/maker.h"
#include "report/report.h"

/* A thread that moves a slot from one state to another by CAS may write the rest of its record. */
enum guard_phase { GUARD_UNUSED, GUARD_OPENING, GUARD_LIVE, GUARD_CLOSING, GUARD_FREED };

struct guard_slot {
  ATOMIC(uint32_t) phase; /* enum guard_phase */
  uintptr_t block;
  size_t size; /* as asked for */
  enum maker maker;
  struct call_stack allocated, freed;
};

/* The subject of the last report, for a reader of a core dump. It can be a mixture of two
 * concurrent reports, which a program that goes on after a misuse may have. */
struct guard_report {
  const struct guard_slot *slot; /* NULL: there was none */
  uintptr_t address;
  const char *what; /* was done there: "read", "free", … */
  struct call_stack stack;
};
extern struct guard_report guard_report;

struct guarded_region {
  ATOMIC(uintptr_t) begin; /* 0 until there is one; then all other fields are constant */
  size_t bytes;
  size_t slot_bytes; /* of each slot, without the closed page after it */
  unsigned slot_count;
};
extern struct guarded_region guarded_region;

/* Makes the region, once, as options.guard_slots and options.guard_slot_bytes say; false when
 * refused. */
bool guarded_start(void);

/* True when the address lies in a slot or between two. */
INLINE bool guarded_covers(uintptr_t address) {
  /* acquire: the region's other fields; pairs with guarded_start. */
  uintptr_t begin = load_acquire(&guarded_region.begin);
  return UNLIKELY(begin != 0) && address - begin < guarded_region.bytes;
}

/* Whether there are slots for such a block. */
bool guarded_fits(size_t size, size_t alignment);
/* A guarded block that fits, or 0: no slot is free, or the system refuses.  `is_at_end` says on
 * which side the guard is near. */
uintptr_t guarded_take(size_t size, size_t alignment, enum maker maker, bool is_at_end);

/* The tenths of the slots that have live blocks, approximately. */
unsigned guarded_tenths_used(void);

/* All take an address that guarded_covers, and report unless a live block begins there. `verb`
 * names the operation tried; `maker` is the maker that the block must have. */
void guarded_give(uintptr_t block, enum maker maker, const char *verb);
/* Called for a block passed to realloc: its maker is malloc from now on. */
void guarded_become_mallocs(uintptr_t block);
/* The bytes that were asked for; false after a report. */
bool guarded_ask(uintptr_t block, const char *verb, size_t *bytes);

/* Looks up the slot of an address that guarded_covers, without a report; of a live block the
 * address and the bytes that were asked for. Busy while a block is being made or freed. */
enum guarded_state { SAMPLED_NONE, SAMPLED_BUSY, SAMPLED_LIVE };
enum guarded_state guarded_find(uintptr_t address, uintptr_t *block, size_t *bytes);

/* Reports a fault at an address in the region; false for any other. */
bool guarded_report_fault(const struct os_crash *crash);

#endif
