/* range_pages.h: what the kernel is told, and asked, about the pages of ranges: which may be huge (map/huge.h). */
#ifndef HAK_POOL_RANGE_PAGES_H
#define HAK_POOL_RANGE_PAGES_H

#include "pool/range_record.h"

/* The range is going to be used, or given back, apart from what lies beside it in the chunks at its ends. */
void range_refuse_huge_at_ends(size_t first, size_t granules);
/* A range of fresh pages, at its end at least; a program that asked for huge pages (HAKMEM_THP) has them there too. */
void range_settle_fresh(size_t first, size_t granules);
/* What was mapped anew has no huge pages, and no chunk that it belongs to. */
void range_keep_huge_out(size_t first, size_t granules);

#endif
