/* pointers.h: the words of a process's memory that point into some blocks, read at one moment while
 * the process is stopped. */
#ifndef HAK_WALK_POINTERS_H
#define HAK_WALK_POINTERS_H

#include "target.h"

/* Native 64-bit words.  From standard input: blocks, then, when the process is stopped, ranges of
 * memory; each list is its length, then begins and ends by address.  To standard output, once all
 * is read: the number of pointers, then the place and the value of each.  Reads the pieces of
 * memory whose number modulo `workers` is `worker`. */
void pointers_find(const struct target *target, unsigned worker, unsigned workers);

#endif
