/* hak_stats_print writes to the descriptor it is given; test_reports.py looks at the text.  A bad
 * descriptor does no harm. */
#include "api/check.h"
#include "hakmem/hakmem.h"

int main(void) {
  void *block = MUST(hak_malloc(1000));
  hak_stats_print(-1);
  hak_stats_print(STDOUT_FILENO);
  hak_free(block);
  return 0;
}
