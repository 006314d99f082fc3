/* SPDX-License-Identifier: MIT
 *
 * tlb.h: a data TLB of two levels, as Intel's servers of 2023 have it (those for loads).  The first
 * level has 96 entries of 6 ways for pages of 4 KiB and 32 of 4 ways for those of 2 MiB; the second
 * has 2,048 of 16 ways for both.  The least recently used entry of a set makes room. */
#ifndef BENCH_TLB_H
#define BENCH_TLB_H

#include <stdbool.h>
#include <stdint.h>

enum { SMALL_SHIFT = 12, HUGE_SHIFT = 21 };
enum {
  L1_SMALL_WAYS = 6,
  L1_SMALL_SETS = 16,
  L1_HUGE_WAYS = 4,
  L1_HUGE_SETS = 8,
  L2_WAYS = 16,
  L2_SETS = 128
};

/* An entry is a page's number and its kind; 0: none. */
struct tlb {
  uint64_t l1_small[L1_SMALL_SETS][L1_SMALL_WAYS];
  uint64_t l1_huge[L1_HUGE_SETS][L1_HUGE_WAYS];
  uint64_t l2[L2_SETS][L2_WAYS];
  uint64_t accesses;
  uint64_t l1_misses;
  uint64_t walks;      /* of the page tables: both levels missed */
  uint64_t huge_walks; /* those that found a page of 2 MiB */
};

/* Whether the page that the address lies in has 2 MiB. */
typedef bool tlb_is_huge(uintptr_t address);

static inline uint64_t tlb_entry(uintptr_t address, bool huge) {
  return (uint64_t)(address >> (huge ? HUGE_SHIFT : SMALL_SHIFT)) << 1 | huge;
}

/* The ways before the entry's, or all, move by one, and the entry becomes the first. */
static inline bool tlb_use(uint64_t *set, int ways, uint64_t entry, bool enter) {
  int way = 0;
  while (way < ways && set[way] != entry) way++;
  bool found = way < ways;
  if (!found && !enter) return false;
  for (int i = found ? way : ways - 1; i > 0; i--) set[i] = set[i - 1];
  set[0] = entry;
  return found;
}

static inline bool tlb_use_l1(struct tlb *tlb, uint64_t entry, bool enter) {
  uint64_t page = entry >> 1;
  if (entry & 1) return tlb_use(tlb->l1_huge[page % L1_HUGE_SETS], L1_HUGE_WAYS, entry, enter);
  return tlb_use(tlb->l1_small[page % L1_SMALL_SETS], L1_SMALL_WAYS, entry, enter);
}

/* Addresses at equal distances are spread over this level's sets, other than over those of the
 * first. */
static inline bool tlb_use_l2(struct tlb *tlb, uint64_t entry, bool enter) {
  uint64_t page = entry >> 1;
  return tlb_use(tlb->l2[(page ^ page / L2_SETS) % L2_SETS], L2_WAYS, entry, enter);
}

static inline void tlb_access(struct tlb *tlb, uintptr_t address, tlb_is_huge *is_huge) {
  uint64_t small = tlb_entry(address, false), huge = tlb_entry(address, true);
  tlb->accesses++;
  if (tlb_use_l1(tlb, small, false) || tlb_use_l1(tlb, huge, false)) return;
  tlb->l1_misses++;
  uint64_t found = tlb_use_l2(tlb, small, false) ? small : tlb_use_l2(tlb, huge, false) ? huge : 0;
  if (found == 0) {
    tlb->walks++;
    found = is_huge(address) ? huge : small;
    tlb->huge_walks += found == huge;
    tlb_use_l2(tlb, found, true);
  }
  tlb_use_l1(tlb, found, true);
}

#endif
