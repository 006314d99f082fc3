/* etc.c: the link that only a library with jemalloc's name reads: libjemalloc.so.2, and
 * libhakmem-je.a. */
#include "base/compiler.h"

extern const char hak_jemalloc_link[];
HIDDEN const char hak_jemalloc_link[] = "/etc/malloc.conf";
