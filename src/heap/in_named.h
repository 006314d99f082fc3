/* in_named.h: malloc, realloc and free in a heap that the program has made (named/named_heap.h). */
#ifndef HAK_HEAP_IN_NAMED_H
#define HAK_HEAP_IN_NAMED_H

#include "map/allocation.h"
#include "named/named_heap.h"

/* A block of the heap, when its current slab of the class has one; NULL: use heap_allocate_in, also
 * where there is no heap. */
void *heap_named_take(struct hak_heap *named, unsigned class);

/* A block of allocation->named; NULL without memory, or when that heap refuses it. */
void *heap_named_allocate(struct heap *heap, struct allocation *allocation);

/* Free a block by its entry in the owner map, which names a named heap: of a slab, of one in
 * hardened mode, and a range in any mode, where only hardened mode knows the maker. */
void heap_named_free_slab(void *block, uint32_t entry, enum maker maker);
void heap_named_free_hardened(void *block, uint32_t entry, enum maker maker);
void heap_named_free_range(void *block, uint32_t entry, enum maker maker);

/* Frees all blocks of the heap; `verb` names the function that the program called. */
void heap_named_free_all(struct hak_heap *named, const char *verb);

#endif
