/* regret.h: detects purges that did not pay: the memory was used again soon. A burst that returns every 1.5 s finds all its pages
 * purged at a decay time of 1 s. So while most purged memory is used again soon, the decay time is doubled; else it is the option's. */
#ifndef HAK_RECLAIM_REGRET_H
#define HAK_RECLAIM_REGRET_H

#include "pool/purge.h"

/* Called after a purge: of old memory, or (`at_once`) of memory that was not old yet. */
void regret_note_given(const struct purge *purge, bool at_once);

/* Called before a purge: judges whether memory purged before was used again. A purge at once then costs credit (pool/purge_credit.h):
 * as much processor time as the page faults have cost, and more. */
void regret_judge(uint32_t now_ms);

/* 1 while the decay time is doubled, else 0. */
unsigned regret_level(void);

#endif
