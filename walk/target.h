/* target.h: the process, or the core, whose heap is walked.
 *
 * A process is read by process_vm_readv, its page table by /proc/PID/pagemap; nothing is written
 * into it and it runs on.  All that is read may be torn or damaged: no value is trusted. */
#ifndef HAK_WALK_TARGET_H
#define HAK_WALK_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { BROKEN_HEAP = 3, REFUSED = 2 }; /* exit status */

struct mapping {
  uint64_t begin, end;
  bool is_readable, is_writable, is_executable, is_private, is_anonymous;
  const char *path; /* of the file; "[heap]" and the like; "" */
};

struct segment { /* of a core */
  uint64_t begin, bytes, offset;
  uint32_t flags;
};

struct target {
  const char *word; /* the command line's */
  int pid;          /* 0: a core */
  int pagemap;      /* -1: the kernel has none, all pages count as resident */
  uint64_t page_bytes;
  struct mapping *mappings;
  size_t mapping_count;
  char *text; /* of the mappings' paths */
  const uint8_t *core;
  uint64_t core_bytes;
  struct segment *segments;
  size_t segment_count;
};

/* Ends the program with one sentence: why the target cannot be walked. */
_Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *errno_name(void);
void *allocated(void *old, size_t bytes);
/* For copies of whole pages: where a copy begins a few bytes further into a page than its source
 * does, as a large block of malloc's, the processor takes each load to depend on the stores before
 * it, and the kernel three times as long. */
void *allocated_pages(size_t bytes);
uint64_t now_ns(void);
void sleep_ms(unsigned ms);

/* The number of the first row that ends beyond the address. Rows are in the order of their
 * addresses; `end_at`: where in a row its end is. */
static inline size_t first_beyond(const void *rows, size_t count, size_t row_bytes, size_t end_at,
                                  uint64_t address) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    uint64_t end;
    memcpy(&end, (const char *)rows + middle * row_bytes + end_at, sizeof end);
    if (end <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void target_open(struct target *target, const char *word);
void core_open(struct target *target);
/* Reads the mappings again: a heap grows while it is walked. */
void target_refresh(struct target *target);
const struct mapping *mapping_of(const struct target *target, uint64_t address);
/* A file of the process, from its own root; -1 if it cannot be opened. */
int target_open_file(const struct target *target, const char *path);

/* Returns the number of bytes that could be read before the first that could not; the rest is 0. */
size_t memory_read(const struct target *target, uint64_t address, void *buffer, size_t bytes);
/* Reads anonymous memory: pages without content are not touched, and read as 0.  `states` has a
 * place for each page. */
void memory_read_touched(const struct target *target, uint64_t address, uint8_t *buffer,
                         size_t bytes, uint8_t *states);
/* Words at these addresses; 0 where nothing is. */
void memory_gather(const struct target *target, const uint64_t *addresses, size_t count,
                   uint64_t *words);
/* Through a small cache of pages, for lists; `memory_forget` empties it. */
bool memory_peek(const struct target *target, uint64_t address, void *buffer, size_t bytes);
void memory_forget(void);

enum { PAGE_ABSENT, PAGE_SWAPPED, PAGE_RESIDENT };
void pages_states(const struct target *target, uint64_t page, size_t count, uint8_t *states);
/* The first address in this range whose page has content; its end if none has. */
uint64_t pages_next(const struct target *target, uint64_t begin, uint64_t end);
/* Bytes of these addresses that lie on resident pages. */
uint64_t pages_resident(const struct target *target, uint64_t begin, uint64_t end);

static inline uint64_t round_down(uint64_t value, uint64_t unit) { return value & ~(unit - 1); }
static inline uint64_t round_up(uint64_t value, uint64_t unit) {
  return round_down(value + unit - 1, unit);
}

#endif
