/* range_pages.h: huge pages of ranges, requested from the kernel or refused (map/huge.h). */
#ifndef HAK_POOL_RANGE_PAGES_H
#define HAK_POOL_RANGE_PAGES_H

#include "pool/range_record.h"

/* The range will be used, or given back, apart from its neighbours in the chunks at its ends. */
void range_refuse_huge_at_ends(size_t first, size_t granules);
/* A range of fresh pages, at its end at least; a program that asked for huge pages (HAKMEM_THP) has them there too. */
void range_settle_fresh(size_t first, size_t granules);
/* Memory mapped anew has no huge pages, and belongs to no chunk that has. */
void range_keep_huge_out(size_t first, size_t granules);

#endif
