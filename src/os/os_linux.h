/* os_linux.h: shared by the files that implement os.h on Linux. */
#ifndef HAK_OS_OS_LINUX_H
#define HAK_OS_OS_LINUX_H

#include <errno.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/system_call.h"

/* At the head of a function: restores errno however the function is left. */
INLINE void restore_errno(const int *saved_errno) { errno = *saved_errno; }
#define KEEP_ERRNO() const int saved_errno ENDED_BY(restore_errno) = errno

INLINE long os_answer(long answer) {
  enum { ERRNO_MAX = 4095 };
  if (LIKELY(answer >= 0 || answer < -ERRNO_MAX)) return answer;
  errno = (int)-answer;
  return -1;
}
/* OS_CALL(number, …): a system call with up to six arguments, numbers or pointers; -1 with errno,
 * as syscall(). */
#define OS_CALL(...) OS_CALL_OF(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define OS_CALL_OF(number, a, b, c, d, e, f, ...) \
  os_answer(system_call(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)))

/* The answer of `ask`, which is called once. */
INLINE bool os_known(ATOMIC(char) *known, bool (*ask)(void)) {
  enum { UNKNOWN, TRUE, FALSE };
  char found = load_relaxed(known); /* relaxed: any thread finds the same */
  if (UNLIKELY(found == UNKNOWN)) store_relaxed(known, found = ask() ? TRUE : FALSE);
  return found == TRUE;
}

/* Maps the unmapped pages of the range, readable and writable, and replaces no mapping; false when
 * some cannot be mapped. */
bool os_close_holes(char *address, size_t bytes);
/* Lets the kernel write one random byte there; false too when it does not say. */
bool os_can_write(void *page);

uint64_t os_clock_ns(int clock);
/* Blocks the calling thread's signals; returns those blocked before. */
uint64_t os_block_signals(void);
void os_unblock_signals(uint64_t before);
/* A descriptor, or -1. */
int os_open_to_read(const char *path);
/* Waits for threads that os_thread_start has started, until they have settled. */
void os_await_threads(void);
/* The kernel's number of this thread as the C library knows it, without a system call; 0 if
 * unknown. */
uint32_t os_thread_id_of_libc(void);

/* The dynamic symbols of a module. */
struct os_symbols {
  const void *table; /* of ElfW(Sym) */
  size_t count;
  const char *names;
  uintptr_t bias;
};
/* False when it has none. `is_placed`: its dynamic section holds addresses, as the C library leaves
 * it, not offsets. */
bool os_read_symbols(const void *headers, size_t header_count, uintptr_t bias, bool is_placed,
                     struct os_symbols *symbols);

/* Whether the symbol has this name. */
bool os_is_named(const struct os_symbols *symbols, size_t index, const char *name);

/* Whether the program's code and hakmem's are in one file. */
bool os_is_in_program(void);

#endif
