/* report_heaps.h: the heaps that the program has made or named, in the reports
 * (observe/reports.h). */
#ifndef HAK_OBSERVE_REPORT_HEAPS_H
#define HAK_OBSERVE_REPORT_HEAPS_H

#include "base/text.h"
#include "hakmem/hakmem.h"

/* A heap's present figures: remote frees that are not collected yet count as live. */
void heap_figures_take(const struct hak_heap *heap, struct hak_figures *figures);

/* The heaps with most live bytes, one line each; nothing when there are none. */
void report_heaps_as_text(struct text *text);
/* All heaps, the youngest first: a JSON array. */
void report_heaps_as_json(struct text *text);
/* Any bytes as a JSON string: invalid UTF-8 becomes the replacement character. */
void report_json_string(struct text *text, const char *string);

#endif
