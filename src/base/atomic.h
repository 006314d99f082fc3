/* atomic.h: atomic operations with their memory order in the name.
 *
 * Every use says beside it what it orders and which operation it pairs with;
 * docs/MEMORY_ORDER.md lists them all.  "seq" is sequentially consistent and used where a store
 * must not pass a later load (Dekker-style pairs).  The operations take pointers to objects
 * declared with ATOMIC(type). */
#ifndef HAK_BASE_ATOMIC_H
#define HAK_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ATOMIC(type) _Atomic(type)

#define load_relaxed(object) atomic_load_explicit((object), memory_order_relaxed)
/* value ^ load_relaxed(object), as one instruction where the processor has it: compilers give an
 * atomic load an instruction of its own. The upper half is 0, so the caller needs no widening. */
static inline uint64_t xor_load_relaxed(uint32_t value, const ATOMIC(uint32_t) *object) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) /* the sanitizer sees no assembly */
  uint64_t result = value;
  __asm__("xorl %1, %k0" : "+r"(result) : "m"(*object) : "cc");
  return result;
#else
  return value ^ load_relaxed(object);
#endif
}

/* value < load_relaxed(object), likewise. */
static inline bool is_below_relaxed(size_t value, const ATOMIC(size_t) *object) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  bool is_below;
  __asm__("cmpq %2, %1" : "=@ccb"(is_below) : "r"(value), "m"(*object));
  return is_below;
#else
  return value < load_relaxed(object);
#endif
}

/* load_relaxed(object), widened by the same instruction: compilers give the widening of an atomic
 * load one of its own. */
static inline uint64_t load_short_relaxed(const ATOMIC(uint16_t) *object) {
  uint64_t result;
#if defined(__SANITIZE_THREAD__)
  result = load_relaxed(object);
#elif defined(__x86_64__)
  __asm__("movzwl %1, %k0" : "=r"(result) : "m"(*object));
#elif defined(__aarch64__)
  __asm__("ldrh %w0, %1" : "=r"(result) : "m"(*object));
#else
  result = load_relaxed(object);
#endif
  return result;
}

#define load_acquire(object) atomic_load_explicit((object), memory_order_acquire)
#define load_seq(object) atomic_load_explicit((object), memory_order_seq_cst)

#define store_relaxed(object, value) atomic_store_explicit((object), (value), memory_order_relaxed)
#define store_release(object, value) atomic_store_explicit((object), (value), memory_order_release)
#define store_seq(object, value) atomic_store_explicit((object), (value), memory_order_seq_cst)

#define exchange_acquire(object, value) \
  atomic_exchange_explicit((object), (value), memory_order_acquire)
#define exchange_seq(object, value) \
  atomic_exchange_explicit((object), (value), memory_order_seq_cst)

#define fetch_add_relaxed(object, value) \
  atomic_fetch_add_explicit((object), (value), memory_order_relaxed)
#define fetch_add_seq(object, value) \
  atomic_fetch_add_explicit((object), (value), memory_order_seq_cst)
#define fetch_sub_relaxed(object, value) \
  atomic_fetch_sub_explicit((object), (value), memory_order_relaxed)
#define fetch_sub_seq(object, value) \
  atomic_fetch_sub_explicit((object), (value), memory_order_seq_cst)
#define fetch_or_relaxed(object, value) \
  atomic_fetch_or_explicit((object), (value), memory_order_relaxed)
#define fetch_or_seq(object, value) \
  atomic_fetch_or_explicit((object), (value), memory_order_seq_cst)
#define fetch_or_release(object, value) \
  atomic_fetch_or_explicit((object), (value), memory_order_release)
#define fetch_and_relaxed(object, value) \
  atomic_fetch_and_explicit((object), (value), memory_order_relaxed)
#define fetch_and_seq(object, value) \
  atomic_fetch_and_explicit((object), (value), memory_order_seq_cst)

/* Compare and swap: true when *object was *expected and is now `desired`; else *expected becomes
 * the value found. A weak one may fail without cause and belongs in a loop. */
#define cas_weak_acq_rel(object, expected, desired)                                            \
  atomic_compare_exchange_weak_explicit((object), (expected), (desired), memory_order_acq_rel, \
                                        memory_order_acquire)
#define cas_weak_seq(object, expected, desired)                                                \
  atomic_compare_exchange_weak_explicit((object), (expected), (desired), memory_order_seq_cst, \
                                        memory_order_acquire)
#define cas_strong_seq(object, expected, desired)                                          \
  atomic_compare_exchange_strong_explicit(object, expected, desired, memory_order_seq_cst, \
                                          memory_order_seq_cst)
#define cas_strong_acq_rel(object, expected, desired)                                            \
  atomic_compare_exchange_strong_explicit((object), (expected), (desired), memory_order_acq_rel, \
                                          memory_order_acquire)

/* Keeps the compiler from moving stores across. The processor keeps a thread's own stores in order
 * as far as a forked child can tell. */
#define keep_store_order() atomic_signal_fence(memory_order_seq_cst)

/* A plain member with one writer at a time: a thread, or the holder of a lock or a latch. The
 * writer reads it as a plain member; other threads load name_shown, relaxed. `show` writes it: an
 * atomic store would be the same instruction, but compilers waste an addressing mode of the fast
 * paths on it. */
#define SHOWN(type, name)      \
  union {                      \
    type name;                 \
    ATOMIC(type) name##_shown; \
  }
#ifdef __SANITIZE_THREAD__
#define show(object, name, value) store_relaxed(&(object)->name##_shown, (value))
#else
#define show(object, name, value) ((void)((object)->name = (value)))
#endif

/* A counter with one writer and many readers: cheaper than fetch_add, never torn. */
#define add_single_writer(object, value) store_relaxed((object), load_relaxed(object) + (value))

#endif
