/* etc.c: parts only of libraries with jemalloc's name: libjemalloc.so.2, and archives with a
 * prefix. */
#include "cache/moving.h"

/* The link that is read there. */
extern const char hak_jemalloc_link[];
HIDDEN const char hak_jemalloc_link[] = "/etc/malloc.conf";

/* redis asks it under the name je_get_defrag_hint: whether to move the block. */
EXPORT_UNDECLARED(int, get_defrag_hint, void *block) { return moving_gain(block) != 0; }
