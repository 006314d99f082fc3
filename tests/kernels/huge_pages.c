/* What the kernel's huge pages do to a process's resident memory; argv[2] is the mode, which the
 * test has set.
 *   small    a process of a few blocks of every tier keeps below 3 MiB
 *   sparse   what went back from between live blocks stays away, however often khugepaged comes by
 *   dense    memory that is used in full has huge pages: of a growing heap in the modes `always`
 *            and `madvise`, of large blocks in `always`; all of it can go back. An emulated
 *            processor is slow, so a few requests end them. For HAKMEM_THP=0 the test passes
 *            `never`
 * The test makes khugepaged run without a pause, and sets HAKMEM_DECAY_MS=200. */
#include <stdbool.h>

#include "memory/blocks.h"

enum { SCANS = 4, STILL_MS = 1000, STEP_MS = 20, DECAY_MS = 200 };
enum { SMALL_MIB = 3, SPARSE_MIB = 96, DENSE_MIB = 160, ONE_MIB = 1 };

static size_t number_in(const char *path, const char *key) {
  char text[8192];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  CHECK_MSG(fd >= 0, "%s", path);
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  CHECK(length > 0);
  text[length] = '\0';
  const char *found = strstr(text, key);
  CHECK_MSG(found != NULL, "%s in %s", key, path);
  return strtoull(found + strlen(key), NULL, 10);
}

static size_t scans(void) {
  return number_in("/sys/kernel/mm/transparent_hugepage/khugepaged/full_scans", "");
}

/* khugepaged looks at every process so many times, or stands still as there is nobody to look
 * at. */
static void let_khugepaged_work(void) {
  size_t last = scans(), end = last + SCANS;
  for (int still_ms = 0; still_ms < STILL_MS && last < end; still_ms += STEP_MS) {
    sleep_ms(STEP_MS);
    if (scans() != last) {
      last = scans();
      still_ms = 0;
    }
  }
}

static size_t huge_mib(void) {
  return number_in("/proc/self/smaps_rollup", "\nAnonHugePages:") * KIB / MIB;
}

static size_t rss_mib(void) { return rss_bytes() / MIB; }

static const size_t sizes[] = {24, 200, 1000, 5000, 30000, 100 * KIB, 300 * KIB};

static void small(void) {
  for (size_t i = 0; i < COUNT_OF(sizes) - 1; i++) {
    char *block = MUST(malloc(sizes[i]));
    block[0] = 1;
  }
  let_khugepaged_work();
  CHECK_MSG(rss_bytes() < SMALL_MIB * MIB, "%zu KiB resident", rss_bytes() / KIB);
}

/* A block in every 64th place lives on. */
static void thin_out(blocks *table) {
  for (size_t i = 0; i < table->count; i++)
    if (i % 64) free(table->at[i]);
}

static void age(void) {
  for (int step = 0; step < 8; step++) {
    sleep_ms(DECAY_MS / 2);
    malloc_trim(0);
  }
}

static void sparse(void) {
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    blocks table = blocks_table(SPARSE_MIB * MIB / COUNT_OF(sizes), sizes[i]);
    blocks_fill(&table);
    thin_out(&table);
  }
  age();
  size_t before_mib = rss_mib();
  let_khugepaged_work();
  size_t after_mib = rss_mib();
  CHECK_MSG(before_mib < SPARSE_MIB / 2, "%zu MiB resident", before_mib);
  CHECK_MSG(after_mib <= before_mib + ONE_MIB, "%zu MiB resident, then %zu", before_mib, after_mib);
}

static void dense(const char *mode) {
  bool are_given = strcmp(mode, "always") == 0, are_had = strcmp(mode, "never") != 0;
  size_t start_bytes = rss_bytes();
  blocks small_ones = blocks_table(DENSE_MIB * MIB, 200),
         large_ones = blocks_table(DENSE_MIB * MIB, 40 * MIB);
  blocks_fill(&large_ones);
  size_t of_large_mib = huge_mib();
  blocks_fill(&small_ones);
  size_t huge = huge_mib(), used_mib = rss_mib();
  CHECK_MSG(used_mib < DENSE_MIB * 9 / 4 + 8, "%zu MiB resident", used_mib);
  size_t of_small_mib = huge - of_large_mib, least_mib = are_given ? DENSE_MIB / 4 : 2;
  CHECK_MSG((of_large_mib >= DENSE_MIB * 3 / 4) == are_given, "%zu MiB in huge pages",
            of_large_mib);
  CHECK_MSG((of_small_mib >= least_mib) == are_had, "%zu MiB in huge pages", of_small_mib);
  blocks_free(&small_ones);
  blocks_free(&large_ones);
  blocks_unmap(&small_ones);
  blocks_unmap(&large_ones);
  age();
  let_khugepaged_work();
  size_t left_mib = rss_above_mib(start_bytes);
  CHECK_MSG(left_mib <= 2 * SMALL_MIB, "%zu MiB stay resident", left_mib);
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  if (strcmp(argv[1], "small") == 0) {
    small();
  } else if (strcmp(argv[1], "sparse") == 0) {
    sparse();
  } else {
    dense(argv[2]);
  }
  return 0;
}
