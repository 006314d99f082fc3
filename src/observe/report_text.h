/* report_text.h: lines of the text reports. */
#ifndef HAK_OBSERVE_REPORT_TEXT_H
#define HAK_OBSERVE_REPORT_TEXT_H

#include "base/text.h"

enum { NAME_COLUMNS = 28, FIGURE_COLUMNS = 16 };

/* "  name       12345  meaning" */
void text_line(struct text *text, const char *name, uint64_t value, const char *meaning);

#endif
