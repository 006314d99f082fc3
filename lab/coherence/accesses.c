/* accesses.c: the functions that -fsanitize=thread makes the sources call before a plain access,
 * and for an atomic operation. */
#include "coherence.h"

#define PLACE __builtin_return_address(0)
#define DEFINE(result, name, ...) \
  result name(__VA_ARGS__);       \
  result name(__VA_ARGS__)

DEFINE(void, __tsan_init, void) {}
DEFINE(void, __tsan_func_entry, void *caller) { (void)caller; }
DEFINE(void, __tsan_func_exit, void) {}
DEFINE(void, __tsan_atomic_signal_fence, int order) { (void)order; }
DEFINE(void, __tsan_atomic_thread_fence, int order) { (void)order; }

#define PLAIN(kind, size)                                   \
  DEFINE(void, __tsan_##kind##read##size, void *address) {  \
    access_memory(address, size, false, NULL, PLACE);       \
  }                                                         \
  DEFINE(void, __tsan_##kind##write##size, void *address) { \
    access_memory(address, size, true, NULL, PLACE);        \
  }
#define PLAIN_SIZE(size) PLAIN(, size) PLAIN(unaligned_, size) PLAIN(volatile_, size)
PLAIN_SIZE(1)
PLAIN_SIZE(2)
PLAIN_SIZE(4)
PLAIN_SIZE(8)
PLAIN_SIZE(16)
DEFINE(void, __tsan_read_range, void *address, size_t size) {
  access_memory(address, size, false, NULL, PLACE);
}
DEFINE(void, __tsan_write_range, void *address, size_t size) {
  access_memory(address, size, true, NULL, PLACE);
}

#define ATOMIC_CHANGE(type, bits, name, builtin)                                     \
  DEFINE(type, __tsan_atomic##bits##_##name, type *address, type value, int order) { \
    (void)order;                                                                     \
    access_memory(address, bits / 8, true, NULL, PLACE);                             \
    return builtin(address, value, __ATOMIC_SEQ_CST);                                \
  }
/* One that fails has taken the line as well. */
#define ATOMIC_CAS(type, bits, name)                                                     \
  DEFINE(int, __tsan_atomic##bits##_##name, type *address, type *expected, type desired, \
         int order, int failure) {                                                       \
    (void)order, (void)failure;                                                          \
    access_memory(address, bits / 8, true, NULL, PLACE);                                 \
    return __atomic_compare_exchange_n(address, expected, desired, 0, __ATOMIC_SEQ_CST,  \
                                       __ATOMIC_SEQ_CST);                                \
  }
#define ATOMIC(type, bits)                                                          \
  DEFINE(type, __tsan_atomic##bits##_load, const type *address, int order) {        \
    (void)order;                                                                    \
    access_memory(address, bits / 8, false, NULL, PLACE);                           \
    return *address;                                                                \
  }                                                                                 \
  DEFINE(void, __tsan_atomic##bits##_store, type *address, type value, int order) { \
    (void)order;                                                                    \
    access_memory(address, bits / 8, true, NULL, PLACE);                            \
    *address = value;                                                               \
  }                                                                                 \
  ATOMIC_CHANGE(type, bits, exchange, __atomic_exchange_n)                          \
  ATOMIC_CHANGE(type, bits, fetch_add, __atomic_fetch_add)                          \
  ATOMIC_CHANGE(type, bits, fetch_sub, __atomic_fetch_sub)                          \
  ATOMIC_CHANGE(type, bits, fetch_or, __atomic_fetch_or)                            \
  ATOMIC_CHANGE(type, bits, fetch_and, __atomic_fetch_and)                          \
  ATOMIC_CAS(type, bits, compare_exchange_strong)                                   \
  ATOMIC_CAS(type, bits, compare_exchange_weak)
ATOMIC(uint8_t, 8)
ATOMIC(uint16_t, 16)
ATOMIC(uint32_t, 32)
ATOMIC(uint64_t, 64)
