/* pointer.h: handles pointers that are not live blocks of this hakmem. */
#ifndef HAK_FOREIGN_POINTER_H
#define HAK_FOREIGN_POINTER_H

#include "report/report.h"

/* True when the address, outside the window, is a live block of the C library's own malloc: one
 * that was made before or beside hakmem (RTLD_DEEPBIND, say).  Reads nothing that may be
 * unmapped. */
bool pointer_is_libc_block(uintptr_t address);

/* Reports the misuse: invalid, misaligned, double or foreign; `verb` names the operation tried.
 * Ends the program, unless HAKMEM_ON_MISUSE says otherwise: then the caller leaves the block
 * alone. */
COLD void pointer_fail(const char *verb, uintptr_t address);

/* Describes a block by its map entry, for a report that names `block_bytes`. */
struct block_description pointer_describe(uintptr_t block, uint32_t entry, size_t block_bytes);

#endif
