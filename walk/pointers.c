#include "pointers.h"

#include <string.h>
#include <unistd.h>

enum { UNIT_SHIFT = 12, GRANULE_SHIFT = 4, UNIT_BYTES = 1 << UNIT_SHIFT, PIECE_BYTES = 1 << 18 };
enum { PAGE_BITS = 1 << 20, GRANULE_BITS = 1 << 26 };

struct range {
  uint64_t begin, end;
};

struct ranges {
  struct range *list;
  size_t count;
};

struct pointer {
  uint64_t place, value;
};

struct finder {
  const struct target *target;
  unsigned worker, workers;
  struct ranges blocks;
  uint64_t *pages, *granules; /* which may be in a block: bits, by the low bits of the address */
  struct pointer *pointers;
  size_t count;
};

static void read_all(void *buffer, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t got = read(STDIN_FILENO, (char *)buffer + done, bytes - done);
    if (got <= 0) refuse("the input ends too early");
    done += (size_t)got;
  }
}

static void write_all(const void *buffer, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t part = write(STDOUT_FILENO, (const char *)buffer + done, bytes - done);
    if (part <= 0) refuse("the output cannot be written");
    done += (size_t)part;
  }
}

static struct ranges read_ranges(void) {
  struct ranges ranges = {NULL, 0};
  uint64_t count;
  read_all(&count, sizeof count);
  ranges.count = (size_t)count;
  ranges.list = allocated(NULL, ranges.count * sizeof *ranges.list);
  read_all(ranges.list, ranges.count * sizeof *ranges.list);
  return ranges;
}

/* The range that an address is in; NULL: in none. */
static const struct range *range_of(const struct ranges *ranges, uint64_t address) {
  size_t low = first_beyond(ranges->list, ranges->count, sizeof *ranges->list,
                            offsetof(struct range, end), address);
  return low < ranges->count && ranges->list[low].begin <= address ? &ranges->list[low] : NULL;
}

/* ---- does a word point into a block? ---- */

static void add_bits(uint64_t *bits, size_t size, unsigned shift, const struct range *block) {
  uint64_t first = block->begin >> shift, last = (block->end - 1) >> shift;
  for (uint64_t at = first; at <= last && at - first < size; ++at)
    bits[(at & (size - 1)) / 64] |= UINT64_C(1) << at % 64;
}

static bool has_bit(const uint64_t *bits, size_t size, uint64_t at) {
  return bits[(at & (size - 1)) / 64] >> at % 64 & 1;
}

static void read_blocks(struct finder *finder) {
  finder->blocks = read_ranges();
  finder->pages = allocated(NULL, PAGE_BITS / 8);
  finder->granules = allocated(NULL, GRANULE_BITS / 8);
  memset(finder->pages, 0, PAGE_BITS / 8);
  memset(finder->granules, 0, GRANULE_BITS / 8);
  for (size_t i = 0; i < finder->blocks.count; ++i) {
    const struct range *block = &finder->blocks.list[i];
    if (block->begin >= block->end) continue;
    add_bits(finder->pages, PAGE_BITS, UNIT_SHIFT, block);
    add_bits(finder->granules, GRANULE_BITS, GRANULE_SHIFT, block);
  }
}

static bool is_pointer(const struct finder *finder, uint64_t word) {
  return has_bit(finder->pages, PAGE_BITS, word >> UNIT_SHIFT) &&
         has_bit(finder->granules, GRANULE_BITS, word >> GRANULE_SHIFT) &&
         range_of(&finder->blocks, word);
}

/* ---- memory ---- */

static void add_pointer(struct finder *finder, uint64_t place, uint64_t value) {
  if ((finder->count & (finder->count - 1)) == 0) {
    size_t room = finder->count ? 2 * finder->count : 1;
    finder->pointers = allocated(finder->pointers, room * sizeof *finder->pointers);
  }
  finder->pointers[finder->count++] = (struct pointer){place, value};
}

/* Bytes that cannot be read are skipped by the page. */
static void search(struct finder *finder, uint64_t begin, uint64_t end, uint64_t *buffer) {
  for (uint64_t at = round_up(begin, sizeof *buffer), next; at < end; at = next) {
    next = round_down(at, PIECE_BYTES) + PIECE_BYTES;
    if (next > end) next = end;
    if (at / PIECE_BYTES % finder->workers != finder->worker) continue;
    size_t got = memory_read(finder->target, at, buffer, (size_t)(next - at));
    for (size_t i = 0; i < got / sizeof *buffer; ++i)
      if (is_pointer(finder, buffer[i])) add_pointer(finder, at + i * sizeof *buffer, buffer[i]);
    if (got < next - at) next = round_down(at + got, UNIT_BYTES) + UNIT_BYTES;
  }
}

void pointers_find(const struct target *target, unsigned worker, unsigned workers) {
  struct finder finder = {.target = target, .worker = worker, .workers = workers};
  uint64_t *buffer = allocated_pages(PIECE_BYTES);
  read_blocks(&finder);
  struct ranges memory = read_ranges();
  for (size_t i = 0; i < memory.count; ++i)
    search(&finder, memory.list[i].begin, memory.list[i].end, buffer);
  uint64_t count = finder.count;
  write_all(&count, sizeof count);
  write_all(finder.pointers, finder.count * sizeof *finder.pointers);
}
