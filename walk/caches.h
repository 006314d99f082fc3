/* caches.h: chunks that malloc keeps for a thread (tcache) or an arena (fastbins).  To the chain
 * of chunks they look live; only their lists tell them. */
#ifndef HAK_WALK_CACHES_H
#define HAK_WALK_CACHES_H

#include "broken.h"
#include "heap.h"
#include "marks.h"

/* Chunks whose size is that of a thread's tcache_perthread_struct. */
struct candidates {
  uint64_t *chunks;
  size_t count, room;
};

bool is_candidate(uint64_t bytes);
/* Could this chunk, read as a whole, be one? */
bool is_candidate_content(uint64_t bytes, const uint8_t *chunk);
void candidates_add(struct candidates *candidates, uint64_t chunk);
/* Are fastbins long?  Then the first walk is to note the links of small chunks. */
bool caches_are_long(struct heap *heap);
void caches_note(const struct heap *heap, struct marks *marks, const struct chunk *chunk,
                 const uint8_t *bytes);
/* Finds the thread caches among the candidates, marks all cached chunks and adds damaged lists to
 * the findings.  Returns the number of thread caches. */
size_t caches_find(struct heap *heap, const struct candidates *candidates, struct marks *marks,
                   struct findings *findings);

#endif
