/* helper.h: hakmem's own thread: it starts rounds while the program sleeps, and is the guard sampler's ticker.
 *
 * Nobody asked for it, so nobody may notice it.  It begins when a program that has threads has something to give back
 * (docs/decisions/0007).  It ends when the program's last thread but one has ended and nothing is left to be given back,
 * at once when the last one has (a process that only it kept alive would never end), and when something that only works in a
 * process with one thread is about to be done.  It has a name, no signals, and neither priority nor processors of the
 * thread that happened to start it.  If it is refused once there is none. */
#ifndef HAK_RECLAIM_HELPER_H
#define HAK_RECLAIM_HELPER_H

#include "base/compiler.h"

/* Starts it where it is worth it.  At the end of slow paths of malloc, never of free: the C library calls free with locks
 * held that starting a thread takes. */
void helper_start_when_worth(void);

/* A thread of the program has a heap from now on; it has ended. */
void helper_note_thread(void);
void helper_note_thread_end(void);

/* Ends it, and waits until the kernel has no such thread (for 1 s at most).  True when there was one.  With `for_good` there
 * will be none any more.  Any thread. */
bool helper_stop(bool for_good);

/* Whether a thread that is being started is the helper. */
bool helper_is(void *(*body)(void *));

/* In a forked child, which has none; `thread_count` is 1 if the thread that forked has a heap, else 0. */
void helper_after_fork(uint32_t thread_count);

#endif
