/* marks.h: which chunks are in a thread cache or a fastbin: 2 bits for each 16 bytes of the
 * heap, where there are any. */
#ifndef HAK_WALK_MARKS_H
#define HAK_WALK_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mark { NOT_CACHED, IN_TCACHE, IN_FASTBIN };

struct marks {
  struct leaf **leaves; /* hashed by address */
  size_t room, count;
  bool is_full; /* more cached chunks than the marks' memory has room for */
};

void marks_clear(struct marks *marks);
void mark_set(struct marks *marks, uint64_t chunk, enum mark mark);
enum mark mark_of(const struct marks *marks, uint64_t chunk);

#endif
