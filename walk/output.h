/* output.h: the result, as one JSON object. */
#ifndef HAK_WALK_OUTPUT_H
#define HAK_WALK_OUTPUT_H

#include "account.h"

void output(struct heap *heap, const struct account_of_sizes *sizes,
            const struct findings *findings, uint64_t began_ns);

#endif
