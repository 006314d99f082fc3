/* malloc_info: EINVAL, and nothing written, for options that do not exist; else XML, which
 * test_manners.py reads: with four threads' blocks, then without. */
#include "concurrency/threads.h"

enum { THREADS = 4, BLOCKS = 20000, MARK = 4711 };

static pthread_barrier_t barrier;

static void *body(void *unused) {
  struct link {
    struct link *next;
    long dummy[4];
  } *head = NULL;
  (void)unused;
  for (size_t i = 0; i < BLOCKS; i++) {
    struct link *link = MUST(malloc(sizeof *link));
    link->next = head;
    head = link;
  }
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  while (head) {
    struct link *next = head->next;
    free(head);
    head = next;
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  char *text = NULL;
  size_t text_bytes = 0;
  FILE *stream = open_memstream(&text, &text_bytes);
  errno = MARK;
  CHECK(malloc_info(1, stream) == EINVAL && malloc_info(-1, stream) == EINVAL && errno == MARK);
  CHECK(fclose(stream) == 0 && text_bytes == 0);
  free(text);
  CHECK(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
  for (size_t i = 0; i < THREADS; i++) threads[i] = thread_start(body, NULL);
  pthread_barrier_wait(&barrier);
  CHECK(malloc_info(0, stdout) == 0);
  puts("<!-- freed -->");
  pthread_barrier_wait(&barrier);
  for (size_t i = 0; i < THREADS; i++) thread_join(threads[i]);
  CHECK(malloc_info(0, stdout) == 0);
  return 0;
}
