/* SPDX-License-Identifier: MIT
 *
 * futex_lock.h: a lock of one word that counts what it costs: acquisitions, and the system calls that
 * it makes to wait and to wake.  It behaves as a plain pthread mutex does: no spinning.
 */
#ifndef LAB_FUTEX_LOCK_H
#define LAB_FUTEX_LOCK_H

#include "counters.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LOCK_FREE, LOCK_HELD, LOCK_AWAITED };

struct futex_lock {
  _Atomic uint32_t state;
};

static inline void lock_take(struct futex_lock *lock, struct counters *counters) {
  uint32_t expected = LOCK_FREE;
  counters->locks++;
  if (atomic_compare_exchange_strong_explicit(&lock->state, &expected, LOCK_HELD,
                                              memory_order_acquire, memory_order_relaxed)) {
    return;
  }
  while (atomic_exchange_explicit(&lock->state, LOCK_AWAITED, memory_order_acquire) != LOCK_FREE) {
    counters->futex_waits++;
    syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, LOCK_AWAITED, NULL, NULL, 0);
  }
}

static inline void lock_give(struct futex_lock *lock, struct counters *counters) {
  if (atomic_exchange_explicit(&lock->state, LOCK_FREE, memory_order_release) == LOCK_AWAITED) {
    counters->futex_wakes++;
    syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  }
}

#endif
