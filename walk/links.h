/* links.h: do the links of free chunks point back? */
#ifndef HAK_WALK_LINKS_H
#define HAK_WALK_LINKS_H

#include "chunks.h"

struct links;
struct links *links_new(struct heap *heap, struct findings *findings);
/* Checks the free chunks of the chain that was read last. */
void links_check(struct links *links, struct walk *walk);
/* Reads again each chunk that looked damaged. */
void links_confirm(struct links *links, struct walk *walk);

#endif
