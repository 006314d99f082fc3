/* report_text.h: the reports as text. */
#ifndef HAK_OBSERVE_REPORT_TEXT_H
#define HAK_OBSERVE_REPORT_TEXT_H

#include "base/text.h"

enum { NAME_COLUMNS = 28, FIGURE_COLUMNS = 16 };

/* "  name       12345  meaning" */
void text_line(struct text *text, const char *name, uint64_t value, const char *meaning);

/* The report of HAKMEM_STATS=1 and of malloc_stats(). */
void report_as_text(struct text *text);

#endif
