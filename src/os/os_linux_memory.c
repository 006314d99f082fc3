/* os_linux_memory.c: the contract of os.h on Linux, where it is about memory. */
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/counters.h"
#include "os/os.h"
#include "os/os_linux.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_GUARD_INSTALL /* Linux 6.13 */
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif

/* The first calls of a process are not timed: reading the clock would bring 24 KiB of the C library
 * into many small processes. */
enum { CALLS_NOT_TIMED = 8 };

static uint64_t start_of_call(ATOMIC(uint64_t) *calls) {
  return load_relaxed(calls) < CALLS_NOT_TIMED ? 0 : os_now_ns();
}

static void count_call(ATOMIC(uint64_t) *calls, ATOMIC(uint64_t) *total_ns, uint64_t start_ns) {
  fetch_add_relaxed(calls, 1);
  if (start_ns) fetch_add_relaxed(total_ns, os_now_ns() - start_ns);
}

RESIDENT static void *map(void *address, size_t bytes, int protection, int flags) {
  uint64_t start_ns = start_of_call(&totals.os_maps);
  void *mapped = mmap(address, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  count_call(&totals.os_maps, &totals.os_map_ns, start_ns);
  if (mapped != MAP_FAILED) return mapped;
  fetch_add_relaxed(&totals.os_failures, 1);
  return NULL;
}

RESIDENT static enum os_map_result map_at(void *address, size_t bytes, int protection) {
  KEEP_ERRNO();
  void *mapped = map(address, bytes, protection, MAP_NORESERVE | MAP_FIXED_NOREPLACE);
  if (!mapped) return errno == EEXIST ? OS_OCCUPIED : OS_NO_MEMORY;
  if (mapped == address) return OS_MAPPED;
  munmap(mapped, bytes); /* before Linux 4.17 the address is only a hint */
  return OS_OCCUPIED;
}

RESIDENT enum os_map_result os_reserve_at(void *address, size_t bytes) {
  return map_at(address, bytes, PROT_READ);
}

RESIDENT bool os_commit(void *address, size_t bytes) {
  KEEP_ERRNO();
  return OS_CALL(SYS_mprotect, address, bytes, PROT_READ | PROT_WRITE) == 0;
}

/* Tries a mapping without access, which costs neither memory nor commit charge. */
bool os_is_occupied(const void *address, size_t bytes) {
  KEEP_ERRNO();
  void *place = (void *)(uintptr_t)address;
  void *mapped = mmap(place, bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  bool is_occupied = errno == EEXIST;
  if (mapped != MAP_FAILED) is_occupied = munmap(mapped, bytes) != 0 || mapped != address;
  return is_occupied;
}

RESIDENT enum os_map_result os_map_at(void *address, size_t bytes) {
  return map_at(address, bytes, PROT_READ | PROT_WRITE);
}

/* ---- what a refused call has left ------------------------------------------------------------ */

/* NOLINTNEXTLINE(misc-no-recursion): by halves, so 47 deep at most */
bool os_close_holes(char *address, size_t bytes) {
  /* Advice that changes nothing, and fails if there is a hole. */
  if (madvise(address, bytes, MADV_NORMAL) == 0) return true;
  void *mapped = map(address, bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE | MAP_FIXED_NOREPLACE);
  if (mapped == address) return true;
  if (!mapped && errno != EEXIST) return false;
  if (mapped) munmap(mapped, bytes); /* before Linux 4.17 the address is only a hint */
  size_t half = round_down(bytes / 2, os_page_bytes());
  return !half || (os_close_holes(address, half) && os_close_holes(address + half, bytes - half));
}

bool os_could_map(size_t bytes) {
  KEEP_ERRNO();
  void *mapped = map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE);
  if (mapped) munmap(mapped, bytes);
  return mapped != NULL;
}

bool os_unmap(void *address, size_t bytes) {
  KEEP_ERRNO();
  uint64_t start_ns = start_of_call(&totals.os_unmaps);
  bool unmapped = munmap(address, bytes) == 0;
  count_call(&totals.os_unmaps, &totals.os_unmap_ns, start_ns);
  return unmapped || !os_close_holes(address, bytes);
}

enum emptying { NOT_TRIED, EMPTIES, KEEPS };

/* NOT_TRIED when the page cannot be mapped, or the kernel refuses as it does for locked memory. */
static enum emptying try_to_empty(void) {
  char *page = map(NULL, os_page_bytes(), PROT_READ | PROT_WRITE, MAP_NORESERVE);
  if (!page) return NOT_TRIED;
  *page = 1;
  enum emptying found = NOT_TRIED;
  if (madvise(page, os_page_bytes(), MADV_DONTNEED) == 0) found = *page ? KEEPS : EMPTIES;
  munmap(page, os_page_bytes());
  return found;
}

/* Some emulators accept the advice and keep the content: a page is tried before the first purge,
 * which most processes never make. */
static bool empty_pages(void *address, size_t bytes) {
  static ATOMIC(char) known; /* relaxed: any thread finds the same */
  char found = load_relaxed(&known);
  if (UNLIKELY(found == NOT_TRIED)) store_relaxed(&known, found = (char)try_to_empty());
  return found == EMPTIES && madvise(address, bytes, MADV_DONTNEED) == 0;
}

bool os_purge(void *address, size_t bytes) {
  KEEP_ERRNO();
  uint64_t start_ns = start_of_call(&totals.os_purges);
  bool purged = empty_pages(address, bytes);
  count_call(&totals.os_purges, &totals.os_purge_ns, start_ns);
  if (purged) fetch_add_relaxed(&totals.purged_bytes, bytes);
  return purged;
}

void os_populate(void *address, size_t bytes) {
  KEEP_ERRNO();
  madvise(address, bytes, MADV_POPULATE_WRITE); /* only advice: older kernels return EINVAL */
}

RESIDENT void os_advise_huge(void *address, size_t bytes, bool want) {
  KEEP_ERRNO();
  madvise(address, bytes, want ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

enum os_change os_remap(void *address, size_t bytes) {
  KEEP_ERRNO();
  if (map(address, bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE | MAP_FIXED)) return OS_DONE;
  return os_close_holes(address, bytes) ? OS_REFUSED : OS_LOST; /* the kernel unmaps first */
}

/* Set when pages were closed by protection: the kernel has no guard regions, or refused one (locked
 * memory). */
static ATOMIC(bool) has_protected_pages;
/* Set when closed pages could not be emptied (locked memory): opening them clears them. */
static ATOMIC(bool) has_full_pages;

bool os_can_write(void *page) { return OS_CALL(SYS_getrandom, page, 1, GRND_NONBLOCK) == 1; }

/* Emulators accept advice that they do not know: so the kernel itself is asked to write there. */
static bool try_guard_regions(void) {
  void *page = map(NULL, os_page_bytes(), PROT_READ | PROT_WRITE, MAP_NORESERVE);
  if (!page) return false;
  bool they_work = madvise(page, os_page_bytes(), MADV_GUARD_INSTALL) == 0 && !os_can_write(page) &&
                   errno == EFAULT;
  munmap(page, os_page_bytes());
  return they_work;
}

static bool has_guard_regions(void) {
  static ATOMIC(char) known;
  return os_known(&known, try_guard_regions);
}

static bool open_pages(void *address, size_t bytes) {
  bool is_open = !has_guard_regions() || madvise(address, bytes, MADV_GUARD_REMOVE) == 0;
  if (load_relaxed(&has_protected_pages))
    is_open = OS_CALL(SYS_mprotect, address, bytes, PROT_READ | PROT_WRITE) == 0 && is_open;
  if (is_open && load_relaxed(&has_full_pages)) memset(address, 0, bytes);
  return is_open;
}

static bool close_pages(void *address, size_t bytes) {
  if (has_guard_regions() && madvise(address, bytes, MADV_GUARD_INSTALL) == 0) return true;
  store_relaxed(&has_protected_pages, true); /* read after the pages have changed hands */
  bool closed = OS_CALL(SYS_mprotect, address, bytes, PROT_NONE) == 0;
  if (!empty_pages(address, bytes)) store_relaxed(&has_full_pages, true);
  return closed;
}

bool os_close_pages(void *address, size_t bytes) {
  KEEP_ERRNO();
  return close_pages(address, bytes) || !open_pages(address, bytes);
}

bool os_open_pages(void *address, size_t bytes) {
  KEEP_ERRNO();
  bool is_open = open_pages(address, bytes);
  if (!is_open) close_pages(address, bytes); /* again those that did open, if possible */
  return is_open;
}

bool os_close_by_mapping(void *address, size_t bytes) {
  KEEP_ERRNO();
  if (map(address, bytes, PROT_NONE, MAP_NORESERVE | MAP_FIXED)) return true;
  return !os_close_holes(address, bytes); /* the kernel unmaps first: a hole is as good as closed */
}

void *os_reserve_closed(size_t bytes) {
  KEEP_ERRNO();
  void *reserved = map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE);
  if (!reserved || os_close_pages(reserved, bytes)) return reserved;
  munmap(reserved, bytes);
  return NULL;
}
