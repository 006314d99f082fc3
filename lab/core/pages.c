/* SPDX-License-Identifier: MIT
 *
 * pages.c: see pages.h.
 */
#include "pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

unsigned char *pages_base;
struct page *pages;
_Atomic uint32_t *block_links;

/* 16, 10, 8, 5, 4, 3 and 2 blocks a page; sizes up to the first are rounded up to it. */
const uint32_t class_sizes[CLASS_COUNT] = {4 << 10,  6 << 10,  8 << 10, 12 << 10,
                                           16 << 10, 20 << 10, 32 << 10};
uint8_t class_of_grains[(BLOCK_SIZE_MAX >> GRAIN_SHIFT) + 1];

static uint64_t page_limit;
static alignas(2 * CACHE_LINE) _Atomic uint64_t next_page = 1;

void *records_new(size_t bytes) {
  void *records =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (records == MAP_FAILED) {
    perror("lab: mmap");
    exit(1);
  }
  return records;
}

void pages_start(uint64_t limit) {
  page_limit = limit + 1; /* page 0 is never made */
  size_t bytes = (size_t)(page_limit + 1) << PAGE_SHIFT;
  uintptr_t reserved = (uintptr_t)records_new(bytes);
  uintptr_t page_size = (uintptr_t)1 << PAGE_SHIFT;
  pages_base = (unsigned char *)((reserved + page_size - 1) & ~(page_size - 1));
  pages = records_new((size_t)page_limit * sizeof *pages);
  block_links = records_new(((size_t)page_limit << GRAINS_PER_PAGE_SHIFT) * sizeof *block_links);
  for (unsigned grains = 0, class = 0; grains <= BLOCK_SIZE_MAX >> GRAIN_SHIFT; grains++) {
    class += class_sizes[class] < grains << GRAIN_SHIFT;
    class_of_grains[grains] = (uint8_t) class;
  }
}

struct page *page_make(unsigned class, struct counters *counters, struct chain *blocks) {
  uint64_t number = atomic_fetch_add_explicit(&next_page, 1, memory_order_relaxed);
  if (number >= page_limit) {
    atomic_store_explicit(&next_page, page_limit, memory_order_relaxed);
    return NULL;
  }
  counters->new_pages++;
  struct page *page = &pages[number];
  uint32_t step = class_sizes[class] >> GRAIN_SHIFT;
  block_id first = (block_id)(number << GRAINS_PER_PAGE_SHIFT);
  page->class = (uint8_t) class;
  page->block_count = (uint8_t)((1u << PAGE_SHIFT) / class_sizes[class]);
  *blocks = (struct chain){first, first + (page->block_count - 1u) * step, page->block_count};
  for (block_id block = first; block != blocks->last; block += step) {
    set_next(block, block + step);
  }
  set_next(blocks->last, 0);
  return page;
}

uint64_t pages_made(void) {
  uint64_t next = atomic_load_explicit(&next_page, memory_order_relaxed);
  return (next < page_limit ? next : page_limit) - 1;
}

uint64_t pages_blocks(void) {
  uint64_t blocks = 0;
  for (uint64_t number = 1; number <= pages_made(); number++) {
    blocks += pages[number].block_count;
  }
  return blocks;
}

struct chain chain_cut(block_id *list, uint32_t wanted) {
  struct chain chain = {*list, *list, 1};
  if (*list == 0 || wanted == 0) {
    return (struct chain){0, 0, 0};
  }
  while (chain.count < wanted && next_of(chain.last) != 0) {
    chain.last = next_of(chain.last);
    chain.count++;
  }
  *list = next_of(chain.last);
  set_next(chain.last, 0);
  return chain;
}

uint32_t chain_length(block_id first) {
  uint32_t length = 0;
  for (block_id block = first; block != 0; block = next_of(block)) {
    length++;
  }
  return length;
}
