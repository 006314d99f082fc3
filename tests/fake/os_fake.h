/* os_fake.h: the fake operating system: what tests set in it, and what they read from it.
 *
 * The fake keeps the contract of os.h over real memory.  Besides that it fails the calls it is
 * asked to, charges address space and commit against limits, holds time still and remembers what
 * was said on standard error.  Controls are changed while one thread runs. */
#ifndef HAK_TESTS_OS_FAKE_H
#define HAK_TESTS_OS_FAKE_H

#include "os/os.h"

/* Calls that the system may refuse. */
enum os_call {
  OS_CALL_RESERVE,
  OS_CALL_COMMIT,
  OS_CALL_MAP_AT,
  OS_CALL_UNMAP,
  OS_CALL_PURGE,
  OS_CALL_MOVE_PAGES,
  OS_CALL_REMAP,
  OS_CALL_OPEN_PAGES,
  OS_CALL_CLOSE_PAGES,
  OS_CALL_THREAD_START,
  OS_CALL_COUNT
};
#define OS_CALLS_ALL ((1u << OS_CALL_COUNT) - 1)

enum { OS_FAKE_WRITTEN_BYTES = 8192 };

struct os_fake_file {
  const char *path, *content;
};

struct os_fake {
  /* Of all calls of the kinds in `failing_kinds`, numbered from 1, those from fail_first to
   * fail_last are refused; with fail_one_in above 1 only one in that number, chosen by
   * fail_seed. */
  uint32_t failing_kinds;
  uint64_t fail_first, fail_last;
  uint64_t fail_one_in, fail_seed;
  /* Refused calls do as much of their work as their contract allows: half of it, or it loses a
   * mapping. */
  bool does_half;
  void (*look_at_crash)(const struct os_crash *crash); /* as os_watch_crashes was told */
  /* os_map_at finds this number of places occupied. */
  ATOMIC(uint64_t) occupied_places;
  uint64_t map_ms;       /* the time that os_map_at takes */
  uint64_t preempted_ms; /* a thread after os_reserve_at */

  uint64_t address_space_limit_bytes; /* as RLIMIT_AS; UINT64_MAX for none */
  uint64_t data_limit_bytes;   /* as RLIMIT_DATA: reported, not enforced; UINT64_MAX for none */
  uint64_t commit_limit_bytes; /* as CommitLimit under overcommit_memory=2 */
  bool is_overcommit_strict;
  enum os_huge_mode huge_mode; /* 0: never */
  bool is_multi_threaded;
  unsigned processor; /* which runs all threads */
  bool is_confined;
  bool is_guest; /* the calling thread is of another process, as a child of vfork is */
  size_t page_bytes;
  uint64_t random; /* the next number of os_random; then counts up */
  char **environment;
  const struct os_fake_file *files; /* up to one without a path: all that os_read_file finds */
  unsigned processor_count;
  uint64_t processor_ms; /* that the process has used */
  const void *marked;    /* by the program: its mapping is another one, until it is mapped anew */
  unsigned untouched_parts; /* of 256, of any memory, to os_resident_bytes */
  struct os_libc_malloc libc_malloc;
  uintptr_t break_begin, break_end;
  ATOMIC(uint64_t) now_ns;
  uint64_t purge_ns_a_page; /* that os_purge takes */
  uint64_t ns_a_reading;    /* of os_now_ns: whatever is timed takes as long */

  /* What happened. */
  ATOMIC(uint64_t) calls[OS_CALL_COUNT];
  ATOMIC(uint64_t) countable_calls; /* of the kinds in failing_kinds */
  ATOMIC(uint64_t) refused_calls;
  ATOMIC(uint64_t) refused[OS_CALL_COUNT]; /* the same by kind */
  ATOMIC(uint64_t) files_read;
  ATOMIC(uint64_t) populated_bytes;
  ATOMIC(uint64_t) huge_advices; /* calls of os_advise_huge */
  ATOMIC(uint64_t)
  huge_page_leaks; /* a part of 2 MiB went back that may have a huge page: it may come again */
  ATOMIC(uint64_t) address_bytes; /* mapped and reserved now */
  ATOMIC(uint64_t) charged_bytes; /* writable now: what strict overcommit counts */
  size_t written_bytes;
  char written[OS_FAKE_WRITTEN_BYTES]; /* said on standard error, NUL-terminated */
};

extern struct os_fake os_fake;

/* Controls to their defaults and counts to 0; the clock and what is mapped stay. */
void os_fake_reset(void);
/* Refuses calls first … last of these kinds, counted from now on. */
void os_fake_fail(uint32_t kinds, uint64_t first, uint64_t last);
/* Refuses one call of these kinds in `one_in`, at random; the same seed, the same calls. */
void os_fake_fail_at_random(uint32_t kinds, uint64_t one_in, uint64_t seed);
void os_fake_fail_none(void);
void os_fake_advance_ms(uint64_t milliseconds);
void os_fake_forget_written(void);
/* Whether a first touch in the aligned 2 MiB of this address may bring a huge page. */
bool os_fake_may_be_huge(const void *address);

#endif
