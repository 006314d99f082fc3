/* superslab_source.h: where SuperSlabs come from, and what becomes of their addresses.
 *
 * All functions may be called from any thread; a SuperSlab that is given to one has no UNUSED slot: it is the caller's. */
#ifndef HAK_POOL_SUPERSLAB_SOURCE_H
#define HAK_POOL_SUPERSLAB_SOURCE_H

#include "pool/superslab.h"

/* Makes the first record, beside what else every process touches; false without memory. */
bool superslab_source_init(void);

/* One at the window's frontier, no slot of it UNUSED; NULL without addresses or memory. */
struct superslab *superslab_make(void);

/* Gives one that has no pages addresses again, if it has none.  OS_OCCUPIED: others have mapped something there, and it is
 * set aside for a while. */
enum os_map_result superslab_use_again(struct superslab *superslab);

/* Gives its addresses back, and with them all pages; false when the system refuses. */
bool superslab_unmap(struct superslab *superslab);

/* The chunks of all that were set aside, as a chain by next_occupied; NO_ITEM when there are none, or somebody has asked a
 * short time ago. */
uint32_t superslabs_set_aside(void);

#endif
