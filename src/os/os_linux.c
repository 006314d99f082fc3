/* os_linux.c: the contract of os.h on Linux. */
#include "os/os.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/counters.h"
#include "base/scan.h"

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

void *os_reserve(size_t bytes) {
  int saved_errno = errno;
  void *reserved = map(NULL, bytes, PROT_NONE, MAP_NORESERVE);
  errno = saved_errno;
  return reserved;
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
  int saved_errno = errno;
  void *mapped = map(address, bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE | MAP_FIXED_NOREPLACE);
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

uint64_t os_address_space_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

void os_read_file(const char *path, char *buffer, size_t buffer_bytes) {
  int saved_errno = errno;
  ssize_t length = 0;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor >= 0) {
    length = read(descriptor, buffer, buffer_bytes - 1);
    os_close(descriptor);
  }
  buffer[length > 0 ? length : 0] = 0;
  errno = saved_errno;
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

bool os_huge_pages_always(void) {
  char modes[32];
  os_read_file("/sys/kernel/mm/transparent_hugepage/enabled", modes, sizeof modes);
  for (const char *at = modes; *at; at++)
    if (*at == '[') return at[1] == 'a';
  return false;
}

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) /* which leaves a program less */
/* Five levels of page tables change nothing for who does not ask for more. */
uintptr_t os_user_address_end(void) { return (uintptr_t)1 << 47; }
#else
/* True when `address` can be mapped: probed, because nothing tells. */
static bool is_mappable(uintptr_t address) {
  size_t bytes = os_page_bytes();
  void *hint = (void *)address; /* NOLINT: an address is what it is */
  void *mapped = mmap(hint, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  munmap(mapped, bytes);
  return mapped == hint;
}

uintptr_t os_user_address_end(void) {
  int saved_errno = errno;
  unsigned bits = 47; /* the usual aarch64 has 48; some kernels have 42 or 39 */
  while (bits > 32 && !is_mappable(((uintptr_t)1 << bits) - ((uintptr_t)1 << (bits - 2)))) bits--;
  errno = saved_errno;
  return (uintptr_t)1 << bits;
}
#endif

unsigned os_processor_count(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  unsigned count = 0;
  for (size_t processor = 0; processor < CPU_SETSIZE; processor++)
    count += CPU_ISSET(processor, &set) != 0;
  return count;
}

uint64_t os_random(void) {
  int saved_errno = errno;
  uint64_t value = 0;
  if (getrandom(&value, sizeof value, GRND_NONBLOCK) != sizeof value) value = mix_bits(os_now_ns());
  errno = saved_errno;
  return value;
}

uint32_t os_thread_id(void) { return (uint32_t)syscall(SYS_gettid); }
uint32_t os_process_id(void) { return (uint32_t)syscall(SYS_getpid); }

char **os_environment(void) { return getauxval(AT_SECURE) ? NULL : environ; }

/* glibc 2.32 and newer keep this; others do not, and count as multi-threaded from the start. */
extern char __libc_single_threaded WEAK;

bool os_is_multi_threaded(void) { return !(&__libc_single_threaded && __libc_single_threaded); }

static uint64_t clock_ns(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

uint64_t os_now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

uint64_t os_now_coarse_ms(void) { return clock_ns(CLOCK_MONOTONIC_COARSE) / 1000000; }

uint64_t os_processor_ms(void) { return clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000000; }

void os_yield(void) { syscall(SYS_sched_yield); }

void os_sleep_ms(uint64_t milliseconds) {
  int saved_errno = errno;
  struct timespec time = {.tv_sec = (time_t)(milliseconds / 1000),
                          .tv_nsec = (long)(milliseconds % 1000) * 1000000};
  syscall(SYS_nanosleep, &time, NULL);
  errno = saved_errno;
}

void os_wait(ATOMIC(uint32_t) *word, uint32_t expected, uint64_t timeout_ms) {
  int saved_errno = errno;
  struct timespec timeout = {.tv_sec = (time_t)(timeout_ms / 1000),
                             .tv_nsec = (long)(timeout_ms % 1000) * 1000000};
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout_ms ? &timeout : NULL, NULL, 0);
  errno = saved_errno;
}

void os_wake_one(ATOMIC(uint32_t) *word) {
  int saved_errno = errno;
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  errno = saved_errno;
}

/* Room for the program's static TLS and what the sanitizers need. */
enum { HELPER_STACK_BYTES = 512 << 10 };

bool os_thread_start(void *(*body)(void *), void *argument) {
  int saved_errno = errno;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits: no handler runs on it */
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, HELPER_STACK_BYTES);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  bool started = pthread_create(&thread, &attributes, body, argument) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  errno = saved_errno;
  return started;
}

static pthread_key_t exit_key;
static bool has_exit_key; /* else key 0 would be somebody else's */

bool os_thread_exit_init(void (*function)(void *)) {
  has_exit_key = pthread_key_create(&exit_key, function) == 0;
  return has_exit_key;
}

void os_thread_exit_arm(void *argument) {
  if (has_exit_key) pthread_setspecific(exit_key, argument);
}

void os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  pthread_atfork(prepare, parent, child);
}

void os_write(int descriptor, const char *bytes, size_t byte_count) {
  int saved_errno = errno;
  while (byte_count) {
    ssize_t written = write(descriptor, bytes, byte_count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    bytes += written;
    byte_count -= (size_t)written;
  }
  errno = saved_errno;
}

enum { DESCRIPTORS_LEFT_FREE = 64 }; /* programs and shells count from 0 */

int os_duplicate(int descriptor) {
  int saved_errno = errno;
  int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, DESCRIPTORS_LEFT_FREE);
  errno = saved_errno;
  return copy < 0 ? descriptor : copy;
}

int os_create_file(const char *path) {
  return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

void os_close(int descriptor) { syscall(SYS_close, descriptor); }

bool os_read_safely(void *target, const void *source, size_t bytes) {
  int saved_errno = errno;
  struct iovec local = {target, bytes};
  struct iovec remote = {(void *)(uintptr_t)source, bytes};
  long read = syscall(SYS_process_vm_readv, os_process_id(), &local, 1, &remote, 1, 0);
  errno = saved_errno;
  return read == (long)bytes;
}

NORETURN void os_abort(void) { abort(); }

static void (*crash_look)(const struct os_crash *crash);

static uintptr_t instruction_of(const ucontext_t *context) {
#if defined(__x86_64__)
  return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
  return (uintptr_t)context->uc_mcontext.pc;
#else
  (void)context;
  return 0;
#endif
}

/* Given by the linker for each shared object, and for a program. */
extern const char __ehdr_start[] HIDDEN, etext[] HIDDEN;

static bool is_in_library(uintptr_t instruction) {
  uintptr_t start = (uintptr_t)__ehdr_start;
  bool is_program = getauxval(AT_PHDR) - start < os_page_bytes(); /* then it is all one */
  return !is_program && instruction >= start && instruction < (uintptr_t)etext;
}

#if defined(__aarch64__)
/* The kernel's record of the fault among the extra ones of the context, each with a magic number. */
static enum os_access access_of(const ucontext_t *context) {
  enum { SYNDROME_IS_WRITE = 1 << 6 };
  const unsigned char *at = context->uc_mcontext.__reserved;
  const unsigned char *end = at + sizeof context->uc_mcontext.__reserved;
  uint32_t head[2]; /* magic, bytes */
  for (; at + 16 <= end; at += head[1]) {
    memcpy(head, at, sizeof head);
    if (!head[0] || head[1] < sizeof head) break;
    if (head[0] != ESR_MAGIC) continue;
    uint64_t syndrome;
    memcpy(&syndrome, at + sizeof head, sizeof syndrome);
    return syndrome & SYNDROME_IS_WRITE ? OS_ACCESS_WRITE : OS_ACCESS_READ;
  }
  return OS_ACCESS_UNKNOWN;
}
#elif defined(__x86_64__)
static enum os_access access_of(const ucontext_t *context) {
  enum { PAGE_FAULT_IS_WRITE = 2 };
  bool is_write = context->uc_mcontext.gregs[REG_ERR] & PAGE_FAULT_IS_WRITE;
  return is_write ? OS_ACCESS_WRITE : OS_ACCESS_READ;
}
#else
static enum os_access access_of(const ucontext_t *context) {
  (void)context;
  return OS_ACCESS_UNKNOWN;
}
#endif

enum { WATCHED_SIGNALS = 2 };
static const int watched_signals[WATCHED_SIGNALS] = {SIGSEGV, SIGBUS};

/* Whom a signal goes to after us: what was there when we came, and before whom we put ourselves last. */
static struct sigaction handler_at_first[WATCHED_SIGNALS], handler_behind[WATCHED_SIGNALS];

static unsigned watched_index(int signal) { return signal != watched_signals[0]; }

static bool is_function(const struct sigaction *action) {
  return action->sa_flags & SA_SIGINFO ||
         (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static bool is_ours(const struct sigaction *action);

/* A program that set its handler after us may call us as the one before it, instead of the kernel.  The
 * kernel returns to the instructions that end a signal. */
static bool is_called_by_kernel(uintptr_t return_address) {
#if defined(__x86_64__)
  static const unsigned char ending[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
#elif defined(__aarch64__)
  static const unsigned char ending[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
#else
  static const unsigned char ending[] = {0};
#endif
  return memcmp((const void *)return_address, ending, sizeof ending) == 0;
}

/* The default action comes next: by the same instruction, or by the same signal sent again. */
static void take_default(int signal, const siginfo_t *info) {
  struct sigaction by_default = {.sa_handler = SIG_DFL};
  sigaction(signal, &by_default, NULL);
  if (info->si_code <= 0)
    syscall(SYS_tgkill, os_process_id(), os_thread_id(),
            signal); /* sent by a process: delivered when this handler returns */
}

static void hand_on(const struct sigaction *action, int signal, siginfo_t *info, void *context) {
  struct sigaction by_default = {.sa_handler = SIG_DFL};
  if (!is_function(action)) {
    take_default(signal, info);
    return;
  }
  if ((unsigned)action->sa_flags & SA_RESETHAND) sigaction(signal, &by_default, NULL);
  if (action->sa_flags & SA_SIGINFO)
    action->sa_sigaction(signal, info, context);
  else
    action->sa_handler(signal);
}

static void look_at_crash(int signal, const siginfo_t *info, void *context, bool is_handled) {
  uintptr_t instruction = instruction_of(context);
  struct os_crash crash = {.signal_name = signal == SIGSEGV ? "SIGSEGV" : "SIGBUS",
                           .instruction = instruction,
                           .address = (uintptr_t)info->si_addr,
                           .access = access_of(context),
                           .is_in_library = is_in_library(instruction),
                           .is_handled = is_handled};
  crash_look(&crash);
}

static void on_crash(int signal, siginfo_t *info, void *context) {
  unsigned index = watched_index(signal);
  int saved_errno = errno;
  struct sigaction now;
  sigaction(signal, NULL, &now);
  bool is_first = is_called_by_kernel(CALLER_ADDRESS());
  const struct sigaction *next = is_first ? &handler_behind[index] : &handler_at_first[index];
  /* Who calls us, and is the first itself, was not seen before. */
  bool is_fault = info->si_code > 0;
  if (is_fault && (is_first || !is_ours(&now)))
    look_at_crash(signal, info, context, is_function(next) || !is_first);
  errno = saved_errno;
  hand_on(next, signal, info, context);
}

static bool is_ours(const struct sigaction *action) {
  return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_crash;
}

static bool is_default(const struct sigaction *action) {
  return !is_function(action) && action->sa_handler == SIG_DFL;
}

/* As the handler behind us would be called. */
static bool watch_before(unsigned index, const struct sigaction *behind, struct sigaction *before) {
  struct sigaction watch = {
      .sa_sigaction = on_crash, .sa_mask = behind->sa_mask, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  if (is_function(behind))
    watch.sa_flags = (int)((unsigned)behind->sa_flags & ~SA_RESETHAND) | SA_SIGINFO;
  handler_behind[index] = *behind; /* several threads may write the same */
  return sigaction(watched_signals[index], &watch, before) == 0;
}

/* Unless somebody else does; who was there.  One call of the system instead of two while no other thread can get
 * the signal in between. */
static bool watch_if_nobody(unsigned index, struct sigaction *before) {
  const struct sigaction nobody = {.sa_handler = SIG_DFL};
  if (os_is_multi_threaded()) {
    if (sigaction(watched_signals[index], NULL, before) != 0) return false;
    return !is_default(before) || watch_before(index, before, NULL);
  }
  if (!watch_before(index, &nobody, before)) return false;
  return is_default(before) || sigaction(watched_signals[index], before, NULL) == 0;
}

void os_watch_crashes(void (*look)(const struct os_crash *crash)) {
  int saved_errno = errno;
  crash_look = look;
  for (unsigned index = 0; index < WATCHED_SIGNALS; index++) {
    struct sigaction before;
    if (watch_if_nobody(index, &before)) handler_at_first[index] = before;
  }
  errno = saved_errno;
}

void os_watch_first(void) {
  int saved_errno = errno;
  struct sigaction now;
  bool is_known = crash_look && sigaction(SIGSEGV, NULL, &now) == 0;
  if (is_known && !is_ours(&now) && (is_function(&now) || is_default(&now)))
    watch_before(0, &now, NULL);
  errno = saved_errno;
}

/* Weak: musl has none, and a fully static program has it only if it uses it. */
extern int backtrace(void **frames, int frames_max) WEAK;
extern int dladdr(const void *address, Dl_info *info) WEAK;

static ATOMIC(bool) can_backtrace; /* relaxed: whoever sees it late finds nothing */

void os_backtrace_prepare(void) {
  void *frames[2];
  if (!&backtrace) return;
  int saved_errno = errno;
  backtrace(frames, 2); /* loads what it needs */
  store_relaxed(&can_backtrace, true);
  errno = saved_errno;
}

/* More than are ever left out: those of hakmem itself, or of a signal handler. */
enum { BACKTRACE_FRAMES_MAX = 40, OWN_FRAMES_MAX = 8 };

/* Where the stack begins that a reader wants to see: behind hakmem's own code, or behind a handler. */
static unsigned first_of_interest(void *const *frames, unsigned frame_count, uintptr_t from) {
  unsigned first = 0;
  if (!from) {
    while (first < frame_count && is_in_library((uintptr_t)frames[first])) first++;
    return first;
  }
  while (first < frame_count && (uintptr_t)frames[first] != from) first++;
  return first < frame_count ? first : 0;
}

unsigned os_backtrace(uintptr_t *frames, unsigned frames_max, uintptr_t from) {
  void *found[BACKTRACE_FRAMES_MAX];
  unsigned count = 0;
  if (!load_relaxed(&can_backtrace)) return 0;
  int saved_errno = errno;
  int wanted = from ? BACKTRACE_FRAMES_MAX : (int)frames_max + OWN_FRAMES_MAX;
  if (wanted > BACKTRACE_FRAMES_MAX) wanted = BACKTRACE_FRAMES_MAX;
  unsigned found_count = (unsigned)backtrace(found, wanted);
  unsigned first = first_of_interest(found, found_count, from);
  while (first + count < found_count && count < frames_max) {
    frames[count] = (uintptr_t)found[first + count];
    count++;
  }
  errno = saved_errno;
  return count;
}

void os_find_place(uintptr_t instruction, struct os_place *place) {
  Dl_info info;
  *place = (struct os_place){0};
  if (!&dladdr || !dladdr((const void *)instruction, &info)) return;
  *place = (struct os_place){.module = info.dli_fname,
                             .module_base = (uintptr_t)info.dli_fbase,
                             .symbol = info.dli_sname,
                             .symbol_base = (uintptr_t)info.dli_saddr};
}

/* Weak: a fully static program has no dynamic linker, and no other malloc either. */
extern void *dlsym(void *restrict handle, const char *restrict name) WEAK;

void *os_next_symbol(const char *name) { return &dlsym ? dlsym(RTLD_NEXT, name) : NULL; }

const struct os_libc_malloc *os_libc_malloc(void) {
  static struct os_libc_malloc found;
  static ATOMIC(bool) is_found; /* release after, acquire before: the members are there */
  if (!load_acquire(&is_found)) {
    int saved_errno = errno;
    struct os_libc_malloc next;
    *(void **)&next.free = os_next_symbol("free");
    *(void **)&next.realloc = os_next_symbol("realloc");
    *(void **)&next.usable_size = os_next_symbol("malloc_usable_size");
    found = next; /* several threads may write the same values */
    store_release(&is_found, true);
    errno = saved_errno;
  }
  return &found;
}

enum { STAT_FIELD_START_BRK = 47, STAT_FIELD_AFTER_NAME = 3 }; /* proc(5), counted from 1 */

/* Where the break began: it is placed at random above the program's data. */
static uintptr_t break_start(void) {
  char stat[1024];
  os_read_file("/proc/self/stat", stat, sizeof stat);
  const char *at = scan_for_last(stat, ')'); /* the name before it may contain anything */
  if (!at || !at[1]) return UINTPTR_MAX;
  at += 2;
  for (unsigned field = STAT_FIELD_AFTER_NAME; *at && field < STAT_FIELD_START_BRK; at++)
    field += *at == ' ';
  uintptr_t start = 0;
  for (; *at >= '0' && *at <= '9'; at++) start = start * 10 + (uintptr_t)(*at - '0');
  return start ? start : UINTPTR_MAX;
}

bool os_is_in_break(uintptr_t address) {
  return address < (uintptr_t)sbrk(0) && address >= break_start();
}
