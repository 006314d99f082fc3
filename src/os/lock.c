#include "os/lock.h"

#include "base/bits.h"

THREAD_LOCAL uint32_t thread_number_if_known;

NOINLINE uint32_t thread_number_ask(void) { return thread_number_if_known = os_thread_id(); }

/* In a forked child, which has one thread: its number in the parent; 0 if it had asked for none, and so held nothing. */
static uint32_t number_before_fork;

void thread_number_forget(void) {
  uint32_t number = thread_number_if_known; /* a page is copied only if written */
  if (number_before_fork != number) number_before_fork = number;
  if (number) thread_number_if_known = 0;
}

enum {
  SPINS_BEFORE_SLEEP = 64, /* guessed: longer than a critical section, shorter than a wake-up */
  YIELDS_BEFORE_SLEEP = 64
};

/* A holder that the kernel does not know by its number (a child of vfork has its parent's) gives the word back without waking a waiter,
 * so waiters in the kernel check again. The interval grows: thousands that check every 50 ms would leave the holder no processor time. */
enum { CHECK_AGAIN_MS = 50, CHECK_AGAIN_MAX_MS = 3200 };

/* Without the kernel's priority inheritance: sleeping lets a lower-priority holder run, so the sleep grows with the wait. */
static void wait_without_the_kernel(unsigned attempt) {
  unsigned milliseconds = attempt / YIELDS_BEFORE_SLEEP;
  if (milliseconds)
    os_sleep_ms(milliseconds < CHECK_AGAIN_MS ? milliseconds : CHECK_AGAIN_MS);
  else
    os_yield();
}

/* True when this thread itself has held the word for half a second, so that the wait cannot end. A single look does not suffice: a thread
 * that asked for its number as a child of vfork may share it with another thread. */
static bool is_own_for_good(const ATOMIC(uint32_t) *word, uint32_t self, unsigned *attempts) {
  enum { ATTEMPTS = 300 }; /* half a second */
  bool is_own = (load_relaxed(word) & WORD_HOLDER_MASK) == self;
  *attempts = is_own ? *attempts + 1 : 0;
  return *attempts == ATTEMPTS;
}

void report_endless_wait(void) {
  OS_FATAL(
      "deadlock avoided: malloc re-entered on the same thread (by a signal handler, or a child of "
      "vfork)");
}

NOINLINE void word_wait(ATOMIC(uint32_t) *word) {
  os_settle_copy(); /* in a copy, the holder may not exist */
  uint32_t self = thread_number();
  unsigned own_attempts = 0;
  uint64_t most_ms = CHECK_AGAIN_MS;
  for (unsigned spin = 0; spin < SPINS_BEFORE_SLEEP; spin++) {
    cpu_relax();
    if (word_try(word, self)) return;
  }
  for (unsigned attempt = 0; !os_take_word(word, most_ms); attempt++) {
    if (word_try(word, self)) return;
    if (is_own_for_good(word, self, &own_attempts)) report_endless_wait();
    wait_without_the_kernel(attempt);
    if (most_ms < CHECK_AGAIN_MAX_MS) most_ms *= 2;
  }
  (void)load_acquire(word); /* see the last holder's writes; pairs with the OR in word_give */
}

RESIDENT void word_give(ATOMIC(uint32_t) *word) {
  uint32_t self = thread_number();
  /* release: our writes before the word is free; pairs with word_try. */
  if (LIKELY(cas_strong_acq_rel(word, &self, 0))) return;
  fetch_or_seq(word, 0); /* release: for a waiter in the kernel; pairs with word_wait */
  if (!os_give_word(word)) store_release(word, 0);
}

#if HAK_DEBUG
static THREAD_LOCAL unsigned char ranks_held; /* bit n: a lock of rank n is held */
static void note_taken(const struct lock *lock) {
  ASSERT((ranks_held & low_bits(lock->rank + 1)) == 0);
  ranks_held = (unsigned char)(ranks_held | 1u << lock->rank);
}
static void note_given(const struct lock *lock) {
  ranks_held = (unsigned char)(ranks_held & ~(1u << lock->rank));
}
#else
static void note_taken(const struct lock *lock) { (void)lock; }
static void note_given(const struct lock *lock) { (void)lock; }
#endif

static void wait_for(struct lock *lock, struct counters *counters) {
  uint64_t start_ns = os_now_ns();
  word_wait(&lock->word);
  count(counters, COUNT_lock_waits);
  count_add(counters, COUNT_lock_wait_ns, os_now_ns() - start_ns);
}

RESIDENT void lock_take(struct lock *lock, struct counters *counters) {
  if (os_is_multi_threaded()) {
    count(counters, COUNT_lock_acquisitions);
    if (UNLIKELY(!word_try(&lock->word, thread_number()))) wait_for(lock, counters);
  }
  note_taken(lock);
}

RESIDENT bool lock_try(struct lock *lock) {
  if (os_is_multi_threaded() && !word_try(&lock->word, thread_number())) return false;
  note_taken(lock);
  return true;
}

RESIDENT void lock_give(struct lock *lock) {
  note_given(lock);
  if (os_is_multi_threaded()) word_give(&lock->word);
}

bool word_reset_in_child(ATOMIC(uint32_t) *word) {
  uint32_t holder = load_relaxed(word) & WORD_HOLDER_MASK;
  bool is_own = holder && holder == number_before_fork;
  if (!holder) return false;
  store_relaxed(word, is_own && os_is_multi_threaded() ? thread_number() : 0);
  return !is_own;
}

bool lock_reset_in_child(struct lock *lock) { return word_reset_in_child(&lock->word); }
