/* purge_credit.h: how much may be given back at once, and not by age, to offset the process's growth.
 *
 * A granule that goes back and is wanted again costs some 16 µs: a system call and 16 page faults.  One is
 * earned in each millisecond of the process's processor time, so this takes at most 1.6 % of it; what is saved
 * for later is bounded, too. */
#ifndef HAK_POOL_PURGE_CREDIT_H
#define HAK_POOL_PURGE_CREDIT_H

#include <stdbool.h>
#include <stddef.h>

/* Whether this number of granules has been earned. */
bool purge_credit_allows(size_t granules);
/* Notes that `granules` have been given back. */
void purge_credit_note(size_t granules);

#endif
