#include "account.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STATE_BITS = 3, STATE_MASK = (1 << STATE_BITS) - 1 };
enum { BUFFERED_MAX = 4096, TRIM_HEADER = 48 /* struct malloc_chunk */ };

void accounts_init(struct accounts *accounts, const struct heap *heap, struct marks *marks,
                   const char *path) {
  memset(accounts, 0, sizeof *accounts);
  accounts->heap = heap;
  accounts->marks = marks;
  accounts->sizes = allocated(NULL, SIZES * sizeof *accounts->sizes);
  memset(accounts->sizes, 0, SIZES * sizeof *accounts->sizes);
  accounts->buffer = allocated(NULL, BUFFERED_MAX * sizeof *accounts->buffer);
  accounts->blocks = path ? open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
  if (path && accounts->blocks < 0) refuse("%s: %s", path, errno_name());
}

/* ---- blocks ---- */

static void flush(struct accounts *accounts) {
  const char *at = (const char *)accounts->buffer;
  size_t left = accounts->buffered * sizeof *accounts->buffer;
  while (left > 0) {
    ssize_t done = write(accounts->blocks, at, left);
    if (done <= 0) refuse("the blocks cannot be written: %s", errno_name());
    at += done;
    left -= (size_t)done;
  }
  accounts->written += accounts->buffered;
  accounts->buffered = 0;
}

static void put(struct accounts *accounts, uint64_t address, uint64_t usable, enum state state) {
  uint64_t *record = accounts->buffer[accounts->buffered++];
  record[0] = address;
  record[1] = usable << STATE_BITS | (uint64_t)state;
  if (accounts->buffered == BUFFERED_MAX) flush(accounts);
}

static void put_mmapped(struct accounts *accounts, uint64_t before) {
  const struct heap *heap = accounts->heap;
  for (; accounts->mmapped_written < heap->mmapped_count; ++accounts->mmapped_written) {
    const struct mmapped *mmapped = &heap->mmapped[accounts->mmapped_written];
    if (mmapped->chunk >= before) return;
    bool is_cached = mark_of(accounts->marks, mmapped->chunk) != NOT_CACHED;
    put(accounts, mmapped->chunk + HEADER_BYTES, mmapped->usable, is_cached ? IS_CACHED : IS_LIVE);
  }
}

static void put_block(struct accounts *accounts, uint64_t chunk, uint64_t bytes, enum state state) {
  if (accounts->blocks < 0) return;
  put_mmapped(accounts, chunk);
  put(accounts, chunk + HEADER_BYTES, bytes - 8, state);
}

/* After it nothing is written but by accounts_mark. */
static void write_rest(struct accounts *accounts) {
  put_mmapped(accounts, UINT64_MAX);
  flush(accounts);
}

void accounts_end(struct accounts *accounts) {
  if (accounts->blocks < 0) return;
  write_rest(accounts);
  if (close(accounts->blocks) != 0) refuse("the blocks cannot be written: %s", errno_name());
}

/* ---- sizes ---- */

static size_t place_of_size(uint64_t bytes) {
  if (bytes <= EXACT_BYTES) return (size_t)(bytes / CHUNK_ALIGNMENT);
  unsigned octave = 0;
  uint64_t base = EXACT_BYTES;
  while (base < bytes / 2 && octave < 46) {
    base *= 2;
    ++octave;
  }
  uint64_t step = base / STEPS, place = (bytes - base + step - 1) / step;
  if (place > STEPS) place = STEPS;
  return EXACT_SIZES + octave * STEPS + (size_t)(place ? place - 1 : 0);
}

uint64_t size_of_place(size_t place) {
  if (place < EXACT_SIZES) return (uint64_t)place * CHUNK_ALIGNMENT;
  size_t octave = (place - EXACT_SIZES) / STEPS, step = (place - EXACT_SIZES) % STEPS + 1;
  uint64_t base = (uint64_t)EXACT_BYTES << octave;
  return base + base / STEPS * step;
}

/* ---- residency ---- */

static struct account *account_of(struct walk *walk) {
  return &walk->heap->arenas[walk->region->arena].account;
}

static uint64_t resident_in(const struct walk *walk, uint64_t begin, uint64_t end) {
  const struct window *window = &walk->chain.window;
  uint64_t unit = walk->heap->target->page_bytes, total = 0;
  if (!is_in_window(window, begin, end)) return pages_resident(walk->heap->target, begin, end);
  uint64_t first = window->begin / unit;
  while (begin < end) {
    uint64_t page = begin / unit, next = (page + 1) * unit;
    if (next > end) next = end;
    if (window->states[page - first] == PAGE_RESIDENT) total += next - begin;
    begin = next;
  }
  return total;
}

/* malloc_trim returns whole pages after a free chunk's first 48 bytes. */
static void end_run(struct accounts *accounts, struct walk *walk) {
  uint64_t unit = walk->heap->target->page_bytes;
  uint64_t begin = round_up(accounts->run_begin + TRIM_HEADER, unit);
  uint64_t end = round_down(accounts->run_end, unit);
  if (accounts->run_begin && end > begin)
    account_of(walk)->resident[WHOLE] += resident_in(walk, begin, end);
  accounts->run_begin = 0;
}

static void add_to_run(struct accounts *accounts, uint64_t begin, uint64_t bytes) {
  if (!accounts->run_begin) accounts->run_begin = begin;
  accounts->run_end = begin + bytes;
}

/* ---- chunks ---- */

static void account_chunk(struct accounts *accounts, struct walk *walk, const struct chunk *chunk) {
  struct account *account = account_of(walk);
  struct account_of_sizes *sizes = &accounts->sizes[place_of_size(chunk->bytes)];
  enum mark mark = chunk->is_free ? NOT_CACHED : mark_of(accounts->marks, chunk->address);
  uint64_t resident = resident_in(walk, chunk->address, chunk->address + chunk->bytes);
  if (chunk->is_free || mark == IN_FASTBIN) {
    add_to_run(accounts, chunk->address, chunk->bytes);
  } else if (accounts->run_begin) {
    end_run(accounts, walk);
  }
  if (chunk->is_free) {
    account->free_bytes += chunk->bytes;
    ++account->free_chunks;
    ++sizes->free;
    account->resident[FREE] += resident;
    put_block(accounts, chunk->address, chunk->bytes, IS_FREE);
  } else if (mark == NOT_CACHED) {
    account->live_bytes += chunk->bytes;
    ++account->live_chunks;
    ++sizes->live;
    account->resident[LIVE] += resident;
    put_block(accounts, chunk->address, chunk->bytes, IS_LIVE);
  } else {
    *(mark == IN_TCACHE ? &account->tcache_bytes : &account->fastbin_bytes) += chunk->bytes;
    ++*(mark == IN_TCACHE ? &account->tcache_chunks : &account->fastbin_chunks);
    ++sizes->cached;
    account->resident[CACHED] += resident;
    put_block(accounts, chunk->address, chunk->bytes, IS_CACHED);
  }
}

void account_chain(struct accounts *accounts, struct walk *walk) {
  for (size_t i = 0; i < walk->chain.count; ++i)
    account_chunk(accounts, walk, &walk->chain.chunks[i]);
}

void account_unknown(struct accounts *accounts, struct walk *walk, uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  end_run(accounts, walk);
  account_of(walk)->unknown_bytes += end - begin;
  account_of(walk)->resident[LIVE] += pages_resident(walk->heap->target, begin, end);
  if (accounts->blocks < 0) return;
  put_mmapped(accounts, begin);
  put(accounts, begin, end - begin, IS_UNKNOWN);
}

void account_headers(struct accounts *accounts, struct walk *walk, uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  end_run(accounts, walk);
  account_of(walk)->resident[HEADERS] += pages_resident(walk->heap->target, begin, end);
}

/* The main arena's top is trimmed up to the last page that 33 bytes of it need, if no other part of
 * the program has moved the break. */
void account_top(struct accounts *accounts, struct walk *walk, uint64_t top) {
  struct account *account = account_of(walk);
  const struct target *target = walk->heap->target;
  const struct region *region = walk->region;
  uint64_t end = region->end, begin = top;
  if (accounts->run_begin && accounts->run_end == top) begin = accounts->run_begin;
  bool is_break = !region->heap_info && region->mapped_end == end &&
                  round_up(walk->heap->parameters.sbrk_base, CHUNK_ALIGNMENT) == region->begin;
  bool is_trimmed = is_break && end - begin > MINIMUM_BYTES + 1;
  uint64_t unit = walk->heap->parameters.trim_unit;
  uint64_t extra = is_trimmed ? round_down(end - begin - MINIMUM_BYTES - 1, unit) : 0;
  uint64_t trimmed = end - extra > top ? end - extra : top;
  account->top_bytes += end - top;
  account->resident[TOP] += pages_resident(target, top, end);
  account->top_whole += pages_resident(target, trimmed, end);
  account->resident[WHOLE] += pages_resident(target, end - extra, trimmed);
  accounts->run_begin = 0;
  put_block(accounts, top, end - top, IS_TOP);
}

/* ---- a single walk ---- */

static void recount(struct accounts *accounts, struct heap *heap, uint64_t chunk, uint64_t bytes,
                    enum mark mark) {
  const struct region *region = region_of(heap, chunk);
  if (region == NULL) return; /* a mapping of its own */
  struct account *account = &heap->arenas[region->arena].account;
  struct account_of_sizes *sizes = &accounts->sizes[place_of_size(bytes)];
  account->live_bytes -= bytes;
  --account->live_chunks;
  --sizes->live;
  ++sizes->cached;
  *(mark == IN_TCACHE ? &account->tcache_bytes : &account->fastbin_bytes) += bytes;
  ++*(mark == IN_TCACHE ? &account->tcache_chunks : &account->fastbin_chunks);
}

void accounts_mark(struct accounts *accounts, struct heap *heap) {
  write_rest(accounts);
  size_t bytes = accounts->written * sizeof *accounts->buffer;
  if (bytes == 0) return;
  uint64_t(*records)[2] =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, accounts->blocks, 0);
  if (records == MAP_FAILED) refuse("the blocks cannot be corrected: %s", errno_name());
  for (size_t i = 0; i < accounts->written; ++i) {
    uint64_t chunk = records[i][0] - HEADER_BYTES, word = records[i][1];
    if ((word & STATE_MASK) != IS_LIVE) continue;
    enum mark mark = mark_of(accounts->marks, chunk);
    if (mark == NOT_CACHED) continue;
    records[i][1] |= IS_CACHED;
    recount(accounts, heap, chunk, (word >> STATE_BITS) + 8, mark);
  }
  munmap(records, bytes);
}
