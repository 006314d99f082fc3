/* crash.h: one line of diagnosis when the process dies by SIGSEGV or SIGBUS inside the allocator.
 *
 * With HAKMEM_GUARD=1 also a report about a fault at a guarded block, even if the program handles
 * the signal.
 *
 * Programs keep their own handlers and the exit status they would have had; a crash elsewhere
 * prints nothing.  SIGABRT needs no watching: only src/report aborts inside the allocator, after a
 * line. */
#ifndef HAK_OBSERVE_CRASH_H
#define HAK_OBSERVE_CRASH_H

void crash_watch(void);

#endif
