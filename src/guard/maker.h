/* maker.h: what makes blocks, which hardened mode notes of each (guard/trailer.h). */
#ifndef HAK_GUARD_MAKER_H
#define HAK_GUARD_MAKER_H

/* What frees a block must be of the same. */
enum maker { MADE_BY_MALLOC, MADE_BY_NEW, MADE_BY_NEW_ARRAY };

#endif
