/* links.h: do the links of free chunks point back?  A look at each would be a read at random.  So a
 * first walk sums up the links in both directions: where the two agree no look is needed. */
#ifndef HAK_WALK_LINKS_H
#define HAK_WALK_LINKS_H

#include "chunks.h"

struct links;
struct links *links_new(struct heap *heap, struct findings *findings);
/* Sums up the links of the free chunks of the chain that was read last. */
void links_note(struct links *links, struct walk *walk);
/* Checks the free chunks of the chain that was read last. */
void links_check(struct links *links, struct walk *walk);
/* Reads again each chunk that looked damaged. */
void links_confirm(struct links *links, struct walk *walk);

#endif
