/* heaps_in_use.c: threads whose malloc gives blocks of a heap of the program's own, in steps; then
 * the heap ends, and another of its name has its record, with more blocks than it had.  Arguments:
 * files for the library's own reports, as text and as JSON, while the threads use it. */
#include <fcntl.h>
#include <pthread.h>

#include "hakmem/hakmem.h"
#include "steps.h"

enum { USERS = 3, BLOCKS = 10, MORE_BLOCKS = 25, BLOCK_BYTES = 100 };

static hak_heap *tenant;
static pthread_barrier_t in_use;
static int leave[2];

static void *use(void *unused) {
  char word;
  if (!hak_heap_use(tenant, NULL)) _exit(2);
  pthread_barrier_wait(&in_use);
  if (read(leave[0], &word, 1) != 1) _exit(3);
  return unused;
}

static void fill(unsigned blocks) {
  tenant = hak_heap_new("tenant");
  for (unsigned block = 0; block < blocks; block++)
    if (!hak_heap_malloc(tenant, BLOCK_BYTES)) _exit(4);
}

static void join(pthread_t user) {
  if (pthread_join(user, NULL)) _exit(5);
}

static void report(const char *text, const char *json) {
  static char report[1 << 20];
  int as_text = open(text, O_WRONLY | O_CREAT, 0600),
      as_json = open(json, O_WRONLY | O_CREAT, 0600);
  hak_stats_print(as_text);
  size_t bytes = hak_stats_json(report, sizeof report);
  if (as_text < 0 || write(as_json, report, bytes) != (ssize_t)bytes) _exit(10);
}

int main(int count, char **arguments) {
  pthread_t users[USERS];
  hak_heap_malloc(hak_heap_new("quiet"), BLOCK_BYTES);
  hak_heap_set_name(hak_heap_of_thread(), "main loop");
  fill(BLOCKS);
  if (pipe(leave) || pthread_barrier_init(&in_use, NULL, USERS + 1)) _exit(6);
  for (unsigned user = 0; user < USERS; user++)
    if (pthread_create(&users[user], NULL, use, NULL)) _exit(7);
  pthread_barrier_wait(&in_use);
  if (count == 3) report(arguments[1], arguments[2]);
  step("used");
  if (hak_heap_destroy(tenant) || write(leave[1], "...", USERS) != USERS) _exit(8);
  for (unsigned user = 0; user < USERS; user++) join(users[user]);
  step("left");
  if (!hak_heap_destroy(tenant)) _exit(9);
  fill(MORE_BLOCKS);
  step("again");
  return 0;
}
