/* packing.h: classes that shrink while the process grows.
 *
 * malloc takes what was freed last. So the new blocks of such a class are spread over all of its
 * slabs, although a cache that drops its oldest entries frees one after the other. While it is
 * packed, mallocs take blocks of few slabs (magazine.h), and frees go back. */
#ifndef HAK_CACHE_PACKING_H
#define HAK_CACHE_PACKING_H

#include "cache/heap.h"

/* Before the process grows: begins it if much of the class's slabs is free. */
void packing_begin_if_sparse(struct heap *heap, unsigned class);
/* Before another batch is taken: ends it when the slabs are dense, or nothing comes of it. */
void packing_end_if_dense(struct heap *heap, unsigned class);
/* For any magazine. */
void packing_end(struct magazine *magazine);

#endif
