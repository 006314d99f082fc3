/* 100,000 threads created and ended in a row: each uses its heap and leaves a block to be freed by
 * main, and resident memory stays flat. */
#include "api/sizes.h"
#include "api/stamp.h"
#include "concurrency/threads.h"
#include "memory/rss.h"

enum { THREADS = 100000, WARM_UP = 2000 };

static void *body(void *unused) {
  (void)unused;
  void *tiny = malloc(64), *mid = malloc(4000), *large = malloc(100 * KIB), *left = malloc(200);
  CHECK(tiny != NULL && mid != NULL && large != NULL && left != NULL);
  memset(tiny, 1, 64);
  memset(mid, 2, 4000);
  *(char *)large = 3;
  stamp_write(left, 200, 5);
  free(large);
  free(mid);
  free(tiny);
  return left;
}

int main(void) {
  size_t warm_bytes = 0;
  for (int i = 0; i < THREADS; i++) {
    void *left;
    CHECK(pthread_join(thread_start(body, NULL), &left) == 0);
    CHECK(stamp_holds(left, 200, 5));
    free(left);
    if (i == WARM_UP) warm_bytes = rss_bytes();
  }
  size_t end_bytes = rss_bytes();
  CHECK_MSG(end_bytes < warm_bytes + 2 * MIB, "from %zu to %zu", warm_bytes, end_bytes);
  return 0;
}
