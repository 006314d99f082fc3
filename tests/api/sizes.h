/* sizes.h: sizes that matter, smallest first: the edges of every tier and a few inside each. */
#ifndef TESTS_API_SIZES_H
#define TESTS_API_SIZES_H

#include <stddef.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static const size_t tier_sizes[] = {
    /* Tiny */
    1, 7, 8, 9, 15, 16, 17, 24, 64, 100, 128, 129, 1000, KIB - 1, KIB,
    /* Mid */
    KIB + 1, 2 * KIB, 2 * KIB + 1, 4 * KIB, 10000, 32 * KIB - 1, 32 * KIB,
    /* Large */
    32 * KIB + 1, 64 * KIB, 100000, 256 * KIB, MIB - 1, MIB,
    /* Big */
    MIB + 1, 2 * MIB, 2 * MIB + 1, 3000000, 8 * MIB + 5};

#define TIER_SIZES (sizeof tier_sizes / sizeof tier_sizes[0])

#endif
