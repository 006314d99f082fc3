/* os_linux_move.c: the contract of os.h on Linux: moving pages, and where a mapping ends.
 *
 * mremap unmaps the target before it checks the source, and either refuses a source that spans two
 * mappings (before Linux 6.17), or moves one mapping after the other and leaves those moved when
 * one fails. A block that was moved once is several mappings. So each mapping is moved by a call of
 * its own: the kernel moves all of one mapping or nothing. */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "os/os.h"
#include "os/os_linux.h"

#ifndef MREMAP_DONTUNMAP /* Linux 5.7 */
#define MREMAP_DONTUNMAP 4
#endif

/* A mapping of fewer bytes than this and that part of the moved block is copied: else a block that
 * grows by small steps would become that number of mappings, and each step take as many calls.
 * Copied bytes belong to the target's own mapping. */
enum { MAPPING_MIN_BYTES = 256 << 10, MAPPING_DIVISOR = 256 };

static bool move_mapping(void *target, void *source, size_t bytes) {
  int flags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  return mremap(source, bytes, bytes, flags, target) == target;
}

/* Do the pages belong to more than one mapping? Asks the kernel to grow them in place to an
 * impossible size: it answers EFAULT if they do, else another error. */
static bool span_mappings(char *address, size_t bytes) {
  static ATOMIC(size_t) too_much; /* relaxed: any thread finds the same */
  size_t wanted = load_relaxed(&too_much);
  if (!wanted) store_relaxed(&too_much, wanted = os_user_address_end() - os_page_bytes());
  return mremap(address, bytes, wanted, 0) == MAP_FAILED && errno == EFAULT;
}

static size_t bytes_in_first_mapping(char *address, size_t bytes) {
  if (!span_mappings(address, bytes)) return bytes;
  size_t page_bytes = os_page_bytes(), fitting = 1, spanning = bytes / page_bytes;
  while (spanning - fitting > 1) {
    size_t middle = fitting + (spanning - fitting) / 2;
    if (span_mappings(address, middle * page_bytes))
      spanning = middle;
    else
      fitting = middle;
  }
  return fitting * page_bytes;
}

static bool try_to_tell_mappings(void) {
  size_t page_bytes = os_page_bytes(), bytes = 2 * page_bytes;
  char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return false;
  bool they_tell = !span_mappings(pages, bytes) &&
                   OS_CALL(SYS_mprotect, pages, page_bytes, PROT_NONE) == 0 &&
                   span_mappings(pages, bytes);
  munmap(pages, bytes);
  return they_tell;
}

/* Tested on pages of its own: an emulator may answer otherwise. */
bool os_is_one_mapping(void *address, size_t bytes) {
  static ATOMIC(char) known;
  KEEP_ERRNO();
  return !os_known(&known, try_to_tell_mappings) || !span_mappings(address, bytes);
}

static bool do_move(char *source, char *target, size_t page_bytes) {
  source[0] = 1;
  if (!move_mapping(target, source, 2 * page_bytes)) return false;
  if (!os_can_write(source) || target[0] != 1) return false;
  bool is_split = OS_CALL(SYS_mprotect, source + 2 * page_bytes, page_bytes, PROT_NONE) == 0;
  return is_split && bytes_in_first_mapping(source, 4 * page_bytes) == 2 * page_bytes;
}

/* Tests on pages of its own: before Linux 5.7 the source does not stay mapped, and emulators
 * support only a part. */
static bool try_to_move(void) {
  size_t page_bytes = os_page_bytes(), bytes = 8 * page_bytes;
  char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return false;
  bool they_move = do_move(pages, pages + 4 * page_bytes, page_bytes);
  munmap(pages, bytes);
  return they_move;
}

/* Moves or copies the pages up to the end of their mapping. Returns the number of bytes, or 0 when
 * the target is not mapped there any more. */
static size_t move_first_mapping(char *target, char *source, size_t rest, size_t least) {
  size_t bytes = bytes_in_first_mapping(source, rest);
  if (bytes >= least && move_mapping(target, source, bytes)) return bytes;
  if (bytes >= least && !os_close_holes(target, bytes)) return 0;
  memcpy(target, source, bytes);
  return bytes;
}

enum os_change os_move_pages(void *target, void *source, size_t bytes) {
  static ATOMIC(char) known;
  KEEP_ERRNO();
  if (!os_known(&known, try_to_move)) return OS_REFUSED;
  char *to = target, *from = source;
  const size_t least = MAPPING_MIN_BYTES + bytes / MAPPING_DIVISOR;
  for (size_t done = 0, moved; done < bytes; done += moved) {
    moved = move_first_mapping(to + done, from + done, bytes - done, least);
    if (moved) continue;
    memcpy(source, target, done); /* the target was the only copy */
    return OS_LOST;
  }
  return OS_DONE;
}
