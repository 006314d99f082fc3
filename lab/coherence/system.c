/* system.c: the functions of os/os.h that concern time and other threads; the linker prefers these
 * functions to the real ones. */
#include "coherence.h"
#include "os/lock.h"
#include "os/os.h"

/* A sleep of a nanosecond takes as long as the kernel's timers may be late. */
enum {
  SINCE_BOOT_NS = 1000000000,
  SLEEP_NS = 50000,
  SYSTEM_CALL_NS = 1000,
  WAKE_NS = 5000,
  WORD_HAS_WAITERS = (int)0x80000000
};

static void (*at_thread_end)(void *);
static THREAD_LOCAL void *thread_end_argument;

uint64_t os_now_ns(void) { return SINCE_BOOT_NS + clock_now(); }
uint64_t os_now_coarse_ms(void) { return os_now_ns() / 1000000; }
uint64_t os_thread_ns(void) { return os_now_ns(); }
uint64_t os_processor_ms(void) { return core_count * os_now_coarse_ms(); }
unsigned os_processor_count(void) { return core_count; }
unsigned os_processor(void) { return running_core(); }
bool os_is_multi_threaded(void) { return true; }
uint32_t os_thread_id(void) { return thread_id(); }
void os_yield(void) { pass_time(SLEEP_NS); }
void os_sleep_ms(uint64_t milliseconds) { pass_time(milliseconds * 1000000); }
bool os_fence_other_threads(void) { return true; }

/* A thread that waits looks again after a while. */
void os_wait(ATOMIC(uint32_t) *word, uint32_t expected, uint64_t timeout_ms) {
  (void)word, (void)expected, (void)timeout_ms;
  os_yield();
}
void os_wake_one(ATOMIC(uint32_t) *word) { (void)word; }

/* The kernel's list of waiters, all words' together, oldest first. */
static struct waiter {
  ATOMIC(uint32_t) *word;
  uint32_t thread;
} waiters[CORES_MAX];
static unsigned waiter_count;

bool os_take_word(ATOMIC(uint32_t) *word, uint64_t most_ms) {
  (void)most_ms;
  pass_time(SYSTEM_CALL_NS);
  access_memory(word, sizeof *word, true, NULL, __builtin_return_address(0));
  uint32_t self = thread_id();
  if (word_try(word, self)) return true;
  fetch_or_seq(word, (uint32_t)WORD_HAS_WAITERS);
  waiters[waiter_count++] = (struct waiter){word, self};
  while ((load_relaxed(word) & WORD_HOLDER_MASK) != self) pass_time(WAKE_NS);
  return true;
}

bool os_give_word(ATOMIC(uint32_t) *word) {
  uint32_t next = 0;
  unsigned kept = 0;
  pass_time(SYSTEM_CALL_NS);
  for (unsigned i = 0; i < waiter_count; i++) {
    if (waiters[i].word != word)
      waiters[kept++] = waiters[i];
    else if (!next)
      next = waiters[i].thread;
    else
      waiters[kept++] = waiters[i], next |= (uint32_t)WORD_HAS_WAITERS;
  }
  waiter_count = kept;
  store_relaxed(word, next);
  return next != 0;
}

/* The helper thread sleeps for longer than a run lasts. */
bool os_thread_start(void *(*body)(void *), void *argument) {
  (void)body, (void)argument;
  return true;
}
void os_thread_exit_init(void (*function)(void *)) { at_thread_end = function; }
void os_thread_exit_arm(void *argument) { thread_end_argument = argument; }

void end_thread(void) {
  for (void *argument; (argument = thread_end_argument);) {
    thread_end_argument = NULL;
    at_thread_end(argument);
  }
  begin_thread();
}
