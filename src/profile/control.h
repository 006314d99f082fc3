/* control.h: reads the control record, and decides how often samples are taken. */
#ifndef HAK_PROFILE_CONTROL_H
#define HAK_PROFILE_CONTROL_H

#include "profile/profile.h"

/* Applies HAKMEM_PROFILE; called once, when the options have been read. */
void profile_start(void);

/* Applies HAKMEM_KEEPER: the process's memory can be read after its end. Called at load, since it
 * may allocate (dlsym does in static programs). */
void profile_keep(void);
/* In a forked child: starts the child's own keeper, and ends its trace. */
void profile_after_fork(void);

/* Switches a profile on for the program itself, with this R (0: adaptive) and without an end, or
 * off. False where profiles are refused. Any thread; the caller notifies the others
 * (cache/divert.h). */
bool profile_ask(bool is_on, uint64_t period_bytes);

/* Whether samples are to be taken now; notes a change since the last look of any thread. */
bool profile_look(uint64_t now_ms);

/* Whether all allocations and frees are to be recorded (profile/trace_ring.h). */
bool profile_wants_trace(uint64_t now_ms);

/* R of new samples, in PROFILE_PERIOD_MIN … PROFILE_PERIOD_MAX. */
uint64_t profile_period_bytes(void);

/* Adapts R to the rate of samples: one thread in each window does so. */
void profile_adapt(uint64_t now_ms);

/* The most frames that a stack may have. */
unsigned profile_depth(void);

/* Whether a request to purge free memory is pending. Its number, for the thread that is to do it; 0
 * for all others. That thread calls profile_end_purge when it is done. */
bool profile_wants_purge(void);
uint32_t profile_begin_purge(void);
void profile_end_purge(uint32_t request);

#endif
