/* metadata.h: memory for hakmem's own records.
 *
 * A bump pointer over chunks of the window, whose ends are unmapped: writing past a neighbouring
 * block raises SIGSEGV there. Records are never unmapped, only recycled by their owners, so a
 * pointer to one never dangles: lock-free readers may read a record that has changed hands, or
 * zeros. Lock-free, but for the next chunk: one thread maps it, and publishes it afterwards. */
#ifndef HAK_MAP_METADATA_H
#define HAK_MAP_METADATA_H

#include "map/window.h"

/* Both ends of a chunk of records stay unmapped. They are above 64 KiB, as a stride may be as
 * large; hardened, the next chunk, too. */
enum {
  RECORD_MARGIN_BYTES = 2 * GRANULE_BYTES,
  RECORD_CHUNK_BYTES = CHUNK_BYTES - 2 * RECORD_MARGIN_BYTES
};
/* The first chunk has less room: enough for a small process, whose memory may be locked
 * (mlockall). */
enum {
  RECORD_FIRST_BYTES = 384 << 10,
  RECORD_FIRST_MARGIN_BYTES = (CHUNK_BYTES - RECORD_FIRST_BYTES) / 2
};

/* Takes the first chunk, once, while only one thread knows the window: if its start is occupied the
 * window moves, which other threads could not follow. False when memory is refused. */
bool metadata_start(void);

/* Zeroed memory aligned to a cache line, or NULL.  At most RECORD_CHUNK_BYTES at a time. */
void *metadata_allocate(size_t bytes);

/* Gives the whole pages of neighbouring unused records back to the system; a late reader finds
 * zeros there. Returns their bytes; 0 when the system refused: then any page may read as zero. */
size_t metadata_purge(void *records, size_t bytes);
/* Call before `bytes` that went back are written again. False when the hard limit forbids it. */
bool metadata_take_again(size_t bytes);

void metadata_after_fork(void); /* in the child: no thread makes a chunk */

#endif
