/* os.c: the contract of os.h in a world without chance: memory at fixed places, time that stands
 * still, waiting and waking in the hands of the checker. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "model.h"
#include "os.h"
#include "os/os.h"
#include "stack/unwind.h"
#include "stack/unwind_python.h"

struct model_os model_os = {.now_ns = UINT64_C(1000000) * 1000000000};

/* ---- memory: what a run maps stays for the next ones; the checker takes back what was written  */

enum { CHUNKS_MAX = 64, PAGE_BYTES = 4096 };
static void *chunks[CHUNKS_MAX];

static bool is_known(const void *address) {
  for (unsigned index = 0; index < CHUNKS_MAX; index++)
    if (chunks[index] == address) return true;
  return false;
}

static void note_chunk(void *address) {
  for (unsigned index = 0; index < CHUNKS_MAX; index++) {
    if (chunks[index]) continue;
    chunks[index] = address;
    return;
  }
  abort();
}

static void *map(void *address, size_t bytes, int protection, int flags) {
  flags |= MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *mapped = mmap(address, bytes, protection, flags, -1, 0);
  return mapped == MAP_FAILED ? NULL : mapped;
}

size_t os_page_bytes(void) { return PAGE_BYTES; }
bool os_commit(void *address, size_t bytes) {
  return mprotect(address, bytes, PROT_READ | PROT_WRITE) == 0;
}
bool os_is_occupied(const void *address, size_t bytes) {
  (void)address, (void)bytes;
  return false;
}
bool os_could_map(size_t bytes) {
  (void)bytes;
  return true;
}

static enum os_map_result map_at(void *address, size_t bytes, int protection) {
  if (is_known(address)) return OS_MAPPED;
  if (map(address, bytes, protection, MAP_FIXED_NOREPLACE) != address) return OS_NO_MEMORY;
  note_chunk(address);
  return OS_MAPPED;
}
enum os_map_result os_reserve_at(void *address, size_t bytes) {
  return map_at(address, bytes, PROT_READ);
}
enum os_map_result os_map_at(void *address, size_t bytes) {
  return map_at(address, bytes, PROT_READ | PROT_WRITE);
}
bool os_unmap(void *address, size_t bytes) {
  (void)address, (void)bytes;
  return true;
}
bool os_purge(void *address, size_t bytes) {
  if (model_os.look_at_purge) model_os.look_at_purge((uintptr_t)address, bytes);
  return true;
}
void os_populate(void *address, size_t bytes) { (void)address, (void)bytes; }
size_t os_resident_bytes(void *address, size_t bytes) {
  (void)address;
  return bytes;
}
void os_advise_huge(void *address, size_t bytes, bool want) {
  (void)address, (void)bytes, (void)want;
}
enum os_change os_move_pages(void *target, void *source, size_t bytes) {
  (void)target, (void)source, (void)bytes;
  return OS_REFUSED;
}
enum os_change os_remap(void *address, size_t bytes) {
  (void)address, (void)bytes;
  return OS_REFUSED;
}
bool os_is_one_mapping(void *address, size_t bytes) {
  (void)address, (void)bytes;
  return true;
}
bool os_close_pages(void *address, size_t bytes) {
  (void)address, (void)bytes;
  return false;
}
bool os_close_by_mapping(void *address, size_t bytes) {
  (void)address, (void)bytes;
  return false;
}
bool os_open_pages(void *address, size_t bytes) {
  (void)address, (void)bytes;
  return false;
}

void *os_reserve_closed(size_t bytes) {
  (void)bytes;
  return NULL;
}
void os_watch_first(void) {}
void os_find_place(uintptr_t instruction, struct os_place *place) {
  (void)instruction;
  *place = (struct os_place){0};
}

/* ---- process, time, waiting ------------------------------------------------------------------ */

uint64_t os_data_limit(void) { return UINT64_MAX; }
bool os_overcommit_is_strict(void) { return false; }
enum os_huge_mode os_huge_mode(void) { return OS_HUGE_NEVER; }
uintptr_t os_user_address_end(void) { return (uintptr_t)1 << 46; }
unsigned os_processor_count(void) { return 2; }
void os_read_file(const char *path, char *buffer, size_t buffer_bytes) {
  (void)path, (void)buffer_bytes;
  buffer[0] = 0;
}
uint64_t os_random(void) { return 12345; }
uint32_t os_process_id(void) { return 1; }
void os_confine(void) {}
bool os_is_confined(void) { return false; }
uint32_t os_thread_id(void) { return (uint32_t)model_self() + 2; }
uint32_t os_lasting_thread_id(void) { return os_thread_id(); }
bool os_is_guest(void) { return false; }
char **os_environment(void) { return NULL; }
bool os_is_multi_threaded(void) { return true; }

uint64_t os_now_ns(void) { return model_os.now_ns; }
uint64_t os_now_coarse_ms(void) { return model_os.now_ns / 1000000; }
uint64_t os_processor_ms(void) { return 0; }
uint64_t os_thread_ns(void) { return 0; }
void os_yield(void) { model_pause(); }
unsigned os_processor(void) { return 0; }
bool os_fence_other_threads(void) { return false; }
void os_sleep_ms(uint64_t milliseconds) {
  (void)milliseconds;
  if (model_self() >= 0) model_end_thread(); /* a thread that would sleep for long is done */
}

void os_wait(ATOMIC(uint32_t) *word, uint32_t expected, uint64_t timeout_ms) {
  if (timeout_ms && timeout_ms == model_os.last_wait_ms) model_end_thread();
  /* Else a wake-up that comes too late is one that is lost. */
  model_wait(word, expected);
}
void os_wake_one(ATOMIC(uint32_t) *word) { model_wake(word); }
bool os_is_real_time(void) { return false; }
bool os_take_word(ATOMIC(uint32_t) *word, uint64_t most_ms) {
  (void)word, (void)most_ms;
  return false; /* who waits pauses */
}
bool os_give_word(ATOMIC(uint32_t) *word) {
  (void)word;
  return false;
}
bool os_thread_start(void *(*body)(void *), void *argument) {
  (void)argument; /* the scenario's threads are all there are */
  model_os.thread_body = body;
  return true;
}

void os_thread_settle(const char *name) { (void)name; }
void os_note_processors(void) {}
void os_forget_threads(void) {}
bool os_start_keeper(const char *socket_path, unsigned wait_ms) {
  (void)socket_path, (void)wait_ms;
  return false;
}

bool os_thread_exists(uint32_t thread_id) {
  (void)thread_id;
  return false;
}

void os_thread_exit_init(void (*function)(void *)) { model_os.end_of_thread = function; }
void os_thread_exit_arm(void *argument) { (void)argument; }
void os_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  (void)prepare, (void)parent, (void)child;
}

ATOMIC(struct os_mark *) os_mark;
void os_mark_copies(void (*settle)(void)) { (void)settle; }
void os_note_copy(void) {}
void os_call_settle(void) {}

/* ---- the rest -------------------------------------------------------------------------------- */

static char said[512];

bool os_write(int descriptor, const char *bytes, size_t byte_count) {
  (void)descriptor;
  size_t length = byte_count < sizeof said - 1 ? byte_count : sizeof said - 1;
  memcpy(said, bytes, length);
  said[length] = 0;
  return true;
}
NORETURN void os_abort(void) {
  model_fail(said, "os_abort", 0);
  abort();
}
int os_duplicate(int descriptor) { return descriptor; }
int os_create_file(const char *path) {
  (void)path;
  return -1;
}
void os_close(int descriptor) { (void)descriptor; }
bool os_read_safely(void *target, const void *source, size_t bytes) {
  memcpy(target, source, bytes);
  return true;
}
/* The unwinder reads tables that a scenario has none of. */
void unwind_prepare(void) {}
size_t unwind_stack(uintptr_t *frames, size_t max, bool *is_complete) {
  (void)frames;
  (void)max;
  *is_complete = false;
  return 0;
}
size_t unwind_python(const struct python_recipe *recipe, bool (*knows)(uintptr_t), uintptr_t *words,
                     size_t max) {
  (void)words;
  (void)knows;
  (void)recipe;
  (void)max;
  return 0;
}
void os_watch_crashes(void (*look)(const struct os_crash *crash)) { (void)look; }
void *os_next_symbol(const char *name) {
  (void)name;
  return NULL;
}

const struct os_libc_malloc *os_libc_malloc(void) {
  static const struct os_libc_malloc none;
  return &none;
}
bool os_is_in_break(uintptr_t address) {
  (void)address;
  return false;
}
