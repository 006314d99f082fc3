/* etc.c: parts only of libraries with jemalloc's name: libjemalloc.so.2, and archives with a
 * prefix. */
#include "cache/moving.h"
#include "jemalloc/names.h"

HIDDEN const struct program_says hak_program_says = {"/etc/malloc.conf", &malloc_conf,
                                                     &malloc_message};

/* redis asks it under the name je_get_defrag_hint: whether to move the block. */
EXPORT_UNDECLARED(int, get_defrag_hint, void *block) { return moving_gain(block) != 0; }
