/* purge_credit.h: how much may go back before it is old, and how much is to stay longer.
 *
 * A granule that goes back and is wanted again costs some 16 µs: a system call and 16 page faults.
 * Each millisecond of the process's processor time earns one; what goes back spends it, and what is
 * wanted again costs it twice more. So faults on such memory take at most 1.6 % of the processor
 * time. In debt nothing goes back early, and as many bytes stay for longer. */
#ifndef HAK_PURGE_PURGE_CREDIT_H
#define HAK_PURGE_PURGE_CREDIT_H

#include <stdint.h>

/* Bytes that may go back early; below 0: bytes that are to stay. */
int64_t purge_credit(void);
/* Notes that this many bytes went back; alone that makes no debt. */
void purge_credit_spend(uint64_t bytes);

#endif
