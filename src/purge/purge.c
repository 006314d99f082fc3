/* purge.c: the words of purge.h that all threads share. */
#include "purge/purge.h"

ATOMIC(uint32_t) purge_state;
ATOMIC(uint32_t) purge_helper_waits;
ATOMIC(bool) purge_has_helper;
