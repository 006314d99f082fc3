/* range_marks.c: recognises a live range that the program has marked.
 *
 * A mark that a program sets on pages of its block (MADV_DONTFORK, MADV_DONTDUMP, mlock, mprotect,
 * mbind, a name ...) outlives the block's free, and the kernel keeps it in the mapping: pages that
 * differ in it are mappings of their own. The last page of a Big block's range lies outside the
 * block (ranges/large.c), so nothing was said about it; a range that is one mapping has no mark at
 * all. */
#include "map/huge.h"
#include "os/os.h"
#include "ranges/range_record.h"

/* The part of [first, end) whose chunks are as the first of them. Without records a chunk lies in
 * one range only, and was let in. */
static size_t end_of_like_chunks(size_t first, size_t end) {
  const struct range_chunk *chunk = range_chunk_if_any(first);
  bool is_let_in = !chunk || load_relaxed(&chunk->huge_state) == HUGE_LET_IN;
  size_t at = next_chunk(first);
  for (; at < end; at = next_chunk(at)) {
    chunk = range_chunk_if_any(at);
    if (is_let_in != (!chunk || load_relaxed(&chunk->huge_state) == HUGE_LET_IN)) break;
  }
  return at < end ? at : end;
}

/* As glibc does with blocks from its largest threshold on. */
#define WHOLE_CHUNKS_MAX_BYTES ((size_t)32 << 20)

/* Where the kernel gives huge pages unasked, chunks differ by hakmem's own doing: each part that is
 * alike is asked for by itself. If the last part is a granule, the block may lie in the others
 * alone. */
static bool is_marked_by_parts(size_t first, size_t end) {
  size_t at = first, before = first;
  while (at < end) {
    before = at;
    at = end_of_like_chunks(at, end);
    void *part = (void *)granule_address(before); /* NOLINT(performance-no-int-to-ptr) */
    if (!os_is_one_mapping(part, (at - before) << GRANULE_SHIFT)) return true;
  }
  return before != first && end - before == 1 &&
         (end - first) << GRANULE_SHIFT >= WHOLE_CHUNKS_MAX_BYTES;
}

bool range_mapping_is_marked(size_t first) {
  const struct range *head = range_record(first);
  size_t end = first + head->info.granules;
  if (UNLIKELY(head->was_moved)) return true; /* its pages may have brought a mark along */
  if (huge_is_default()) return is_marked_by_parts(first, end);
  void *begin = (void *)granule_address(first); /* NOLINT(performance-no-int-to-ptr) */
  return !os_is_one_mapping(begin, (end - first) << GRANULE_SHIFT);
}
