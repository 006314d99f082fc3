/* metadata.h: memory for hakmem's own records.
 *
 * A bump pointer over chunks of the window, whose ends are unmapped: a block beside them ends, or begins, at
 * addresses where whoever leaves it gets SIGSEGV.  Records are never given back, only recycled by their
 * owners, so a pointer to one never dangles: lock-free readers may read a record that has changed
 * hands.  Lock-free; growth maps a chunk first and publishes it afterwards. */
#ifndef HAK_MAP_METADATA_H
#define HAK_MAP_METADATA_H

#include "base/atomic.h"
#include "base/compiler.h"

/* Zeroed memory aligned to a cache line, or NULL.  At most RECORD_CHUNK_BYTES at a time. */
void *metadata_allocate(size_t bytes);

#endif
