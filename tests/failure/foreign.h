/* foreign.h: memory of the program's own at addresses that the allocator has, had, or would have
 * next. */
#ifndef TESTS_FAILURE_FOREIGN_H
#define TESTS_FAILURE_FOREIGN_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "api/check.h"
#include "api/sizes.h"

#define TIB ((size_t)1 << 40)

enum { FOREIGN_PAGES_MAX = 20000, FOREIGN_CHUNK_BYTES = 2 << 20 };

static unsigned char *foreign_pages[FOREIGN_PAGES_MAX];
static size_t foreign_page_count;

static inline size_t foreign_page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* The addresses between which blocks were seen. */
static uintptr_t foreign_lowest = UINTPTR_MAX, foreign_highest;

static inline void foreign_note(const void *block, size_t size) {
  uintptr_t begin = (uintptr_t)block, end = begin + size;
  if (begin < foreign_lowest) foreign_lowest = begin;
  if (end > foreign_highest) foreign_highest = end;
}

static inline void *foreign_map(uintptr_t at, size_t bytes, int protection) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void *mapped = mmap((void *)at, bytes, protection, flags, -1, 0);
  if (mapped == MAP_FAILED) return NULL;
  CHECK(mapped == (void *)at);
  return mapped;
}

static inline unsigned char foreign_stamp(const unsigned char *page) {
  return (unsigned char)((uintptr_t)page / foreign_page_bytes() * 37 + 1);
}

/* A page of ours at this address, if nothing is there. */
static inline void foreign_try_page(uintptr_t at) {
  at -= at % foreign_page_bytes();
  unsigned char *page = foreign_page_count < FOREIGN_PAGES_MAX
                            ? foreign_map(at, foreign_page_bytes(), PROT_READ | PROT_WRITE)
                            : NULL;
  if (page == NULL) return;
  page[0] = page[foreign_page_bytes() - 1] = foreign_stamp(page);
  foreign_pages[foreign_page_count++] = page;
}

/* Nobody has touched them. */
static inline void foreign_check(void) {
  for (size_t i = 0; i < foreign_page_count; i++) {
    unsigned char *page = foreign_pages[i], stamp = foreign_stamp(page);
    CHECK(page[0] == stamp && page[foreign_page_bytes() - 1] == stamp);
  }
}

static inline void foreign_release(void) {
  foreign_check();
  for (size_t i = 0; i < foreign_page_count; i++)
    CHECK(munmap(foreign_pages[i], foreign_page_bytes()) == 0);
  foreign_page_count = 0;
}

/* One page in each 2 MiB between the lowest and the highest block, where it is free. */
static inline size_t foreign_fill_holes(void) {
  size_t before = foreign_page_count;
  uintptr_t at = foreign_lowest - foreign_lowest % FOREIGN_CHUNK_BYTES;
  for (; at < foreign_highest; at += FOREIGN_CHUNK_BYTES)
    foreign_try_page(at + (uintptr_t)rand() % FOREIGN_CHUNK_BYTES);
  return foreign_page_count - before;
}

static inline size_t foreign_address_space_bytes(void) {
  char text[64] = {0};
  int file = open("/proc/self/statm", O_RDONLY);
  CHECK(file >= 0 && read(file, text, sizeof text - 1) > 0);
  close(file);
  return strtoul(text, NULL, 10) * foreign_page_bytes();
}

/* Memory is refused for a moment, so that all that is free goes back, addresses too: to a request
 * that is a little more than what is free in one piece.  (One for more than there is at all gives
 * nothing back.) */
static inline void foreign_press(void) {
  struct rlimit before, tight;
  CHECK(getrlimit(RLIMIT_AS, &before) == 0);
  tight = before;
  tight.rlim_cur = foreign_address_space_bytes() + foreign_page_bytes();
  CHECK(setrlimit(RLIMIT_AS, &tight) == 0);
  void *block;
  for (size_t bytes = 64 * MIB; (block = malloc(bytes)) != NULL; bytes += bytes / 8) free(block);
  CHECK(setrlimit(RLIMIT_AS, &before) == 0);
}

#endif
