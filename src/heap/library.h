/* library.h: starts the library once: reads the options, reserves the address space. */
#ifndef HAK_HEAP_LIBRARY_H
#define HAK_HEAP_LIBRARY_H

#include "base/compiler.h"

/* Reads the options, unless that was done; true when any is set and the library not set up yet. Any
 * thread. */
bool library_has_options(void);

/* Sets the library up; false when the address space is refused, and the next call tries again. At
 * the end of each thread that has a heap the function gets the heap. Any thread. */
bool library_ready(void (*end_of_thread)(void *heap));

/* In a forked child, while it has one thread: the next caller completes a start that was cut
 * off. */
void library_after_fork(void);

#endif
