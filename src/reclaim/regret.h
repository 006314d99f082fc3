/* regret.h: what went back and was taken again soon went back in vain.
 *
 * A burst that returns every 1.5 s finds all its pages gone at a decay time of 1 s.  So while most of what rounds gave back is
 * wanted again soon, memory waits longer; when it is not any more, as long as the option says. */
#ifndef HAK_RECLAIM_REGRET_H
#define HAK_RECLAIM_REGRET_H

#include "pool/purge.h"

/* After something was given back: because it was old, or (`at_once`) although it was not. */
void regret_note_given(const struct purge *purge, bool at_once);

/* Before something is: has what went back before been taken again?  What went at once then costs credit (pool/purge_credit.h): as
 * much time of the processor as taking it again has cost, and more. */
void regret_judge(uint32_t now_ms);

/* 1 while the decay time is doubled, else 0. */
unsigned regret_level(void);

#endif
