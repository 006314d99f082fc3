/* peek.h: a look at what other threads may be writing.
 *
 * For reports, which stop nobody and make no system call: a sandbox may forbid every one that
 * malloc itself does not need. */
#ifndef HAK_BASE_PEEK_H
#define HAK_BASE_PEEK_H

#include "base/compiler.h"

/* Copies whole words, `bytes` a multiple of their size, from mapped memory.  No word is torn, but they need not be of
 * one moment: what is worked out from several must be checked before it is believed. */
void peek(void *target, const void *source, size_t bytes);

#endif
