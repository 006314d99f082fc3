#include "os/lock.h"

#include "base/bits.h"

enum {
  SPINS_BEFORE_SLEEP = 64
}; /* guessed: longer than a critical section, shorter than a wake-up */

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

static bool try_word(struct lock *lock) {
  uint32_t free_word = 0;
  /* acquire: what the last holder wrote; pairs with the exchange in lock_give. */
  return cas_strong_acq_rel(&lock->word, &free_word, 1);
}

static void wait_for_word(struct lock *lock) {
  for (unsigned spin = 0; spin < SPINS_BEFORE_SLEEP; spin++) {
    cpu_relax();
    if (load_relaxed(&lock->word) == 0 && try_word(lock)) return;
  }
  /* acquire: pairs with lock_give.  The 2 we leave makes the holder wake somebody. */
  while (exchange_acquire(&lock->word, 2) != 0) os_wait(&lock->word, 2, 0);
}

static void give_word(struct lock *lock) {
  /* release (and more): our writes before the lock appears free; pairs with try_word. */
  if (exchange_seq(&lock->word, 0) == 2) os_wake_one(&lock->word);
}

void lock_take(struct lock *lock, struct counters *counters) {
  count(counters, COUNT_lock_acquisitions);
  if (UNLIKELY(!try_word(lock))) {
    uint64_t start_ns = os_now_ns();
    wait_for_word(lock);
    count(counters, COUNT_lock_waits);
    count_add(counters, COUNT_lock_wait_ns, os_now_ns() - start_ns);
  }
  note_taken(lock);
}

void lock_give(struct lock *lock) {
  note_given(lock);
  give_word(lock);
}

bool lock_reset_in_child(struct lock *lock) {
  if (load_relaxed(&lock->word) == 0) return false;
  store_relaxed(&lock->word, 0);
  return true;
}
