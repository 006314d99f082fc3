/* marks.h: which chunks are in a thread cache or a fastbin: 2 bits for each 16 bytes of the
 * heap, where there are any.  And the links of small chunks as a walk came upon them, 4 bytes
 * each: a long list in no order is followed there, and not by a system call for each chunk. */
#ifndef HAK_WALK_MARKS_H
#define HAK_WALK_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mark { NOT_CACHED, IN_TCACHE, IN_FASTBIN };

struct marks {
  struct leaf **leaves; /* hashed by address */
  size_t room, count;
  bool is_full;     /* more cached chunks than the marks' memory has room for */
  bool notes_links; /* chosen before the first mark */
  uint32_t *links;  /* of the noted chunks: distance and size */
  size_t link_count;
  uint64_t last_noted;
};

void marks_clear(struct marks *marks);
void mark_set(struct marks *marks, uint64_t chunk, enum mark mark);
enum mark mark_of(const struct marks *marks, uint64_t chunk);
/* Chunks are noted in the order of their addresses; those that are not, and links that lead farther
 * than 2 GiB, are left out. */
void link_note(struct marks *marks, uint64_t chunk, uint64_t bytes, uint64_t next);
/* The noted link of a chunk of this size; 0: none. */
uint64_t link_noted(const struct marks *marks, uint64_t chunk, uint64_t bytes);

#endif
