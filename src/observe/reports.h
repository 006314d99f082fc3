/* reports.h: counters and totals as text and as JSON.  Live, cached and free blocks are counted
 * from outside, by the tool (python/hakmem/census). */
#ifndef HAK_OBSERVE_REPORTS_H
#define HAK_OBSERVE_REPORTS_H

#include "base/text.h"

/* "  name       12345  meaning" */
void text_line(struct text *text, const char *name, uint64_t value, const char *meaning);
/* The report of HAKMEM_STATS=1 and of malloc_stats(). */
void report_as_text(struct text *text);
/* All figures as one JSON object. */
void report_as_json(struct text *text);
/* HAKMEM_SHARED_POOL_LOCK_STATS=1: acquisitions of the shared pool, by code path. */
void report_pool_acquisitions(struct text *text);

/* Programs may close standard error before they end: keeps a copy if a report needs it. */
void reports_at_load(void);
/* Writes the reports of the options `stats` and `shared_pool_lock_stats` at the end of the
 * process. */
void reports_at_exit(void);

#endif
