/* pointer.h: what to say, or to do, about a pointer that is no live block of ours. */
#ifndef HAK_GUARD_POINTER_H
#define HAK_GUARD_POINTER_H

#include "report/report.h"

/* True when the address, outside the window, is a live block of the C library's own malloc: one that
 * was made before or beside hakmem (RTLD_DEEPBIND, say).  Reads nothing that may be unmapped. */
bool pointer_is_libc_block(uintptr_t address);

/* Says the line that fits: invalid, misaligned, double or foreign; `verb` is what the program tried.  Ends
 * the program, unless HAKMEM_ON_MISUSE says otherwise: then the caller leaves the block alone. */
COLD void pointer_fail(const char *verb, uintptr_t address);

/* What is known of a block by its map entry, for a report; `block_bytes` is what the report is to name. */
struct block_description pointer_describe(uintptr_t block, uint32_t entry, size_t block_bytes);

#endif
