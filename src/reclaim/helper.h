/* helper.h: hakmem's own thread: it starts rounds while the program sleeps, and is the guard
 * sampler's ticker.
 *
 * It must not be noticed by the program. It begins when a program that has threads has memory to
 * give back (docs/decisions/0007).  It ends when the program's last thread but one has ended and
 * nothing is left to be given back, at once when the last one has (a process that only it kept
 * alive would never end), and before an operation that only works in a process with one thread.  It
 * has a name, no signals, and neither priority nor processors of the thread that started it. Once
 * the system has refused it, it is not tried again.
 *
 * It is a thread of the process whose memory this is: a guest (os_is_guest) neither starts nor ends
 * it. */
#ifndef HAK_RECLAIM_HELPER_H
#define HAK_RECLAIM_HELPER_H

#include "base/compiler.h"

/* Starts the helper where it pays. Called in slow paths of malloc, never of free: the C
 * library calls free while it holds locks that starting a thread takes. */
void helper_start_when_worth(void);

/* A thread of the program has got a heap; has ended. */
void helper_note_thread(void);
void helper_note_thread_end(void);

/* Ends the helper, and waits until the kernel has no such thread (for 1 s at most). True when there
 * was one. With `for_good` none is started again. Any thread. */
bool helper_stop(bool for_good);

/* Whether a thread that is being started is the helper. */
bool helper_is(void *(*body)(void *));

/* In a forked child, which has no helper; `thread_count` is 1 if the thread that forked has a heap,
 * else 0. */
void helper_after_fork(uint32_t thread_count);

#endif
