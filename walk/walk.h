/* walk.h: all regions, chunk by chunk; at places where the chain breaks, once more. */
#ifndef HAK_WALK_WALK_H
#define HAK_WALK_WALK_H

#include "account.h"
#include "links.h"

/* The purposes of a walk; NULL: not wanted. */
struct wanted {
  struct candidates *candidates; /* it only collects: damage is left to another walk */
  struct marks *marks;           /* for their links */
  struct links *links;           /* noted, or with accounts checked */
  struct accounts *accounts;
  struct findings *suspicions; /* of lists: they get the blocks before them */
};

void walk_all(struct walk *walk, const struct wanted *wanted);

#endif
