/* os_linux_confined.c: the contract of os.h on Linux, where it is about filters of system calls
 * (seccomp).
 *
 * A filter may end the process at the first call that it does not list, and its list cannot be
 * read. So after the program has announced a filter, hakmem makes only calls that the C library's
 * malloc needs as well. A filter may have been installed before the program: until then hakmem
 * additionally reads files only, which the dynamic linker has just done (docs/decisions/0026). */
#include <linux/membarrier.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/scan.h"
#include "os/os.h"
#include "os/os_linux.h"

/* A guest filters only its own process. */
void os_note_prctl(int option) {
  if (os_is_confined() || (option != PR_SET_NO_NEW_PRIVS && option != PR_SET_SECCOMP)) return;
  if (os_is_guest()) return;
  os_confine();
  os_await_threads();
}

/* Reads the line "Seccomp:<tab>0" of the status; true too when it cannot be read. */
static bool find_filter(void) {
  char status[4096];
  os_read_file("/proc/self/status", status, sizeof status);
  const char *mode = scan_line(status, "Seccomp:\t");
  return !mode || *mode != '0';
}

/* True when a filter of system calls may have been installed before the program started. */
RESIDENT static bool is_filtered(void) {
  static ATOMIC(char) known;
  return os_known(&known, find_filter);
}

static bool fence(int command) { return OS_CALL(SYS_membarrier, command, 0, 0) == 0; }

bool os_fence_other_threads(void) {
  KEEP_ERRNO();
  if (os_is_confined() || is_filtered()) return false; /* it may kill the caller */
  return fence(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
         (fence(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
          fence(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}

enum { PAGES_MAX = 1024, NOT_TOLD = -1 };

static long count_by_call(void *address, size_t bytes, size_t pages) {
  unsigned char is_resident[PAGES_MAX];
  long resident = 0;
  if (OS_CALL(SYS_mincore, address, bytes, is_resident) != 0) return NOT_TOLD;
  for (size_t page = 0; page < pages; page++) resident += is_resident[page] & 1;
  return resident;
}

/* Reads a file with a word for each page. */
static long count_in_file(int file, size_t first, size_t pages) {
  enum { WORDS = 256 };
  const uint64_t present_or_swapped = UINT64_C(3) << 62;
  uint64_t words[WORDS];
  long resident = 0;
  for (size_t done = 0; done < pages;) {
    size_t count = pages - done < WORDS ? pages - done : WORDS;
    long wanted = (long)(count * sizeof *words);
    long got = OS_CALL(SYS_pread64, file, words, wanted, (long)((first + done) * sizeof *words));
    if (got != wanted) return NOT_TOLD;
    for (size_t word = 0; word < count; word++) resident += (words[word] & present_or_swapped) != 0;
    done += count;
  }
  return resident;
}

NOINLINE static long count_by_file(const void *address, size_t pages) {
  int file = os_open_to_read("/proc/self/pagemap");
  if (file < 0) return NOT_TOLD;
  long resident = count_in_file(file, (uintptr_t)address / os_page_bytes(), pages);
  os_close(file);
  return resident;
}

/* Uses mincore() when no filter is installed: opening a file would take the lowest free descriptor,
 * which another thread may rely on. */
size_t os_resident_bytes(void *address, size_t bytes) {
  KEEP_ERRNO();
  size_t page_bytes = os_page_bytes(), pages = (bytes + page_bytes - 1) / page_bytes;
  if (pages > PAGES_MAX || os_is_confined()) return bytes;
  bool may_call = !is_filtered();
  long resident = may_call ? count_by_call(address, bytes, pages) : count_by_file(address, pages);
  return resident < 0 ? bytes : (size_t)resident * page_bytes;
}
