/* A block that is written beyond its ends never reaches a record: on the real system
 * (src/map/metadata, window). */
#include "child.h"
#include "hakmem/hakmem.h"
#include "map/window.h"
#include "os/os.h"
#include "slab/record.h"

enum { BLOCKS = 10000, BIG_EVERY = 150, FAR_BYTES = 64 << 10, NEAR_BYTES = 256 };

static sigjmp_buf before_write;

static void leave(int signal) { siglongjmp(before_write, signal); }

/* Writes a byte; false when the kernel forbids it. */
static bool write_byte(uintptr_t address) {
  if (sigsetjmp(before_write, 1)) return false;
  *(volatile unsigned char *)address = 0xee;
  return true;
}

enum kind { NOTHING, SUPERSLAB, RANGES, RECORDS };

/* Inside a range chunks have no records; they are mapped up to their ends. */
static enum kind kind_of(size_t chunk) {
  uintptr_t record = (uintptr_t)chunk_metadata(chunk);
  if (record) return record & CHUNK_IS_RANGES ? RANGES : SUPERSLAB;
  char byte;
  const char *first = (const char *)chunk_address(chunk), *middle = first + CHUNK_BYTES / 2;
  if (os_read_safely(&byte, first, 1)) return RANGES;
  return os_read_safely(&byte, middle, 1) ? RECORDS : NOTHING;
}

/* Every way from a data chunk to its neighbour: the first bytes, those 64 KiB on, and pages in
 * between. */
static void try_to_reach(uintptr_t edge, int direction) {
  for (uintptr_t distance = 0; distance <= FAR_BYTES; distance += 4096)
    for (uintptr_t byte = 0; byte < NEAR_BYTES; byte += 15) {
      uintptr_t offset = distance + byte;
      REQUIRE(!write_byte(direction > 0 ? edge + offset : edge - 1 - offset));
    }
}

static void allocate(void) {
  for (unsigned index = 0; index < BLOCKS; index++) {
    REQUIRE(hak_malloc(20000)); /* three slots of a SuperSlab's 32 for a slab of these */
    if (index % BIG_EVERY == 0) REQUIRE(hak_malloc(5 << 20));
  }
}

CHILD_TEST(overrun) {
  allocate();
  signal(SIGSEGV, leave);
  unsigned behind_superslabs = 0, before_superslabs = 0, beside_ranges = 0;
  size_t end = load_relaxed(&window.frontier_chunk);
  for (size_t chunk = 1; chunk + 1 < end; chunk++) {
    if (kind_of(chunk) != RECORDS) continue;
    enum kind before = kind_of(chunk - 1), behind = kind_of(chunk + 1);
    if (before == SUPERSLAB || before == RANGES) try_to_reach(chunk_address(chunk), 1);
    if (behind == SUPERSLAB || behind == RANGES) try_to_reach(chunk_address(chunk + 1), -1);
    behind_superslabs += before == SUPERSLAB;
    before_superslabs += behind == SUPERSLAB;
    beside_ranges += (before == RANGES ? 1u : 0) + (behind == RANGES ? 1u : 0);
  }
  fprintf(stderr, "%u %u %u of %zu\n", behind_superslabs, before_superslabs, beside_ranges, end);
  REQUIRE(behind_superslabs >= 2 && before_superslabs >= 2); /* else nothing was tested */
}

/* The first of all chunks is one of records: what is in front of the first data, too. */
CHILD_TEST(underrun_of_the_first) {
  char *block = hak_malloc(16);
  REQUIRE(block && kind_of(0) == RECORDS &&
          kind_of(granule_of((uintptr_t)block) / GRANULES_PER_CHUNK) == SUPERSLAB);
  signal(SIGSEGV, leave);
  try_to_reach((uintptr_t)block - (uintptr_t)block % CHUNK_BYTES, -1);
}

/* The maps lie apart from all of it, and what no chunk of ours has reached in them cannot be
 * written. */
CHILD_TEST(maps_lie_apart) {
  allocate();
  signal(SIGSEGV, leave);
  uintptr_t maps = (uintptr_t)window.owner_map, first = chunk_address(0);
  uintptr_t end = chunk_address(load_relaxed(&window.chunk_limit));
  uintptr_t map_end =
      maps + load_relaxed(&window.chunk_limit) * GRANULES_PER_CHUNK * sizeof(uint32_t);
  REQUIRE(map_end + CHUNK_BYTES <= first || maps - CHUNK_BYTES > end);
  REQUIRE(!write_byte(map_end - 4096));
}
