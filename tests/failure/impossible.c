/* Requests that nothing can serve are refused without giving anything back: no round, no call that
 * purges or unmaps, free memory and cached blocks as before.  What can be served once everything
 * free has been given back still is.
 *
 *   argv[1]  none        no limit
 *            as, data    RLIMIT_AS or RLIMIT_DATA of argv[2] MiB, known at the start
 *            later       RLIMIT_AS of argv[2] MiB, set afterwards
 *            hard        HAKMEM_LIMIT_HARD is argv[2] MiB */
#include <sys/mman.h>

#include "api/check.h"
#include "api/sizes.h"
#include "failure/chain.h"
#include "failure/limit.h"
#include "hakmem/hakmem.h"

static size_t figure(const char *name) {
  static char text[64 * KIB];
  char key[64];
  CHECK(hak_stats_json(text, sizeof text) < sizeof text);
  snprintf(key, sizeof key, "\"%s\":", name);
  const char *at = strstr(text, key);
  CHECK_MSG(at != NULL, "%s", name);
  return strtoul(at + strlen(key), NULL, 10);
}

/* What giving back raises, and what it lowers. */
static const char *const raised[] = {"purges", "os_purges", "purged_bytes"};
static const char *const lowered[] = {"dirty_free_bytes", "unstable_superslabs_kept",
                                      "committed_bytes"};

struct look {
  size_t raised[COUNT_OF(raised)], lowered[COUNT_OF(lowered)], flushes;
};

static struct look look(void) {
  struct look now = {.flushes = figure("flushes")};
  for (size_t i = 0; i < COUNT_OF(raised); i++) now.raised[i] = figure(raised[i]);
  for (size_t i = 0; i < COUNT_OF(lowered); i++) now.lowered[i] = figure(lowered[i]);
  return now;
}

/* Free memory of all kinds that would be missed: magazines, slabs, SuperSlabs, ranges, cached
 * blocks. */
static void leave_free_memory(size_t bytes) {
  static const size_t sizes[] = {100, 5000, 100 * KIB, 1500 * KIB};
  for (size_t i = 0; i < COUNT_OF(sizes); i++) chain_swing(sizes[i], bytes / 4);
}

static void refuse(size_t size) {
  void *out, *block = malloc(100);
  errno = 0;
  CHECK_MSG(malloc(size) == NULL && errno == ENOMEM, "malloc(%zu)", size);
  CHECK(calloc(size / 8, 8) == NULL && calloc(1, size) == NULL);
  CHECK(realloc(block, size) == NULL && realloc(NULL, size) == NULL);
  CHECK(memalign(64, size) == NULL && aligned_alloc(1 << 20, size) == NULL);
  CHECK(posix_memalign(&out, 4096, size) == ENOMEM);
  CHECK(valloc(size) == NULL && pvalloc(size) == NULL);
  CHECK(errno == ENOMEM);
  free(block);
}

static void refuse_all(size_t limit_bytes) {
  void *big = malloc(2 * MIB); /* a block that grows beyond all bounds */
  struct look before = look();
  for (size_t size = (size_t)1 << 49; size; size *= 2) refuse(size);
  refuse(SIZE_MAX);
  for (size_t alignment = (size_t)1 << 49; alignment; alignment *= 2)
    CHECK(memalign(alignment, 100) == NULL);
  CHECK(realloc(big, (size_t)1 << 50) == NULL);
  if (limit_bytes)
    for (size_t size = limit_bytes + MIB; size < limit_bytes * 100; size *= 2) refuse(size);
  struct look after = look();
  for (size_t i = 0; i < COUNT_OF(raised); i++)
    CHECK_MSG(after.raised[i] == before.raised[i], "%s: from %zu to %zu", raised[i],
              before.raised[i], after.raised[i]);
  for (size_t i = 0; i < COUNT_OF(lowered); i++)
    CHECK_MSG(after.lowered[i] + 3 * MIB >= before.lowered[i], "%s: from %zu to %zu", lowered[i],
              before.lowered[i], after.lowered[i]);
  CHECK_MSG(after.flushes <= before.flushes + 4, "%zu magazines were emptied",
            after.flushes - before.flushes);
  free(big);
}

static bool is_hardened(void) {
  const char *harden = getenv("HAKMEM_HARDEN");
  return harden && strcmp(harden, "0") != 0;
}

/* Without guard regions (before Linux 6.13) pages are closed by mprotect, and RLIMIT_DATA does not
 * count them. */
static bool closed_pages_count(const char *kind) {
  enum { GUARD_INSTALL = 102, BYTES = 64 * KIB };
  if (strcmp(kind, "data") != 0) return true;
  void *pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool has_guard_regions = pages != MAP_FAILED && madvise(pages, BYTES, GUARD_INSTALL) == 0;
  munmap(pages, BYTES);
  return has_guard_regions;
}

/* Small blocks have been freed and lie in caches: the large one fits when these are gone.
 * Hardened mode leaves every second mebibyte closed; where that does not count, the large one
 * fits at once. */
static void serve_after_giving_back(size_t limit_bytes, const char *kind) {
  chain_swing(3000, limit_bytes / 100 * (is_hardened() ? 27 : 55));
  size_t rounds = figure("purges");
  void *block = MUST(malloc(limit_bytes / 100 * 60));
  CHECK(figure("purges") > rounds || (is_hardened() && !closed_pages_count(kind)));
  free(block);
}

/* What a block above 64 KiB takes of the limit: in hardened mode whole granules, with a closed page
 * after it and, where that is smaller than a granule, one before. */
static size_t counted_bytes(size_t bytes) {
  enum { GRANULE_BYTES = 64 * KIB };
  if (!is_hardened()) return bytes;
  size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
  size_t with_pages = bytes + page_bytes + (page_bytes < GRANULE_BYTES ? page_bytes : 0);
  return (with_pages + GRANULE_BYTES - 1) / GRANULE_BYTES * GRANULE_BYTES;
}

/* Three fifths are live: a request for more than the rest is impossible too. */
static void refuse_beside_live(size_t limit_bytes) {
  chain_link *chain = NULL;
  for (size_t bytes = 0; bytes < limit_bytes / 5 * 3; bytes += counted_bytes(70000))
    CHECK(chain_add(&chain, 70000, true));
  leave_free_memory(limit_bytes / 8);
  size_t rounds = figure("purges"), purges = figure("os_purges");
  for (size_t size = limit_bytes / 2; size < limit_bytes; size += MIB)
    for (size_t time = 0; time < 4; time++) CHECK(malloc(size) == NULL);
  CHECK(figure("purges") == rounds && figure("os_purges") == purges);
  chain_free(&chain, 70000);
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  size_t limit_bytes = strtoul(argv[2], NULL, 10) * MIB;
  const char *kind = argv[1];
  if (strcmp(kind, "as") == 0) limit_and_restart(argv, RLIMIT_AS, limit_bytes);
  if (strcmp(kind, "data") == 0) limit_and_restart(argv, RLIMIT_DATA, limit_bytes);
  leave_free_memory(limit_bytes ? limit_bytes / 4 : 64 * MIB);
  if (strcmp(kind, "later") == 0) {
    struct rlimit limit = {limit_bytes, limit_bytes};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  }
  refuse_all(limit_bytes);
  if (limit_bytes) serve_after_giving_back(limit_bytes, kind);
  if (strcmp(kind, "hard") == 0) refuse_beside_live(limit_bytes);
  return 0;
}
