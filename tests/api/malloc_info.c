/* malloc_info writes XML to the stream it is given; test_reports.py parses it. */
#include "api/check.h"

int main(void) {
  void *block = MUST(malloc(1000));
  CHECK(malloc_info(1, stderr) != 0); /* no options exist */
  CHECK(malloc_info(0, stdout) == 0);
  free(block);
  return 0;
}
