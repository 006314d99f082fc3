/* os_linux_memory.c: the contract of os.h on Linux, where it is about memory. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/counters.h"
#include "os/os.h"

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
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* The first calls of a process are not timed: to ask for the time brings 24 KiB of the C library into the
 * memory of many a small process. */
enum { CALLS_NOT_TIMED = 8 };

static uint64_t start_of_call(ATOMIC(uint64_t) *calls) {
  return load_relaxed(calls) < CALLS_NOT_TIMED ? 0 : os_now_ns();
}

static void count_call(ATOMIC(uint64_t) *calls, ATOMIC(uint64_t) *total_ns, uint64_t start_ns) {
  fetch_add_relaxed(calls, 1);
  if (start_ns) fetch_add_relaxed(total_ns, os_now_ns() - start_ns);
}

static void *map(void *address, size_t bytes, int protection, int flags) {
  uint64_t start_ns = start_of_call(&totals.os_maps);
  void *mapped = mmap(address, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  count_call(&totals.os_maps, &totals.os_map_ns, start_ns);
  if (mapped != MAP_FAILED) return mapped;
  fetch_add_relaxed(&totals.os_failures, 1);
  return NULL;
}

#if defined(__x86_64__)
/* The processor's only one; asking would touch pages of the C library that nothing else needs. */
size_t os_page_bytes(void) { return 4096; }
#else
size_t os_page_bytes(void) {
  static ATOMIC(size_t) cached; /* relaxed: any thread computes the same value */
  size_t bytes = load_relaxed(&cached);
  if (UNLIKELY(!bytes)) store_relaxed(&cached, bytes = (size_t)sysconf(_SC_PAGESIZE));
  return bytes;
}
#endif

static enum os_map_result map_at(void *address, size_t bytes, int protection) {
  int saved_errno = errno;
  void *mapped = map(address, bytes, protection, MAP_NORESERVE | MAP_FIXED_NOREPLACE);
  enum os_map_result result = OS_MAPPED;
  if (!mapped) {
    result = errno == EEXIST ? OS_OCCUPIED : OS_NO_MEMORY;
  } else if (mapped != address) { /* before Linux 4.17 the address is only a hint */
    munmap(mapped, bytes);
    result = OS_OCCUPIED;
  }
  errno = saved_errno;
  return result;
}

enum os_map_result os_reserve_at(void *address, size_t bytes) {
  return map_at(address, bytes, PROT_READ);
}

bool os_commit(void *address, size_t bytes) {
  int saved_errno = errno;
  bool committed = mprotect(address, bytes, PROT_READ | PROT_WRITE) == 0;
  errno = saved_errno;
  return committed;
}

/* Asked by a mapping without access, which costs neither memory nor commit charge. */
bool os_is_occupied(const void *address, size_t bytes) {
  int saved_errno = errno;
  void *place = (void *)(uintptr_t)address;
  void *mapped = mmap(place, bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  bool is_occupied = errno == EEXIST;
  if (mapped != MAP_FAILED) is_occupied = munmap(mapped, bytes) != 0 || mapped != address;
  errno = saved_errno;
  return is_occupied;
}

enum os_map_result os_map_at(void *address, size_t bytes) {
  return map_at(address, bytes, PROT_READ | PROT_WRITE);
}

bool os_unmap(void *address, size_t bytes) {
  int saved_errno = errno;
  uint64_t start_ns = start_of_call(&totals.os_unmaps);
  bool unmapped = munmap(address, bytes) == 0;
  count_call(&totals.os_unmaps, &totals.os_unmap_ns, start_ns);
  errno = saved_errno;
  return unmapped;
}

bool os_purge(void *address, size_t bytes) {
  int saved_errno = errno;
  uint64_t start_ns = start_of_call(&totals.os_purges);
  bool purged = madvise(address, bytes, MADV_DONTNEED) == 0;
  count_call(&totals.os_purges, &totals.os_purge_ns, start_ns);
  if (purged) fetch_add_relaxed(&totals.purged_bytes, bytes);
  errno = saved_errno;
  return purged;
}

void os_populate(void *address, size_t bytes) {
  int saved_errno = errno;
  madvise(address, bytes, MADV_POPULATE_WRITE); /* only advice: older kernels say EINVAL */
  errno = saved_errno;
}

size_t os_resident_bytes(void *address, size_t bytes) {
  enum { PAGES_MAX = 1024 };
  unsigned char is_resident[PAGES_MAX];
  int saved_errno = errno;
  size_t page_bytes = os_page_bytes(), pages = (bytes + page_bytes - 1) / page_bytes, resident = 0;
  bool is_told = pages <= PAGES_MAX && mincore(address, bytes, is_resident) == 0;
  errno = saved_errno;
  if (!is_told) return bytes;
  for (size_t page = 0; page < pages; page++) resident += is_resident[page] & 1;
  return resident * page_bytes;
}

void os_advise_huge(void *address, size_t bytes, bool want) {
  int saved_errno = errno;
  madvise(address, bytes, want ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  errno = saved_errno;
}

/* Emulators know mremap, but not all know that the source shall stay mapped. */
static bool is_mapped(void *address) {
  unsigned char residency;
  return mincore(address, os_page_bytes(), &residency) == 0;
}

bool os_move_pages(void *target, void *source, size_t bytes) {
  int saved_errno = errno;
  void *moved =
      mremap(source, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, target);
  if (moved == target && !is_mapped(source)) os_remap(source, bytes);
  errno = saved_errno;
  return moved == target;
}

bool os_remap(void *address, size_t bytes) {
  int saved_errno = errno;
  bool mapped = map(address, bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE | MAP_FIXED) != NULL;
  errno = saved_errno;
  return mapped;
}

/* Set when pages were closed by protection: the kernel has no guard regions, or refused one (locked memory). */
static ATOMIC(bool) has_protected_pages;

/* Emulators take advice that they do not know for granted: the kernel itself is asked to read there. */
static bool is_closed(const void *page) {
  return syscall(SYS_faccessat, AT_FDCWD, page, F_OK) != 0 && errno == EFAULT;
}

static bool try_guard_regions(void) {
  void *page = map(NULL, os_page_bytes(), PROT_READ | PROT_WRITE, MAP_NORESERVE);
  if (!page) return false;
  bool they_work = madvise(page, os_page_bytes(), MADV_GUARD_INSTALL) == 0 && is_closed(page);
  munmap(page, os_page_bytes());
  return they_work;
}

static bool has_guard_regions(void) {
  enum { UNKNOWN, THEY_WORK, THEY_DO_NOT };
  static ATOMIC(char) known; /* relaxed: any thread finds the same */
  char found = load_relaxed(&known);
  if (UNLIKELY(found == UNKNOWN))
    store_relaxed(&known, found = try_guard_regions() ? THEY_WORK : THEY_DO_NOT);
  return found == THEY_WORK;
}

bool os_close_pages(void *address, size_t bytes) {
  int saved_errno = errno;
  bool closed = has_guard_regions() && madvise(address, bytes, MADV_GUARD_INSTALL) == 0;
  if (!closed) {
    store_relaxed(&has_protected_pages, true); /* read after the pages came to other hands */
    closed = mprotect(address, bytes, PROT_NONE) == 0;
    madvise(address, bytes, MADV_DONTNEED); /* locked pages stay */
  }
  errno = saved_errno;
  return closed;
}

bool os_open_pages(void *address, size_t bytes) {
  int saved_errno = errno;
  bool is_open = !has_guard_regions() || madvise(address, bytes, MADV_GUARD_REMOVE) == 0;
  if (load_relaxed(&has_protected_pages))
    is_open = mprotect(address, bytes, PROT_READ | PROT_WRITE) == 0 && is_open;
  errno = saved_errno;
  return is_open;
}

void *os_reserve_closed(size_t bytes) {
  int saved_errno = errno;
  void *reserved = map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE);
  if (reserved && !os_close_pages(reserved, bytes)) {
    munmap(reserved, bytes);
    reserved = NULL;
  }
  errno = saved_errno;
  return reserved;
}
