/* hak_purge(true) gives back everything that is free and says how much; hak_purge(false) only what
 * is older than the decay, which the test sets to an hour. */
#include "hakmem/hakmem.h"
#include "memory/blocks.h"

/* hakmem's own, which stay.  Of a SuperSlab's 82 KiB 18 have been in use, or in pages of more than
 * 4 KiB up to all. */
static size_t records_bytes(void) {
  static char text[64 * KIB];
  if (sysconf(_SC_PAGESIZE) == 4 * KIB) return 0;
  hak_stats_json(text, sizeof text);
  const char *figure = MUST(strstr(text, "\"metadata_bytes\":"));
  return strtoul(strchr(figure, ':') + 1, NULL, 10);
}

int main(void) {
  static const size_t sizes[] = {64, KIB, 16 * KIB, 512 * KIB, 8 * MIB};
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    size_t count = sizes[i] > 16 * KIB ? 32 * MIB / sizes[i] : 4096;
    size_t start_records = records_bytes(), start_bytes = rss_bytes();
    blocks_use(sizes[i], count);
    size_t used_bytes = rss_bytes() - start_bytes;
    CHECK_MSG(hak_purge(false) == 0, "size %zu: nothing is old yet", sizes[i]);
    size_t purged_bytes = hak_purge(true), end_bytes = rss_bytes();
    size_t kept_bytes = 2 * MIB + records_bytes() - start_records;
    CHECK_MSG(end_bytes < start_bytes + kept_bytes, "size %zu: from %zu to %zu", sizes[i],
              start_bytes, end_bytes);
    CHECK_MSG(used_bytes < 2 * kept_bytes || purged_bytes >= used_bytes - kept_bytes,
              "size %zu: used %zu, purged %zu", sizes[i], used_bytes, purged_bytes);
    CHECK_MSG(hak_purge(true) == 0, "size %zu", sizes[i]);
  }
  return 0;
}
