#include "map/huge.h"

#include "config/options.h"

struct huge huge;

/* A process may have 65,530 mappings (vm.max_map_count). Chunks that would divide them further get
 * no huge pages, and merge. */
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

/* Hardened mode closes parts of chunks. */
static bool may_let_in(void) { return options.thp && !window.hardened_bit; }

char huge_let_in(size_t chunk, size_t count) {
  if (huge_is_default() && may_let_in() && may_divide(chunk, count)) return HUGE_LET_IN;
  huge_keep_out(chunk_address(chunk), count << CHUNK_SHIFT);
  return HUGE_KEPT_OUT;
}

static void advise(size_t chunk, bool want) {
  os_advise_huge((void *)chunk_address(chunk), CHUNK_BYTES, want); /* NOLINT */
}

/* The kernel first: a thread that sees the state may give pages back. Where mappings are short huge
 * pages that come back do less harm. */
void huge_refuse(size_t chunk, ATOMIC(char) *state) {
  if (load_relaxed(&huge.divisions) >= DIVISIONS_MAX) return;
  advise(chunk, false);
  store_relaxed(state, HUGE_REFUSED);
  fetch_add_relaxed(&huge.divisions, 2);
}

char huge_forget(char state) {
  if (state != HUGE_REFUSED) return state;
  fetch_sub_relaxed(&huge.divisions, 2);
  return HUGE_LET_IN;
}

/* ---- a growing heap -------------------------------------------------------------------------- */

/* A huge page takes 100 to 300 us, but 5 ms and more where the kernel compacts memory for it, or a
 * hypervisor has taken the memory back. Then the heap grows without, 32 times as long: at most 3 %
 * of the time is waited. */
enum { SLOW_NS = 1000000, PAUSE_FACTOR = 32 };

/* relaxed: threads that grow at a time may meet another slow one each. */
static bool is_time_to_ask(void) {
  return os_huge_mode() == OS_HUGE_ON_REQUEST && os_now_ns() >= load_relaxed(&huge.pause_end_ns);
}

/* A program may never touch all pages of its blocks, and a huge page touches them all. So one chunk
 * in 16 has small pages, and the others have huge ones if that one is resident in all but 3 %. */
enum { PROBE_EVERY = 16, DENSE_DIVISOR = 32 };

static bool is_dense(size_t chunk) {
  if (fetch_add_relaxed(&huge.mapped, 1) % PROBE_EVERY == 0) {
    store_relaxed(&huge.probe, chunk);
    return false;
  }
  void *probe = (void *)chunk_address(load_relaxed(&huge.probe)); /* NOLINT */
  return !os_is_confined() &&                                     /* residency is unknown there */
         os_resident_bytes(probe, CHUNK_BYTES) >= CHUNK_BYTES - CHUNK_BYTES / DENSE_DIVISOR;
}

bool huge_may_be_requested(void) { return may_let_in() && (huge_is_default() || is_time_to_ask()); }

char huge_request(size_t chunk, char state, bool is_just_mapped, bool are_wanted) {
  bool may = are_wanted && huge_may_be_requested();
  if (may && is_just_mapped) may = is_dense(chunk);
  if (may && state == HUGE_KEPT_OUT) may = may_divide(chunk, 1);
  if (may != (is_just_mapped ? huge_is_default() : state == HUGE_LET_IN)) advise(chunk, may);
  if (may || state == HUGE_KEPT_OUT) return may ? HUGE_LET_IN : HUGE_KEPT_OUT;
  fetch_add_relaxed(&huge.divisions, 2);
  return HUGE_REFUSED;
}

/* By processor time: the thread may have to wait for a processor, too. */
void huge_touch(size_t chunk) {
  uint64_t start_ns = os_thread_ns();
  *(volatile char *)chunk_address(chunk) = 0; /* NOLINT: the window is made of addresses */
  uint64_t took_ns = os_thread_ns() - start_ns;
  if (took_ns >= SLOW_NS) store_relaxed(&huge.pause_end_ns, os_now_ns() + took_ns * PAUSE_FACTOR);
}
