/* The target's memory and page table. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "target.h"

enum { PIECES = 256, ENTRIES = 4096, CACHED_PAGES = 1024, CACHED_BYTES = 4096 };
enum { LOCALITY_MAX = 16 };

static void check_errno(const struct target *target) {
  if (errno == ESRCH) refuse("process %d ended while it was read", target->pid);
  if (errno == EPERM)
    refuse("process %d: no right to read its memory (EPERM); run as its user, or as root",
           target->pid);
  if (errno == ENOSYS) refuse("this kernel has no process_vm_readv (ENOSYS)");
}

static size_t core_read(const struct target *target, uint64_t address, uint8_t *buffer,
                        size_t bytes) {
  size_t low = 0, high = target->segment_count, done = 0;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const struct segment *segment = &target->segments[middle];
    if (segment->begin + segment->bytes <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  memset(buffer, 0, bytes);
  for (; done < bytes && low < target->segment_count; ++low) {
    const struct segment *segment = &target->segments[low];
    if (segment->begin > address + done) break;
    uint64_t skipped = address + done - segment->begin;
    uint64_t rest = segment->bytes > skipped ? segment->bytes - skipped : 0;
    size_t part = rest < bytes - done ? (size_t)rest : bytes - done;
    memcpy(buffer + done, target->core + segment->offset + skipped, part);
    done += part;
  }
  return done;
}

size_t memory_read(const struct target *target, uint64_t address, void *buffer, size_t bytes) {
  if (!target->pid) return core_read(target, address, buffer, bytes);
  size_t done = 0;
  while (done < bytes) {
    struct iovec here = {(char *)buffer + done, bytes - done};
    struct iovec there = {(void *)(uintptr_t)(address + done), bytes - done};
    ssize_t got = process_vm_readv(target->pid, &here, 1, &there, 1, 0);
    if (got < 0) check_errno(target);
    if (got <= 0) break;
    done += (size_t)got;
  }
  memset((char *)buffer + done, 0, bytes - done);
  return done;
}

/* Some pieces; the rest of one that cannot be read becomes 0. */
static void read_pieces(const struct target *target, struct iovec *here, struct iovec *there,
                        size_t count) {
  size_t first = 0;
  while (first < count) {
    ssize_t got =
        process_vm_readv(target->pid, here + first, count - first, there + first, count - first, 0);
    if (got < 0) check_errno(target);
    size_t left = got > 0 ? (size_t)got : 0;
    while (first < count && left >= here[first].iov_len) left -= here[first++].iov_len;
    if (first == count) return;
    memset((char *)here[first].iov_base + left, 0, here[first].iov_len - left);
    ++first;
  }
}

void memory_read_touched(const struct target *target, uint64_t address, uint8_t *buffer,
                         size_t bytes, uint8_t *states) {
  uint64_t page_bytes = target->page_bytes, page = address / page_bytes;
  size_t pages = (size_t)((address + bytes - 1) / page_bytes - page + 1), count = 0;
  struct iovec here[PIECES], there[PIECES];
  pages_states(target, page, pages, states);
  if (!target->pid) {
    core_read(target, address, buffer, bytes);
    return;
  }
  for (size_t i = 0; i < pages;) {
    size_t next = i + 1;
    while (next < pages && (states[next] != PAGE_ABSENT) == (states[i] != PAGE_ABSENT)) ++next;
    uint64_t begin = (page + i) * page_bytes, end = (page + next) * page_bytes;
    if (begin < address) begin = address;
    if (end > address + bytes) end = address + bytes;
    if (states[i] != PAGE_ABSENT) {
      here[count] = (struct iovec){buffer + (begin - address), (size_t)(end - begin)};
      there[count++] = (struct iovec){(void *)(uintptr_t)begin, (size_t)(end - begin)};
    } else {
      memset(buffer + (begin - address), 0, (size_t)(end - begin));
    }
    if (count == PIECES || next == pages) {
      read_pieces(target, here, there, count);
      count = 0;
    }
    i = next;
  }
}

void memory_gather(const struct target *target, const uint64_t *addresses, size_t count,
                   uint64_t *words) {
  struct iovec here[PIECES], there[PIECES];
  memset(words, 0, count * sizeof *words);
  for (size_t done = 0; done < count;) {
    size_t part = count - done < PIECES ? count - done : PIECES;
    for (size_t i = 0; i < part; ++i) {
      if (!target->pid) core_read(target, addresses[done + i], (uint8_t *)&words[done + i], 8);
      here[i] = (struct iovec){&words[done + i], 8};
      there[i] = (struct iovec){(void *)(uintptr_t)addresses[done + i], 8};
    }
    if (target->pid) read_pieces(target, here, there, part);
    done += part;
  }
}

static struct {
  uint64_t page; /* 0: none */
  uint8_t bytes[CACHED_BYTES];
} * cached;

void memory_forget(void) {
  if (cached == NULL) cached = allocated(NULL, CACHED_PAGES * sizeof *cached);
  for (size_t i = 0; i < CACHED_PAGES; ++i) cached[i].page = 0;
}

/* Lists that jump at random do not profit from whole pages: `locality` counts the hits, less the
 * misses. */
bool memory_peek(const struct target *target, uint64_t address, void *buffer, size_t bytes) {
  static uint64_t last_page;
  static int locality;
  uint64_t page = address / CACHED_BYTES;
  if (cached == NULL) memory_forget();
  size_t place = (size_t)(page % CACHED_PAGES);
  bool is_hit = cached[place].page == page, is_near = is_hit || page - last_page + 1 <= 2;
  if (locality < LOCALITY_MAX && is_near) ++locality;
  if (locality > -LOCALITY_MAX && !is_near) --locality;
  last_page = page;
  if ((!is_hit && locality < 0) || (address + bytes - 1) / CACHED_BYTES != page)
    return memory_read(target, address, buffer, bytes) == bytes;
  if (!is_hit) {
    cached[place].page = 0;
    if (memory_read(target, page * CACHED_BYTES, cached[place].bytes, CACHED_BYTES) < CACHED_BYTES)
      return false;
    cached[place].page = page;
  }
  memcpy(buffer, cached[place].bytes + address % CACHED_BYTES, bytes);
  return true;
}

/* A core keeps no page table: a page counts as resident if any of its bytes is not 0. */
static void core_states(const struct target *target, uint64_t page, size_t count, uint8_t *states) {
  uint8_t *bytes = allocated(NULL, target->page_bytes);
  for (size_t i = 0; i < count; ++i) {
    core_read(target, (page + i) * target->page_bytes, bytes, target->page_bytes);
    bool is_zero = bytes[0] == 0 && memcmp(bytes, bytes + 1, target->page_bytes - 1) == 0;
    states[i] = is_zero ? PAGE_ABSENT : PAGE_RESIDENT;
  }
  free(bytes);
}

void pages_states(const struct target *target, uint64_t page, size_t count, uint8_t *states) {
  if (!target->pid) {
    core_states(target, page, count, states);
    return;
  }
  memset(states, target->pagemap < 0 ? PAGE_RESIDENT : PAGE_ABSENT, count);
  static uint64_t entries[ENTRIES];
  for (size_t done = 0; done < count && target->pagemap >= 0;) {
    size_t part = count - done < ENTRIES ? count - done : ENTRIES;
    ssize_t got = pread(target->pagemap, entries, part * 8, (off_t)((page + done) * 8));
    if (got <= 0) return;
    for (size_t i = 0; i < (size_t)got / 8; ++i) {
      bool is_swapped = entries[i] >> 62 == 1;
      states[done + i] = entries[i] >> 63 ? PAGE_RESIDENT : is_swapped ? PAGE_SWAPPED : PAGE_ABSENT;
    }
    done += (size_t)got / 8;
    if ((size_t)got < part * 8) return;
  }
}

uint64_t pages_next(const struct target *target, uint64_t begin, uint64_t end) {
  static uint8_t states[ENTRIES];
  uint64_t unit = target->page_bytes;
  while (begin < end) {
    uint64_t page = begin / unit, pages = (end - 1) / unit - page + 1;
    size_t part = pages < ENTRIES ? (size_t)pages : ENTRIES;
    pages_states(target, page, part, states);
    size_t absent = 0;
    while (absent < part && states[absent] == PAGE_ABSENT) ++absent;
    if (absent > 0) begin = (page + absent) * unit;
    if (absent < part) return begin;
  }
  return end;
}

uint64_t pages_resident(const struct target *target, uint64_t begin, uint64_t end) {
  static uint8_t states[ENTRIES];
  uint64_t total = 0, unit = target->page_bytes;
  while (begin < end) {
    uint64_t page = begin / unit, pages = (end - 1) / unit - page + 1;
    size_t part = pages < ENTRIES ? (size_t)pages : ENTRIES;
    pages_states(target, page, part, states);
    for (size_t i = 0; i < part; ++i) {
      uint64_t next = (page + i + 1) * unit;
      if (next > end) next = end;
      if (states[i] == PAGE_RESIDENT) total += next - begin;
      begin = next;
    }
  }
  return total;
}
