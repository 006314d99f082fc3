#include "map/huge.h"

#include "config/options.h"

struct huge huge;

/* A process may have 65,530 mappings (vm.max_map_count). Chunks that would divide them further get no huge pages, and merge. */
enum { DIVISIONS_MAX = 16384 };

/* Adds two divisions, unless the chunks follow those let in last. */
static bool may_divide(size_t chunk, size_t count) {
  /* relaxed, and read and written apart: the number is one of thousands, and only bounds them. */
  if (load_relaxed(&huge.let_in_end) != chunk) {
    if (load_relaxed(&huge.divisions) >= DIVISIONS_MAX) return false;
    fetch_add_relaxed(&huge.divisions, 2);
  }
  store_relaxed(&huge.let_in_end, chunk + count);
  return true;
}

bool huge_let_in(size_t chunk, size_t count) {
  void *address = (void *)chunk_address(chunk); /* NOLINT: the window is made of addresses */
  bool is_wanted = options.thp && !window.hardened_class; /* which closes parts of them */
  if (is_wanted) os_advise_huge(address, count << CHUNK_SHIFT, true);
  if (is_wanted || (os_huge_pages_always() && !window.hardened_class && may_divide(chunk, count)))
    return true;
  huge_keep_out(chunk_address(chunk), count << CHUNK_SHIFT);
  return false;
}

/* The kernel first: a thread that sees the flag cleared may give pages back. */
void huge_refuse(size_t chunk, ATOMIC(bool) *may_be_huge) {
  os_advise_huge((void *)chunk_address(chunk), CHUNK_BYTES, false); /* NOLINT */
  store_relaxed(may_be_huge, false);
  fetch_add_relaxed(&huge.divisions, 2);
}
