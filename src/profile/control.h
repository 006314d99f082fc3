/* control.h: what the control record asks for, judged; and how often samples are taken. */
#ifndef HAK_PROFILE_CONTROL_H
#define HAK_PROFILE_CONTROL_H

#include "profile/profile.h"

/* As HAKMEM_PROFILE says; called once, when the options have been read. */
void profile_start(void);

/* As HAKMEM_KEEPER says: the process's memory can be read after its end.  At load, since it may allocate (dlsym does in static
 * programs), and in a forked child, which has memory of its own. */
void profile_keep(void);

/* As the program itself asks for: on with this R (0: it adapts) and without an end, or off.  False where profiles are refused.
 * Any thread; the others are to be told (cache/divert.h). */
bool profile_ask(bool is_on, uint64_t period_bytes);

/* Whether samples are to be taken now; and what changed since the last look of any thread is noted. */
bool profile_look(uint64_t now_ms);

/* R of what is drawn from now on, in PROFILE_PERIOD_MIN … PROFILE_PERIOD_MAX. */
uint64_t profile_period_bytes(void);

/* Lets R follow the rate at which samples came: when it is time, one thread does. */
void profile_adapt(uint64_t now_ms);

/* The frames that a stack may have. */
unsigned profile_depth(void);

/* The number of a request to give back what is free, for the thread that has to; 0 for all others.  It says when that is
 * done. */
uint32_t profile_begin_purge(void);
void profile_end_purge(uint32_t request);

#endif
