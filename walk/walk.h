/* walk.h: all regions, chunk by chunk; at places where the chain breaks, once more. */
#ifndef HAK_WALK_WALK_H
#define HAK_WALK_WALK_H

#include "account.h"
#include "links.h"

/* The first walk, which only collects what may be a thread cache, and links. */
void walk_candidates(struct walk *walk, struct candidates *candidates, struct marks *marks,
                     struct links *links);
/* The second one.  The suspicions get the blocks before them. */
void walk_accounts(struct walk *walk, struct accounts *accounts, struct links *links,
                   struct findings *suspicions);

#endif
