/* os_linux.h: shared by the files that implement os.h on Linux. */
#ifndef HAK_OS_OS_LINUX_H
#define HAK_OS_OS_LINUX_H

#include <errno.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* At the head of a function: restores errno however the function is left. */
INLINE void restore_errno(const int *saved_errno) { errno = *saved_errno; }
#define KEEP_ERRNO() const int saved_errno ENDED_BY(restore_errno) = errno

/* The answer of `ask`, which is called once. */
INLINE bool os_known(ATOMIC(char) *known, bool (*ask)(void)) {
  enum { UNKNOWN, TRUE, FALSE };
  char found = load_relaxed(known); /* relaxed: any thread finds the same */
  if (UNLIKELY(found == UNKNOWN)) store_relaxed(known, found = ask() ? TRUE : FALSE);
  return found == TRUE;
}

/* Maps the unmapped pages of the range, readable and writable, and replaces no mapping; false when some cannot be mapped. */
bool os_close_holes(char *address, size_t bytes);
/* Lets the kernel write one random byte there; false too when it does not say. */
bool os_can_write(void *page);

/* A descriptor, or -1. */
int os_open_to_read(const char *path);
/* Waits for threads that os_thread_start has started, until they have settled. */
void os_await_threads(void);
/* The kernel's number of this thread as the C library knows it, without a system call; 0 if unknown. */
uint32_t os_thread_id_of_libc(void);

/* Whether the program's code and hakmem's are in one file. */
bool os_is_in_program(void);

#endif
