/* bytes.h: sizes as people write them. */
#ifndef HAK_CONFIG_BYTES_H
#define HAK_CONFIG_BYTES_H

#include "base/compiler.h"

/* A number of bytes: whole, or with a fraction and a unit ("2.5G"; rounded down to a byte). K, M, G, T and KiB, MiB, GiB, TiB are powers
 * of 1024, KB, MB, GB, TB of 1000, as in coreutils; capitals or not. False when it is not a number, or too large for 64 bits. */
bool bytes_parse(const char *text, uint64_t *bytes);

#endif
