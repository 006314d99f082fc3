#include "os/lock.h"

#include "base/bits.h"

THREAD_LOCAL uint32_t thread_number_if_known;

NOINLINE uint32_t thread_number_ask(void) {
  return thread_number_if_known = os_lasting_thread_id();
}

/* In a forked child, which has one thread: its number in the parent; 0 if it had asked for none,
 * and so held nothing. */
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

/* A holder that the kernel does not know by its number (a child of vfork has its parent's) gives
 * the word back without waking a thread in the kernel's queue: these check again. Sleeping ones
 * are always woken; they check as well, seldom, as there may be thousands. */
enum { CHECK_AGAIN_MS = 50, SLEEP_MS = 3200 };

/* Without the kernel's priority inheritance: sleeping lets a lower-priority holder run, so the
 * sleep grows with the wait. */
static void wait_without_the_kernel(unsigned attempt) {
  unsigned milliseconds = attempt / YIELDS_BEFORE_SLEEP;
  if (milliseconds)
    os_sleep_ms(milliseconds < CHECK_AGAIN_MS ? milliseconds : CHECK_AGAIN_MS);
  else
    os_yield();
}

/* Looks in a row that show this thread itself as the holder, in half a second: then the wait cannot
 * end. A single one does not suffice: a thread that asked for its number as a child of vfork may
 * share it with another thread. */
enum { OWN_LOOKS_MAX = 300 };

void report_endless_wait(void) {
  OS_FATAL(
      "deadlock avoided: malloc re-entered on the same thread (by a signal handler, or a child of "
      "vfork)");
}

/* Bits of a word beside its holder's number: the kernel's, for threads in its queue, and one for
 * threads that sleep until they are woken. A thread that sleeps is not in the queue
 * (os_take_word). The kernel clears the second bit when it hands the word over, so the thread
 * that gets it so sets the bit again. */
#define WORD_QUEUED UINT32_C(0x80000000)
#define WORD_AWAITED UINT32_C(0x40000000)

/* Takes the word, or sleeps until it was given back. A thread that has slept says that others may
 * still sleep. */
static bool take_or_sleep(ATOMIC(uint32_t) *word, uint32_t seen, uint32_t self) {
  if (!seen) return word_try(word, self | WORD_AWAITED);
  /* acq_rel: orders nothing. */
  if (seen & WORD_AWAITED || cas_strong_acq_rel(word, &seen, seen | WORD_AWAITED))
    os_wait(word, seen | WORD_AWAITED, SLEEP_MS);
  return false;
}

/* Only real-time threads queue: the kernel hands them the word, and until the next one runs,
 * perhaps after thousands of others, no thread has it. */
NOINLINE void word_wait(ATOMIC(uint32_t) *word) {
  os_settle_copy(); /* in a copy, the holder may not exist */
  uint32_t self = thread_number();
  unsigned own_looks = 0;
  for (unsigned spin = 0; spin < SPINS_BEFORE_SLEEP; spin++) {
    cpu_relax();
    if (word_try(word, self)) return;
  }
  bool may_sleep = os_is_confined() || !os_is_real_time();
  for (unsigned attempt = 0;; attempt++, cpu_relax()) {
    uint32_t seen = load_relaxed(word);
    own_looks = (seen & WORD_HOLDER_MASK) == self ? own_looks + 1 : 0;
    if (own_looks == OWN_LOOKS_MAX) report_endless_wait();
    if (may_sleep && !own_looks && !(seen & WORD_QUEUED)) {
      if (take_or_sleep(word, seen, self)) return;
    } else {
      if (os_take_word(word, CHECK_AGAIN_MS)) break;
      if (word_try(word, self | WORD_AWAITED)) return;
      wait_without_the_kernel(attempt);
    }
  }
  /* acquire: the last holder's writes; pairs with the OR in word_give. */
  fetch_or_seq(word, WORD_AWAITED);
}

/* Threads in the kernel's queue come before threads that sleep: one of these is woken
 * nevertheless, and looks. */
RESIDENT void word_give(ATOMIC(uint32_t) *word) {
  uint32_t held = thread_number();
  /* release: our writes before the word is free; pairs with word_try. */
  if (LIKELY(cas_strong_acq_rel(word, &held, 0))) return;
  while (!(held & WORD_QUEUED) && !cas_strong_acq_rel(word, &held, 0)) continue; /* as above */
  if (held & WORD_QUEUED) {
    fetch_or_seq(word, 0); /* release: for a waiter in the kernel; pairs with word_wait */
    if (!os_give_word(word)) store_release(word, 0);
  }
  if (held & WORD_AWAITED) os_wake_one(word);
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

bool lock_try(struct lock *lock) {
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

/* ---- biased locks ---------------------------------------------------------------------------- */

ATOMIC(bool) biased_have_barrier = true; /* until it is refused */
static ATOMIC(uint64_t) barrier_lost_ms; /* 0: before any owner held a lock */

/* In a program that is confined, owners pay for the barrier from now on; one that was taking a lock
 * is seen later. */
bool biased_share(bool may_hold) {
  if (os_fence_other_threads()) return true;
  if (os_is_guest()) return false; /* its filter may refuse what the process may do */
  if (may_hold && os_is_multi_threaded()) store_relaxed(&barrier_lost_ms, os_now_coarse_ms());
  /* release: the time; pairs with biased_are_closed. */
  store_release(&biased_have_barrier, false);
  return false;
}

/* The time after which a processor has shown a store to all others. */
enum { STORE_SEEN_MS = 20 };

bool biased_are_closed(void) {
  if (!os_is_multi_threaded()) return true;
  /* acquire: the time; pairs with biased_share. */
  if (load_acquire(&biased_have_barrier)) return biased_share(true);
  return os_now_coarse_ms() >= load_relaxed(&barrier_lost_ms) + STORE_SEEN_MS;
}
