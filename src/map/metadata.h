/* metadata.h: memory for hakmem's own records.
 *
 * A bump pointer over chunks of the window, whose ends are unmapped: a block beside them ends, or begins, at
 * addresses where whoever leaves it gets SIGSEGV.  Records are never unmapped, only recycled by their
 * owners, so a pointer to one never dangles: lock-free readers may read a record that has changed
 * hands, or zeros.  Lock-free; growth maps a chunk first and publishes it afterwards. */
#ifndef HAK_MAP_METADATA_H
#define HAK_MAP_METADATA_H

#include "map/window.h"

/* Of a chunk of records the first and the last addresses stay unmapped.  They are more than 64 KiB, as a stride may be as
 * large; in hardened mode the next chunk is left out, too. */
enum {
  RECORD_MARGIN_BYTES = 2 * GRANULE_BYTES,
  RECORD_CHUNK_BYTES = CHUNK_BYTES - 2 * RECORD_MARGIN_BYTES
};
/* The first chunk has less room: enough for a small process, whose memory may be locked (mlockall). */
enum {
  RECORD_FIRST_BYTES = 384 << 10,
  RECORD_FIRST_MARGIN_BYTES = (CHUNK_BYTES - RECORD_FIRST_BYTES) / 2
};

/* Takes the first chunk, once, while one thread alone knows the window: a window whose beginning is others' moves, which
 * nobody else could follow.  False when memory is refused. */
bool metadata_start(void);

/* Zeroed memory aligned to a cache line, or NULL.  At most RECORD_CHUNK_BYTES at a time. */
void *metadata_allocate(size_t bytes);

/* The whole pages of neighbouring records that are not in use go back to the system; a late reader finds zeros there.  How many
 * bytes those are; 0 when the system refused: then any page may read as zero. */
size_t metadata_purge(void *records, size_t bytes);
/* Before so many bytes that went back are written again.  False when the hard limit forbids it. */
bool metadata_take_again(size_t bytes);

#endif
