#include "foreign/pointer.h"

#include "guard/guarded.h"
#include "os/os.h"
#include "slab/record.h"
#include "slab/slab.h"

/* The word before a block of glibc's malloc: its chunk's size and three flags. */
enum { CHUNK_PREVIOUS_IN_USE = 1, CHUNK_IS_MMAPPED = 2, CHUNK_IN_OTHER_ARENA = 4, CHUNK_FLAGS = 7 };
enum { CHUNK_HEADER_BYTES = 16, CHUNK_MIN_BYTES = 32 };

static bool is_mmapped_chunk(uintptr_t chunk, uint64_t previous_bytes, uint64_t chunk_bytes) {
  uint64_t page_mask = os_page_bytes() - 1;
  return ((chunk - previous_bytes) & page_mask) == 0 &&
         ((chunk_bytes + previous_bytes) & page_mask) == 0;
}

/* The chunk after a live one says that the one before it is in use. */
static bool is_live_arena_chunk(uintptr_t chunk, uint64_t chunk_bytes) {
  uint64_t next_header[2];
  return os_read_safely(next_header, (const void *)(chunk + chunk_bytes), sizeof next_header) &&
         (next_header[1] & CHUNK_PREVIOUS_IN_USE);
}

bool pointer_is_libc_block(uintptr_t address) {
  uint64_t header[2]; /* size of the chunk before (when free or mmapped), own size and flags */
  uintptr_t chunk = address - CHUNK_HEADER_BYTES;
  if (address % CHUNK_HEADER_BYTES || address < CHUNK_HEADER_BYTES) return false;
  if (!os_read_safely(header, (const void *)chunk, sizeof header)) return false;
  uint64_t chunk_bytes = header[1] & ~(uint64_t)CHUNK_FLAGS;
  if (chunk_bytes < CHUNK_MIN_BYTES || chunk_bytes % CHUNK_HEADER_BYTES) return false;
  if (chunk_bytes > (uint64_t)PTRDIFF_MAX) return false;
  if (header[1] & CHUNK_IS_MMAPPED) return is_mmapped_chunk(chunk, header[0], chunk_bytes);
  bool is_plausible = header[1] & CHUNK_IN_OTHER_ARENA || os_is_in_break(address);
  return is_plausible && is_live_arena_chunk(chunk, chunk_bytes);
}

struct block_description pointer_describe(uintptr_t block, uint32_t entry, size_t block_bytes) {
  unsigned class = map_slab_class(entry);
  bool is_big = map_entry_is_big(entry), is_named = map_entry_is_named(entry);
  const struct owner *owner = map_threads_place(entry) < PLACES_END
                                  ? load_relaxed(&slab_of_block(block)->owner)
                                  : owner_of_tag(entry & ~MAP_CLASS_MASK);
  struct block_description description = {
      .base = block,
      .block_bytes = block_bytes,
      .tier = is_big ? "big" : class_tier_name(class),
      .class_number = is_big ? 0 : class,
      .thread_id = is_named ? 0 : owner_thread_id(owner),
  };
  if (is_big && range_info(granule_of(block))->is_guarded)
    guarded_describe(map_entry_is_live(entry), &description);
  return description;
}

/* A program may have one hakmem linked in and another preloaded. Finds those that come later in the
 * search order. */
static bool is_of_another_hakmem(uintptr_t address) {
  bool (*owns)(const void *);
  *(void **)&owns = os_next_symbol("hak_owns");
  return owns && owns((const void *)address);
}

/* The windows of two hakmems may overlap: at its frontier each passes over the other's chunks. */
static void fail_where_nothing_is(const char *verb, uintptr_t address) {
  bool is_of_another = is_of_another_hakmem(address);
  if (!is_of_another && is_in_window(address))
    report_invalid_pointer(verb, address);
  else
    report_misuse(&(struct misuse){"foreign", verb, address, NULL, 0, false}, "%s",
                  is_of_another
                      ? "a block of another hakmem in this process (hakmem doctor PID names both)"
                      : "neither hakmem's nor libc's");
}

static void fail_in_superslab(const char *verb, uintptr_t address, size_t granule) {
  bool was_ever_used = slab_of_granule(granule)->base != 0;
  const struct slab *slab = was_ever_used ? slab_of_block(address) : NULL;
  if (slab && granule_of(slab->base) <= granule)
    slab_fail_pointer(slab, address, verb);
  else
    report_invalid_pointer(verb, address);
}

static void fail_in_ranges(const char *verb, uintptr_t address, size_t granule) {
  size_t first = range_covering(granule, SIZE_MAX);
  if (first == NO_GRANULE) {
    fail_where_nothing_is(verb, address);
    return;
  }
  uint32_t entry = load_relaxed(&window.owner_map[first]);
  size_t block_bytes = map_entry_is_big(entry) ? size_of_granules(range_info(first)->granules)
                                               : class_bytes(map_slab_class(entry));
  if (map_entry_is_closed(entry)) block_bytes = range_requested_bytes(first);
  struct block_description block = pointer_describe(range_block(first), entry, block_bytes);
  report_no_block(verb, address, &block);
}

void pointer_fail(const char *verb, uintptr_t address) {
  size_t granule = granule_of(address);
  bool is_mapped = granule < load_relaxed(&window.granule_count);
  uintptr_t metadata = is_mapped ? (uintptr_t)chunk_metadata(granule / GRANULES_PER_CHUNK) : 0;
  if (!is_mapped)
    fail_where_nothing_is(verb, address);
  else if (metadata && !(metadata & CHUNK_IS_RANGES))
    fail_in_superslab(verb, address, granule);
  else
    fail_in_ranges(verb, address, granule);
}
