/* hak_stats_json: one NUL-terminated text, cut to any buffer, its whole length returned.
 * test_reports.py parses it. */
#include "api/check.h"
#include "hakmem/hakmem.h"

enum { BUFFER_BYTES = 1 << 20, GUARD = 0x7e };

static char whole[BUFFER_BYTES], cut[BUFFER_BYTES];

static void check_cut(size_t bytes, size_t length) {
  memset(cut, GUARD, bytes + 16);
  CHECK(hak_stats_json(cut, bytes) == length);
  CHECK_MSG(memcmp(cut, whole, bytes - 1) == 0, "cut to %zu", bytes);
  CHECK_MSG(cut[bytes - 1] == '\0', "cut to %zu", bytes);
  for (size_t i = 0; i < 16; i++)
    CHECK_MSG(cut[bytes + i] == GUARD, "cut to %zu wrote beyond", bytes);
}

int main(void) {
  void *block = MUST(hak_malloc(1000));
  size_t length = hak_stats_json(whole, sizeof whole);
  CHECK(length > 0 && length < sizeof whole);
  CHECK(strlen(whole) == length);
  CHECK(hak_stats_json(NULL, 0) == length);
  for (size_t bytes = 1; bytes <= length; bytes += bytes < 200 ? 1 : 97) check_cut(bytes, length);
  check_cut(length, length); /* the NUL takes the last character's place */
  CHECK(hak_stats_json(cut, length + 1) == length);
  CHECK(strcmp(cut, whole) == 0);
  CHECK(write(STDOUT_FILENO, whole, length) == (ssize_t)length);
  hak_free(block);
  return 0;
}
