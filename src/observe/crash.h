/* crash.h: one line of diagnosis when the process dies by SIGSEGV or SIGBUS inside the allocator.
 *
 * With HAKMEM_GUARD=1 what a fault at a guarded block is about, too, whoever handles the signal.
 *
 * Programs keep their own handlers and the exit status they would have had; a crash elsewhere prints
 * nothing.  SIGABRT needs no watching: what aborts inside the allocator is src/report, with a line. */
#ifndef HAK_OBSERVE_CRASH_H
#define HAK_OBSERVE_CRASH_H

void crash_watch(void);

#endif
