/* os_linux.c: the contract of os.h on Linux: the machine, time, threads and output. The rest is
 * beside it, each file with a subject. */
#include "os/os.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "os/os_linux.h"

/* The kernel is asked by its own instruction (OS_CALL). So no function here is a cancellation
 * point, where a thread that ended would keep its locks, and no library that is loaded before has
 * replaced it by one that allocates or waits. The exceptions are mmap, munmap, mremap and madvise,
 * which such libraries replace to learn what becomes of memory, and pthread_create
 * (tests/shape/test_imports.py). */

static ATOMIC(bool) is_confined; /* relaxed: other threads see it before the filter is installed */

RESIDENT bool os_is_confined(void) { return load_relaxed(&is_confined); }

void os_confine(void) { store_relaxed(&is_confined, true); }

#if defined(__x86_64__)
/* The only page size of the processor; asking would touch pages of the C library that nothing else
 * needs. */
RESIDENT size_t os_page_bytes(void) { return 4096; }
#else
RESIDENT size_t os_page_bytes(void) {
  static ATOMIC(size_t) cached; /* relaxed: any thread computes the same value */
  size_t bytes = load_relaxed(&cached);
  if (UNLIKELY(!bytes)) store_relaxed(&cached, bytes = (size_t)sysconf(_SC_PAGESIZE));
  return bytes;
}
#endif

RESIDENT static int open_file(const char *path, int flags) {
  if (os_is_confined()) return -1;
  return (int)OS_CALL(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0644);
}

int os_open_to_read(const char *path) { return open_file(path, O_RDONLY); }

uint64_t os_data_limit(void) {
  KEEP_ERRNO();
  struct rlimit limit;
  if (os_is_confined() || OS_CALL(SYS_prlimit64, 0, RLIMIT_DATA, NULL, &limit) != 0)
    return UINT64_MAX;
  return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

RESIDENT void os_read_file(const char *path, char *buffer, size_t buffer_bytes) {
  KEEP_ERRNO();
  long length = 0;
  int descriptor = os_open_to_read(path);
  if (descriptor >= 0) {
    do {
      length = OS_CALL(SYS_read, descriptor, buffer, buffer_bytes - 1);
    } while (length < 0 && errno == EINTR);
    os_close(descriptor);
  }
  buffer[length > 0 ? length : 0] = 0;
}

void os_read_link(const char *path, char *buffer, size_t buffer_bytes) {
  KEEP_ERRNO();
  long length =
      os_is_confined() ? 0 : OS_CALL(SYS_readlinkat, AT_FDCWD, path, buffer, buffer_bytes - 1);
  buffer[length > 0 ? length : 0] = 0;
}

bool os_overcommit_is_strict(void) {
  static ATOMIC(char) overcommit_mode; /* 0 not read yet; relaxed: any thread reads the same */
  char mode[4] = {load_relaxed(&overcommit_mode)};
  if (UNLIKELY(!mode[0])) {
    os_read_file("/proc/sys/vm/overcommit_memory", mode, sizeof mode);
    store_relaxed(&overcommit_mode, mode[0] ? mode[0] : '0');
  }
  return mode[0] == '2';
}

RESIDENT static char read_huge_mode(void) {
  char modes[32];
  os_read_file("/sys/kernel/mm/transparent_hugepage/enabled", modes, sizeof modes);
  for (const char *at = modes; *at; at++)
    if (*at == '[') return at[1];
  return OS_HUGE_ALWAYS;
}

RESIDENT enum os_huge_mode os_huge_mode(void) {
  static ATOMIC(char) known; /* 0 not read yet; relaxed: any thread reads the same */
  char mode = load_relaxed(&known);
  if (UNLIKELY(!mode)) store_relaxed(&known, mode = read_huge_mode());
  return (enum os_huge_mode)mode;
}

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) /* with fewer addresses */
/* Five levels of page tables change nothing for a caller that does not ask for more. */
RESIDENT uintptr_t os_user_address_end(void) { return (uintptr_t)1 << 47; }
#else
/* True when `address` can be mapped: probed, as no interface reports it. */
static bool is_mappable(uintptr_t address) {
  size_t bytes = os_page_bytes();
  void *hint = (void *)address; /* NOLINT: made from an address */
  void *mapped = mmap(hint, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  munmap(mapped, bytes);
  return mapped == hint;
}

RESIDENT uintptr_t os_user_address_end(void) {
  KEEP_ERRNO();
  unsigned bits = 47; /* the usual aarch64 has 48; some kernels have 42 or 39 */
  while (bits > 32 && !is_mappable(((uintptr_t)1 << bits) - ((uintptr_t)1 << (bits - 2)))) bits--;
  return (uintptr_t)1 << bits;
}
#endif

unsigned os_processor_count(void) {
  KEEP_ERRNO();
  cpu_set_t set = {0};
  if (os_is_confined() || OS_CALL(SYS_sched_getaffinity, 0, sizeof set, &set) < 0) return 1;
  unsigned count = 0;
  for (size_t processor = 0; processor < CPU_SETSIZE; processor++)
    count += CPU_ISSET(processor, &set) != 0;
  return count;
}

RESIDENT uint64_t os_random(void) {
  KEEP_ERRNO();
  uint64_t value;
  bool is_given = OS_CALL(SYS_getrandom, &value, sizeof value, GRND_NONBLOCK) == sizeof value;
  return is_given ? value : mix_bits(os_now_ns());
}

RESIDENT char **os_environment(void) { return getauxval(AT_SECURE) ? NULL : environ; }

/* glibc 2.32 and newer keep this; others do not, and count as multi-threaded from the start. */
extern char __libc_single_threaded WEAK;

RESIDENT bool os_is_multi_threaded(void) {
  return !(&__libc_single_threaded && __libc_single_threaded);
}

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

static struct timespec time_of(uint64_t ns) {
  return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

static void wait_ns(ATOMIC(uint32_t) *word, uint32_t expected, uint64_t timeout_ns) {
  KEEP_ERRNO();
  struct timespec timeout = time_of(timeout_ns);
  OS_CALL(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout_ns ? &timeout : NULL, NULL, 0);
}

/* Sleeps in futex() on a private word: filters that forbid nanosleep allow futex. */
static void sleep_ns(uint64_t ns) {
  static ATOMIC(uint32_t) private_word;
  wait_ns(&private_word, 0, ns);
}

void os_yield(void) { sleep_ns(1); }

void os_sleep_ms(uint64_t milliseconds) { sleep_ns(milliseconds * NS_PER_MS); }

void os_wait(ATOMIC(uint32_t) *word, uint32_t expected, uint64_t timeout_ms) {
  wait_ns(word, expected, timeout_ms * NS_PER_MS);
}

void os_wake_one(ATOMIC(uint32_t) *word) {
  KEEP_ERRNO();
  OS_CALL(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool os_is_real_time(void) {
  KEEP_ERRNO();
  long policy = OS_CALL(SYS_sched_getscheduler, 0);
  if (policy >= 0) policy &= ~(long)SCHED_RESET_ON_FORK; /* a flag */
  return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

/* In the queue of words that processes share: threads that sleep in os_wait are in that of private
 * words, and the kernel lends no priority where both are in one (EINVAL). */
bool os_take_word(ATOMIC(uint32_t) *word, uint64_t most_ms) {
  if (os_is_confined()) return false; /* filters list what futex may do */
  KEEP_ERRNO();
  long result;
  do {
    struct timespec end = time_of(os_clock_ns(CLOCK_REALTIME) + most_ms * NS_PER_MS);
    result = OS_CALL(SYS_futex, word, FUTEX_LOCK_PI, 0, &end, NULL, 0);
  } while (result != 0 && (errno == EAGAIN || errno == EINTR)); /* its holder is about to end */
  return result == 0;
}

bool os_give_word(ATOMIC(uint32_t) *word) {
  if (os_is_confined()) return false; /* a waiter from before the confinement checks again */
  KEEP_ERRNO();
  return OS_CALL(SYS_futex, word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0) == 0;
}

/* Room for the program's static TLS and the sanitizers. */
enum { HELPER_STACK_BYTES = 512 << 10 };

/* Threads that have started but not settled: for them the C library still makes system calls that a
 * filter may not list. */
static ATOMIC(uint32_t) threads_beginning;

void os_await_threads(void) {
  enum { ATTEMPTS = 1000 };
  /* acquire: pairs with os_thread_settle. */
  for (unsigned attempt = 0; load_acquire(&threads_beginning) && attempt < ATTEMPTS; attempt++)
    os_sleep_ms(1);
}

bool os_thread_start(void *(*body)(void *), void *argument) {
  if (os_is_confined()) return false;
  KEEP_ERRNO();
  uint64_t before = os_block_signals(); /* the new thread inherits: no handler runs on it */
  pthread_attr_t attributes; /* holds no memory: each function of the C library costs a look-up */
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, HELPER_STACK_BYTES);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  fetch_add_relaxed(&threads_beginning, 1);
  bool started = pthread_create(&thread, &attributes, body, argument) == 0;
  if (!started) fetch_sub_relaxed(&threads_beginning, 1);
  os_unblock_signals(before);
  return started;
}

/* Not those that the C library sends its own threads. */
uint64_t os_block_signals(void) {
#if defined(__GLIBC__)
  const uint64_t of_libc = UINT64_C(3) << (32 - 1);
#else
  const uint64_t of_libc = UINT64_C(7) << (32 - 1);
#endif
  uint64_t all = ~of_libc, before = 0;
  OS_CALL(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
  return before;
}

void os_unblock_signals(uint64_t before) {
  OS_CALL(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
}

static cpu_set_t processors_at_load;
static bool knows_processors; /* else there are more: our threads keep their maker's */

RESIDENT void os_note_processors(void) {
  KEEP_ERRNO();
  long bytes = OS_CALL(SYS_sched_getaffinity, 0, sizeof processors_at_load, &processors_at_load);
  knows_processors = bytes > 0;
}

/* Each value is changed only if it differs: a filter may kill the caller. */
static void settle(const char *name) {
  struct sched_param no_priority = {0};
  cpu_set_t own = {0};
  OS_CALL(SYS_prctl, PR_SET_NAME, name, 0, 0, 0);
  if (os_is_real_time()) OS_CALL(SYS_sched_setscheduler, 0, SCHED_OTHER, &no_priority);
  OS_CALL(SYS_sched_getaffinity, 0, sizeof own, &own);
  if (knows_processors && !CPU_EQUAL(&own, &processors_at_load))
    OS_CALL(SYS_sched_setaffinity, 0, sizeof processors_at_load, &processors_at_load);
}

void os_forget_threads(void) { store_relaxed(&threads_beginning, 0); }

void os_thread_settle(const char *name) {
  if (!os_is_confined()) settle(name);
  fetch_sub_seq(&threads_beginning,
                1); /* release: its system calls before; pairs with os_await_threads */
}

bool os_thread_exists(uint32_t thread_id) {
  KEEP_ERRNO();
  return !os_is_confined() &&
         (OS_CALL(SYS_tgkill, os_process_id(), thread_id, 0) == 0 || errno != ESRCH);
}

static pthread_key_t exit_key;
static bool has_exit_key; /* else key 0 would be another library's */

RESIDENT void os_thread_exit_init(void (*function)(void *)) {
  has_exit_key = pthread_key_create(&exit_key, function) == 0;
}

RESIDENT void os_thread_exit_arm(void *argument) {
  if (has_exit_key) pthread_setspecific(exit_key, argument);
}

uintptr_t os_thread_value(unsigned key) {
  return key < PTHREAD_KEYS_MAX ? (uintptr_t)pthread_getspecific((pthread_key_t)key) : 0;
}

int os_cancel_off(void) {
  int before;
  return pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before) == 0 ? before
                                                                      : PTHREAD_CANCEL_ENABLE;
}

void os_cancel_restore(int before) { pthread_setcancelstate(before, &before); }

RESIDENT void os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  pthread_atfork(prepare, parent, child);
}

bool os_write(int descriptor, const char *bytes, size_t byte_count) {
  KEEP_ERRNO();
  while (byte_count) {
    long written = OS_CALL(SYS_write, descriptor, bytes, byte_count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    byte_count -= (size_t)written;
  }
  return true;
}

enum { DESCRIPTORS_LEFT_FREE = 64 }; /* programs and shells count from 0 */

int os_duplicate(int descriptor) {
  KEEP_ERRNO();
  int copy = (int)OS_CALL(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, DESCRIPTORS_LEFT_FREE);
  return copy < 0 ? descriptor : copy;
}

int os_create_file(const char *path) { return open_file(path, O_WRONLY | O_CREAT | O_TRUNC); }

void os_close(int descriptor) { OS_CALL(SYS_close, descriptor); }

bool os_copy_file(const char *path, int descriptor) {
  KEEP_ERRNO();
  char buffer[4096];
  long length;
  bool is_whole = true;
  int source = os_open_to_read(path);
  if (source < 0) return true;
  while ((length = OS_CALL(SYS_read, source, buffer, sizeof buffer)) > 0 ||
         (length < 0 && errno == EINTR))
    if (length > 0) is_whole &= os_write(descriptor, buffer, (size_t)length);
  os_close(source);
  return is_whole;
}

/* The kernel reads the word to compare it with the expected value, and moves no waiters, whatever
 * it finds. Filters that list what futex may do have its wait at least: there, a match would sleep
 * for the shortest time, 90 us, so the value is one that programs do not use. */
bool os_can_read(uintptr_t address) {
  const uint32_t unlikely = 0x9e3779b9;
  const struct timespec no_time = {0};
  uintptr_t word = round_down(address, sizeof(uint32_t));
  int saved_errno = errno;
  long result = os_is_confined()
                    ? OS_CALL(SYS_futex, word, FUTEX_WAIT_PRIVATE, unlikely, &no_time, NULL, 0)
                    : OS_CALL(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, word, unlikely);
  bool is_read = result == 0 || errno == EAGAIN || errno == ETIMEDOUT || errno == EINTR;
  errno = saved_errno;
  return is_read;
}

bool os_read_safely(void *target, const void *source, size_t bytes) {
  uintptr_t first = (uintptr_t)source, last = first + bytes - 1, page_bytes = os_page_bytes();
  bool is_readable = last >= first;
  for (uintptr_t at = first; is_readable && at <= last;
       at = round_down(at, page_bytes) + page_bytes)
    is_readable = os_can_read(at);
  if (is_readable) memcpy(target, source, bytes);
  return is_readable;
}

NORETURN void os_abort(void) { abort(); }
