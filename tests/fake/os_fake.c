/* os_fake.c: the contract of os.h for tests; see os_fake.h.
 *
 * Memory is real, so that what hakmem does to it can be seen; everything that a test may want to
 * choose (refusals, limits, time, environment, output) passes through `os_fake`. */
#include "fake/os_fake.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/counters.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

enum { STANDARD_ERROR = 2, REAL_PAGE_BYTES = 4096 };

/* Some time after the machine was started: ages reach back beyond it. */
#define FIRST_NS (UINT64_C(1000000) * 1000000000)
#define DEFAULT_RANDOM UINT64_C(0x1234567)

#define DEFAULTS                                                                     \
  .failing_kinds = OS_CALLS_ALL, .fail_first = UINT64_MAX,                           \
  .address_space_limit_bytes = UINT64_MAX, .data_limit_bytes = UINT64_MAX,           \
  .commit_limit_bytes = UINT64_MAX, .is_multi_threaded = true, .processor_count = 2, \
  .page_bytes = REAL_PAGE_BYTES, .random = DEFAULT_RANDOM,                           \
  .libc_malloc = {free, realloc, malloc_usable_size}

struct os_fake os_fake = {DEFAULTS, .now_ns = FIRST_NS};

/* ---- for tests ------------------------------------------------------------------------------- */

void os_fake_reset(void) {
  uint64_t now_ns = load_relaxed(&os_fake.now_ns);
  uint64_t address_bytes = load_relaxed(&os_fake.address_bytes);
  uint64_t charged_bytes = load_relaxed(&os_fake.charged_bytes);
  os_fake = (struct os_fake){DEFAULTS, .now_ns = now_ns, .address_bytes = address_bytes,
                             .charged_bytes = charged_bytes};
}

void os_fake_fail(uint32_t kinds, uint64_t first, uint64_t last) {
  store_relaxed(&os_fake.countable_calls, 0);
  os_fake.failing_kinds = kinds;
  os_fake.fail_first = first;
  os_fake.fail_last = last;
  os_fake.fail_one_in = 1;
}

void os_fake_fail_at_random(uint32_t kinds, uint64_t one_in, uint64_t seed) {
  os_fake_fail(kinds, 1, UINT64_MAX);
  os_fake.fail_one_in = one_in;
  os_fake.fail_seed = seed;
}

void os_fake_fail_none(void) { os_fake_fail(OS_CALLS_ALL, UINT64_MAX, 0); }

void os_fake_advance_ms(uint64_t milliseconds) {
  fetch_add_relaxed(&os_fake.now_ns, milliseconds * 1000000);
}

void os_fake_forget_written(void) {
  os_fake.written_bytes = 0;
  os_fake.written[0] = 0;
}

/* ---- refusals -------------------------------------------------------------------------------- */

static bool is_chosen(uint64_t number) {
  return os_fake.fail_one_in <= 1 ||
         mix_bits(os_fake.fail_seed + number * UINT64_C(0x9e3779b97f4a7c15)) %
                 os_fake.fail_one_in ==
             0;
}

/* Counts the call; true when a test wants it refused. */
static bool is_refused(enum os_call call) {
  fetch_add_relaxed(&os_fake.calls[call], 1);
  if (!(os_fake.failing_kinds >> call & 1)) return false;
  uint64_t number = fetch_add_relaxed(&os_fake.countable_calls, 1) + 1;
  if (number < os_fake.fail_first || number > os_fake.fail_last || !is_chosen(number)) return false;
  fetch_add_relaxed(&os_fake.refused_calls, 1);
  fetch_add_relaxed(&os_fake.refused[call], 1);
  fetch_add_relaxed(&totals.os_failures, 1);
  return true;
}

/* The part of a refused call's work that is done: whole pages, none of a single one. */
static size_t half_of(size_t bytes) {
  return os_fake.does_half ? bytes / 2 / os_fake.page_bytes * os_fake.page_bytes : 0;
}

/* Adds to a sum that must not pass its limit; false when it would. */
static bool charge(ATOMIC(uint64_t) *sum, uint64_t bytes, uint64_t limit) {
  if (fetch_add_relaxed(sum, bytes) + bytes <= limit) return true;
  fetch_sub_relaxed(sum, bytes);
  return false;
}

static void discharge(ATOMIC(uint64_t) *sum, uint64_t bytes) {
  uint64_t before = fetch_sub_relaxed(sum, bytes);
  if (before < bytes) abort(); /* more was given back than there ever was */
}

static bool charge_address_space(uint64_t bytes) {
  return charge(&os_fake.address_bytes, bytes, os_fake.address_space_limit_bytes);
}

static bool charge_commit(uint64_t bytes) {
  uint64_t limit = os_fake.is_overcommit_strict ? os_fake.commit_limit_bytes : UINT64_MAX;
  return charge(&os_fake.charged_bytes, bytes, limit);
}

static void check_preconditions(const void *address, size_t bytes) {
  if (!bytes || bytes % os_fake.page_bytes || (uintptr_t)address % os_fake.page_bytes) abort();
}

/* ---- huge pages
 * ---------------------------------------------------------------------------------------------
 *
 * Of each aligned 2 MiB of the window (it is smaller than all that are told apart here): what the
 * kernel was told since they were mapped. */

#define HUGE_PAGE_BYTES ((uintptr_t)2 << 20)
enum { HUGE_PAGES_TOLD_APART = 1 << 16 };
enum advice { NO_ADVICE, REQUESTED, REFUSED };
static struct place {
  ATOMIC(char) advice;
  ATOMIC(bool)
  has_table; /* of small pages, as a part went back: no fault brings a huge page until it is mapped anew */
} huge_places[HUGE_PAGES_TOLD_APART];

static struct place *place_of(uintptr_t address) {
  return &huge_places[address / HUGE_PAGE_BYTES % HUGE_PAGES_TOLD_APART];
}

/* Now or later: khugepaged needs no free place. */
static bool may_be_huge(uintptr_t address) {
  char advice = load_relaxed(&place_of(address)->advice);
  if (os_huge_mode() == OS_HUGE_ALWAYS) return advice != REFUSED;
  return os_huge_mode() == OS_HUGE_ON_REQUEST && advice == REQUESTED;
}

bool os_fake_may_be_huge(const void *address) {
  uintptr_t at = (uintptr_t)address;
  return may_be_huge(at) && !load_relaxed(&place_of(at)->has_table);
}

static void note_mapped(void *address, size_t bytes) {
  uintptr_t first = round_up((uintptr_t)address, HUGE_PAGE_BYTES), end = (uintptr_t)address + bytes;
  for (uintptr_t at = first; at + HUGE_PAGE_BYTES <= end; at += HUGE_PAGE_BYTES) {
    store_relaxed(&place_of(at)->advice, NO_ADVICE);
    store_relaxed(&place_of(at)->has_table, false);
  }
}

/* Where a part is unmapped there is room for none. */
static bool is_mapped_in_full(uintptr_t address) {
  static _Thread_local unsigned char pages[HUGE_PAGE_BYTES / 4096];
  uintptr_t begin = address & ~(HUGE_PAGE_BYTES - 1);
  return mincore((void *)begin, HUGE_PAGE_BYTES, pages) == 0; /* NOLINT: made of addresses */
}

static void look_for_leak(uintptr_t edge) {
  if (edge % HUGE_PAGE_BYTES && may_be_huge(edge) && is_mapped_in_full(edge))
    fetch_add_relaxed(&os_fake.huge_page_leaks, 1);
  if (edge % HUGE_PAGE_BYTES) store_relaxed(&place_of(edge)->has_table, true);
}

/* ---- memory ---------------------------------------------------------------------------------- */

size_t os_page_bytes(void) { return os_fake.page_bytes; }

static void *map(void *address, size_t bytes, int protection, int flags) {
  fetch_add_relaxed(&totals.os_maps, 1);
  flags |= MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *mapped = mmap(address, bytes, protection, flags, -1, 0);
  return mapped == MAP_FAILED ? NULL : mapped;
}

/* Committed beginnings of reservations: committing the same pages again costs nothing. */
enum { COMMITTED_MAX = 64 };
static struct {
  void *address;
  size_t bytes;
} committed[COMMITTED_MAX];
static pthread_mutex_t committed_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Under the mutex. */
static size_t *committed_bytes_at(const void *address) {
  for (unsigned index = 0; index < COMMITTED_MAX; index++)
    if (committed[index].address == address) return &committed[index].bytes;
  for (unsigned index = 0; index < COMMITTED_MAX; index++) {
    if (committed[index].address) continue;
    committed[index].address = (void *)(uintptr_t)address;
    return &committed[index].bytes;
  }
  abort();
}

bool os_commit(void *address, size_t bytes) {
  check_preconditions(address, bytes);
  if (is_refused(OS_CALL_COMMIT)) {
    if (half_of(bytes)) mprotect(address, half_of(bytes), PROT_READ | PROT_WRITE);
    return false;
  }
  pthread_mutex_lock(&committed_mutex);
  size_t *before = committed_bytes_at(address);
  bool is_charged = bytes <= *before || charge_commit(bytes - *before);
  if (is_charged && bytes > *before) *before = bytes;
  pthread_mutex_unlock(&committed_mutex);
  return is_charged && mprotect(address, bytes, PROT_READ | PROT_WRITE) == 0;
}

static bool find_occupied(void) {
  uint64_t places = load_relaxed(&os_fake.occupied_places);
  while (places)
    if (cas_weak_acq_rel(&os_fake.occupied_places, &places, places - 1)) return true;
  return false;
}

/* Real mappings of a test are found, too. */
bool os_is_occupied(const void *address, size_t bytes) {
  check_preconditions(address, bytes);
  int saved_errno = errno;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void *mapped = mmap((void *)(uintptr_t)address, bytes, PROT_NONE, flags, -1, 0);
  bool is_occupied = mapped == MAP_FAILED && errno == EEXIST;
  if (mapped != MAP_FAILED) munmap(mapped, bytes);
  errno = saved_errno;
  return is_occupied;
}

static enum os_map_result map_charged(void *address, size_t bytes, int protection) {
  int saved_errno = errno;
  void *mapped = map(address, bytes, protection, MAP_FIXED_NOREPLACE);
  enum os_map_result result = mapped || errno == EEXIST ? OS_OCCUPIED : OS_NO_MEMORY;
  errno = saved_errno;
  if (mapped == address) return OS_MAPPED;
  if (mapped) munmap(mapped, bytes);
  return result;
}

/* Reserved memory is not charged, so giving it back discharges nothing. */
enum { RESERVED_MAX = 64 };
static ATOMIC(void *) reserved_places[RESERVED_MAX];

static bool change_reserved(void *from, void *to) {
  for (unsigned index = 0; index < RESERVED_MAX; index++) {
    void *expected = from;
    if (cas_strong_acq_rel(&reserved_places[index], &expected, to)) return true;
  }
  return false;
}

enum os_map_result os_reserve_at(void *address, size_t bytes) {
  check_preconditions(address, bytes);
  if (is_refused(OS_CALL_RESERVE) || !charge_address_space(bytes)) return OS_NO_MEMORY;
  enum os_map_result result = map_charged(address, bytes, PROT_READ);
  if (result != OS_MAPPED)
    discharge(&os_fake.address_bytes, bytes);
  else if (!change_reserved(NULL, address))
    abort();
  if (os_fake.preempted_ms) usleep((useconds_t)os_fake.preempted_ms * 1000);
  return result;
}

enum os_map_result os_map_at(void *address, size_t bytes) {
  check_preconditions(address, bytes);
  if (os_fake.map_ms) usleep((useconds_t)os_fake.map_ms * 1000);
  if (is_refused(OS_CALL_MAP_AT)) return OS_NO_MEMORY;
  if (find_occupied()) return OS_OCCUPIED;
  if (!charge_address_space(bytes)) return OS_NO_MEMORY;
  if (!charge_commit(bytes)) {
    discharge(&os_fake.address_bytes, bytes);
    return OS_NO_MEMORY;
  }
  enum os_map_result result = map_charged(address, bytes, PROT_READ | PROT_WRITE);
  if (result == OS_MAPPED) {
    note_mapped(address, bytes);
    return OS_MAPPED;
  }
  discharge(&os_fake.charged_bytes, bytes);
  discharge(&os_fake.address_bytes, bytes);
  return result;
}

static void drop(void *address, size_t bytes) {
  if (bytes && madvise(address, bytes, MADV_DONTNEED) != 0) abort(); /* a hole: not ours */
}

/* A mapping that was lost is whole again. */
static void fill_first_half(void *address, size_t bytes) {
  if (!map(address, half_of(bytes), PROT_READ | PROT_WRITE, MAP_FIXED)) abort();
}

bool os_could_map(size_t bytes) {
  if (!charge_address_space(bytes)) return false;
  bool could = charge_commit(bytes);
  if (could) discharge(&os_fake.charged_bytes, bytes);
  discharge(&os_fake.address_bytes, bytes);
  return could;
}

bool os_unmap(void *address, size_t bytes) {
  check_preconditions(address, bytes);
  if (is_refused(OS_CALL_UNMAP)) {
    if (madvise(address, bytes, MADV_NORMAL) != 0) fill_first_half(address, bytes);
    drop(address, half_of(bytes)); /* unmapped, and mapped again */
    return false;
  }
  fetch_add_relaxed(&totals.os_unmaps, 1);
  discharge(&os_fake.address_bytes, bytes);
  if (!change_reserved(address, NULL)) discharge(&os_fake.charged_bytes, bytes);
  return munmap(address, bytes) == 0;
}

bool os_purge(void *address, size_t bytes) {
  check_preconditions(address, bytes);
  look_for_leak((uintptr_t)address);
  look_for_leak((uintptr_t)address + bytes);
  if (is_refused(OS_CALL_PURGE)) {
    drop(address, half_of(bytes));
    return false;
  }
  drop(address, bytes);
  fetch_add_relaxed(&os_fake.now_ns, os_fake.purge_ns_a_page * (bytes / os_page_bytes()));
  fetch_add_relaxed(&totals.os_purges, 1);
  fetch_add_relaxed(&totals.purged_bytes, bytes);
  return true;
}

void os_populate(void *address, size_t bytes) {
  check_preconditions(address, bytes);
  fetch_add_relaxed(&os_fake.populated_bytes, bytes);
}

size_t os_resident_bytes(void *address, size_t bytes) {
  check_preconditions(address, bytes);
  return bytes - bytes / 256 * os_fake.untouched_parts;
}

void os_advise_huge(void *address, size_t bytes, bool want) {
  check_preconditions(address, bytes);
  fetch_add_relaxed(&os_fake.huge_advices, 1);
  uintptr_t first = (uintptr_t)address - (uintptr_t)address % HUGE_PAGE_BYTES;
  for (uintptr_t at = first; at < (uintptr_t)address + bytes; at += HUGE_PAGE_BYTES)
    store_relaxed(&place_of(at)->advice, want ? REQUESTED : REFUSED);
}

/* The rest of a mapping that a call has lost: the first half is not there, and nothing can be
 * mapped there now.  Its owner gives the rest back, and with it all that was charged. */
static enum os_change lose(void *address, size_t bytes) {
  if (!half_of(bytes)) return OS_REFUSED;
  munmap(address, half_of(bytes));
  return OS_LOST;
}

enum os_change os_move_pages(void *target, void *source, size_t bytes) {
  check_preconditions(target, bytes);
  check_preconditions(source, bytes);
  if (is_refused(OS_CALL_MOVE_PAGES)) return lose(target, bytes);
  int saved_errno = errno;
  int flags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  void *moved = mremap(source, bytes, bytes, flags, target);
  if (moved != target) { /* several mappings before Linux 6.17: the target may be gone */
    if (!map(target, bytes, PROT_READ | PROT_WRITE, MAP_FIXED)) abort();
    memcpy(target, source, bytes);
  }
  errno = saved_errno;
  return OS_DONE;
}

enum os_change os_remap(void *address, size_t bytes) {
  check_preconditions(address, bytes);
  if (is_refused(OS_CALL_REMAP)) return lose(address, bytes);
  if (!map(address, bytes, PROT_READ | PROT_WRITE, MAP_FIXED)) return OS_REFUSED;
  note_mapped(address, bytes);
  if (!os_is_one_mapping(address, bytes)) os_fake.marked = NULL;
  return OS_DONE;
}

bool os_is_one_mapping(void *address, size_t bytes) {
  check_preconditions(address, bytes);
  return (uintptr_t)os_fake.marked - (uintptr_t)address >= bytes;
}

void *os_reserve_closed(size_t bytes) {
  check_preconditions(NULL, bytes);
  if (is_refused(OS_CALL_RESERVE) || !charge_address_space(bytes)) return NULL;
  void *reserved = map(NULL, bytes, PROT_NONE, 0);
  if (!reserved) discharge(&os_fake.address_bytes, bytes);
  return reserved;
}

bool os_open_pages(void *address, size_t bytes) {
  check_preconditions(address, bytes);
  bool is_allowed = !is_refused(OS_CALL_OPEN_PAGES);
  size_t opened = is_allowed ? bytes : half_of(bytes);
  return (!opened || mprotect(address, opened, PROT_READ | PROT_WRITE) == 0) && is_allowed;
}

bool os_close_pages(void *address, size_t bytes) {
  check_preconditions(address, bytes);
  if (is_refused(OS_CALL_CLOSE_PAGES)) {
    drop(address, half_of(bytes)); /* closed, and opened again */
    return false;
  }
  madvise(address, bytes, MADV_DONTNEED);
  return mprotect(address, bytes, PROT_NONE) == 0;
}

bool os_close_by_mapping(void *address, size_t bytes) {
  check_preconditions(address, bytes);
  if (is_refused(OS_CALL_REMAP)) return lose(address, bytes) == OS_LOST;
  return map(address, bytes, PROT_NONE, MAP_FIXED);
}

/* ---- process and machine --------------------------------------------------------------------- */

uint64_t os_data_limit(void) { return os_fake.data_limit_bytes; }
bool os_overcommit_is_strict(void) { return os_fake.is_overcommit_strict; }

void os_read_file(const char *path, char *buffer, size_t buffer_bytes) {
  fetch_add_relaxed(&os_fake.files_read, 1);
  buffer[0] = 0;
  for (const struct os_fake_file *file = os_fake.files; file && file->path; file++)
    if (strcmp(file->path, path) == 0) strncat(buffer, file->content, buffer_bytes - 1);
}

enum os_huge_mode os_huge_mode(void) {
  return os_fake.huge_mode ? os_fake.huge_mode : OS_HUGE_NEVER;
}

uintptr_t os_user_address_end(void) {
#ifdef __SANITIZE_THREAD__
  return (uintptr_t)1 << 39; /* the sanitizer's shadow lies above */
#else
  return (uintptr_t)1 << 47;
#endif
}

unsigned os_processor_count(void) { return os_fake.processor_count; }
uint64_t os_random(void) { return mix_bits(os_fake.random++); }
uint32_t os_thread_id(void) { return (uint32_t)gettid(); }
uint32_t os_lasting_thread_id(void) { return os_thread_id(); }
uint32_t os_process_id(void) { return (uint32_t)getpid(); }
bool os_is_guest(void) { return os_fake.is_guest; }
char **os_environment(void) { return os_fake.environment; }
bool os_is_multi_threaded(void) { return os_fake.is_multi_threaded; }

void os_confine(void) { os_fake.is_confined = true; }
bool os_is_confined(void) { return os_fake.is_confined; }
/* For the whole machine: no process needs to register for it. */
bool os_fence_other_threads(void) {
  return !os_fake.is_confined && syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}
void os_note_prctl(int option) { (void)option; }

/* ---- time ------------------------------------------------------------------------------------ */

uint64_t os_now_ns(void) { return fetch_add_relaxed(&os_fake.now_ns, os_fake.ns_a_reading); }
uint64_t os_now_coarse_ms(void) { return load_relaxed(&os_fake.now_ns) / 1000000; }
uint64_t os_processor_ms(void) { return os_fake.processor_ms; }
uint64_t os_thread_ns(void) { return os_now_ns(); }
void os_yield(void) { sched_yield(); }
unsigned os_processor(void) { return os_fake.processor; }

void os_sleep_ms(uint64_t milliseconds) {
  (void)milliseconds; /* time is the test's: only let others run */
  struct timespec moment = {.tv_nsec = 100000};
  nanosleep(&moment, NULL);
}

/* ---- waiting --------------------------------------------------------------------------------- */

void os_wait(ATOMIC(uint32_t) *word, uint32_t expected, uint64_t timeout_ms) {
  if (load_relaxed(word) != expected) return;
  if (timeout_ms)
    os_sleep_ms(timeout_ms);
  else
    sched_yield(); /* waking without cause is allowed */
}

void os_wake_one(ATOMIC(uint32_t) *word) { (void)word; }
bool os_is_real_time(void) { return false; }
bool os_take_word(ATOMIC(uint32_t) *word, uint64_t most_ms) {
  (void)word, (void)most_ms;
  return false; /* a waiting thread yields */
}
bool os_give_word(ATOMIC(uint32_t) *word) {
  (void)word;
  return false;
}

bool os_thread_start(void *(*body)(void *), void *argument) {
  pthread_t thread;
  if (is_refused(OS_CALL_THREAD_START)) return false;
  return pthread_create(&thread, NULL, body, argument) == 0 && pthread_detach(thread) == 0;
}

void os_thread_settle(const char *name) { (void)name; }
void os_note_processors(void) {}
void os_forget_threads(void) {}
bool os_thread_exists(uint32_t thread_id) {
  (void)thread_id;
  return false;
}

static pthread_key_t exit_key;

void os_thread_exit_init(void (*function)(void *)) { pthread_key_create(&exit_key, function); }

void os_thread_exit_arm(void *argument) { pthread_setspecific(exit_key, argument); }
uintptr_t os_thread_value(unsigned key) { return (uintptr_t)pthread_getspecific(key); }

int os_cancel_off(void) { return 0; }
void os_cancel_restore(int before) { (void)before; }

bool os_start_keeper(const char *socket_path, unsigned wait_ms) {
  (void)socket_path, (void)wait_ms;
  return false;
}

void os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  pthread_atfork(prepare, parent, child);
}

/* A test that makes a copy says so itself. */
ATOMIC(struct os_mark *) os_mark;
static struct os_mark mark = {1};
static void (*settle_copy)(void);

void os_mark_copies(void (*settle)(void)) {
  settle_copy = settle;
  store_release(&os_mark, &mark);
}
void os_note_copy(void) { store_relaxed(&mark.process_id, 1); }
void os_call_settle(void) {
  os_note_copy();
  settle_copy();
}

/* ---- output ---------------------------------------------------------------------------------- */

static void remember(const char *bytes, size_t byte_count) {
  size_t room = OS_FAKE_WRITTEN_BYTES - 1 - os_fake.written_bytes;
  if (byte_count > room) byte_count = room;
  memcpy(os_fake.written + os_fake.written_bytes, bytes, byte_count);
  os_fake.written_bytes += byte_count;
  os_fake.written[os_fake.written_bytes] = 0;
}

bool os_write(int descriptor, const char *bytes, size_t byte_count) {
  int saved_errno = errno;
  if (descriptor == STANDARD_ERROR) remember(bytes, byte_count);
  ssize_t written = write(descriptor, bytes, byte_count);
  errno = saved_errno;
  return written == (ssize_t)byte_count;
}

int os_duplicate(int descriptor) { return descriptor; }
int os_create_file(const char *path) { return open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644); }
void os_close(int descriptor) { close(descriptor); }

bool os_read_safely(void *target, const void *source, size_t bytes) {
  struct iovec local = {target, bytes};
  struct iovec remote = {(void *)(uintptr_t)source, bytes};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

bool os_can_read(uintptr_t address) {
  uint32_t word;
  return os_read_safely(&word, (const void *)round_down(address, sizeof word), sizeof word);
}

NORETURN void os_abort(void) { abort(); }

/* ---- the C library's own malloc -------------------------------------------------------------- */

void *os_next_symbol(const char *name) {
  (void)name;
  return NULL;
}

bool os_symbol_is_ours(const char *name) {
  (void)name;
  return true;
}

const struct os_libc_malloc *os_libc_malloc(void) { return &os_fake.libc_malloc; }

/* Tests that crash on purpose watch themselves. */
void os_watch_crashes(void (*look)(const struct os_crash *crash)) { os_fake.look_at_crash = look; }

void os_watch_first(void) {}

/* ---- call stacks ----------------------------------------------------------------------------- */

/* The real modules; hakmem's code is the test's own, so none is left out. */
bool os_find_module(uintptr_t instruction, struct os_module *module) {
#ifdef DLFO_STRUCT_HAS_EH_DBASE
  struct dl_find_object found;
  if (_dl_find_object((void *)instruction, &found) != 0) return false;
  *module = (struct os_module){.begin = (uintptr_t)found.dlfo_map_start,
                               .end = (uintptr_t)found.dlfo_map_end,
                               .unwind_header = (uintptr_t)found.dlfo_eh_frame,
                               .tables_begin = (uintptr_t)found.dlfo_map_start,
                               .tables_end = (uintptr_t)found.dlfo_map_end};
  return true;
#else
  (void)instruction, (void)module;
  return false;
#endif
}
bool os_is_in_library(uintptr_t instruction) {
  (void)instruction;
  return false;
}
void os_note_modules(bool is_first_load) { (void)is_first_load; }
bool os_is_after_first_call(uintptr_t instruction) {
  (void)instruction;
  return false;
}

uintptr_t os_first_stack_end(void) { return getauxval(AT_EXECFN); }
bool os_program_segment(unsigned number, struct os_segment *segment) {
  (void)number, (void)segment;
  return false;
}

void os_find_place(uintptr_t instruction, struct os_place *place) {
  (void)instruction;
  *place = (struct os_place){.module = "fake.so"};
}

bool os_is_in_break(uintptr_t address) {
  return address >= os_fake.break_begin && address < os_fake.break_end;
}
