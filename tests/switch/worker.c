/* A program whose profile is switched from outside.
 *
 *   worker steps           on standard input: "take N BYTES", "give" (all), "pairs N BYTES",
 *                          "fork" (this process waits for the child, which goes on), "thread"
 *                          (the next step is done by a new thread), "end"; each is answered by a
 *                          line
 *   worker threads N       N threads allocate and free, and look at what they wrote, until
 *                          standard input ends
 *   worker sleepers N      N threads allocate once, and again after each line */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS_MAX = 1 << 20, HELD = 300 };

static void *blocks[BLOCKS_MAX];
static size_t block_count;
static volatile int is_over;

static void fail(const char *what) {
  fprintf(stderr, "worker: %s\n", what);
  abort();
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void *do_step(void *line) {
  size_t count = 0, bytes = 0;
  if (sscanf(line, "take %zu %zu", &count, &bytes) == 2) {
    for (; count; count--) blocks[block_count++] = malloc(bytes);
  } else if (sscanf(line, "pairs %zu %zu", &count, &bytes) == 2) {
    for (; count; count--) free(malloc(bytes));
  } else if (strncmp(line, "give", 4) == 0) {
    while (block_count) free(blocks[--block_count]);
  }
  return NULL;
}

static void steps(void) {
  static char line[256];
  int on_thread = 0;
  puts("ready");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) && strncmp(line, "end", 3) != 0) {
    pthread_t thread;
    pid_t child = strncmp(line, "fork", 4) == 0 ? fork() : 0;
    if (child) {
      waitpid(child, NULL, 0);
      return;
    }
    if (on_thread && (pthread_create(&thread, NULL, do_step, line) || pthread_join(thread, NULL)))
      fail("no thread");
    if (!on_thread) do_step(line);
    on_thread = strncmp(line, "thread", 6) == 0;
    printf("%d\n", (int)getpid());
    fflush(stdout);
  }
}

/* ---- threads --------------------------------------------------------------------------------- */

struct held {
  unsigned char *block;
  size_t bytes;
};

static void check(const struct held *held, unsigned char mark) {
  size_t ends[] = {0, held->bytes / 2, held->bytes - 1};
  for (unsigned end = 0; end < 3; end++)
    if (held->block[ends[end]] != mark) fail("a block is not what it was");
}

static uint64_t next(uint64_t *random) {
  *random ^= *random << 13;
  *random ^= *random >> 7;
  return *random ^= *random << 17;
}

static void turn(struct held *held, uint64_t *random, unsigned char mark) {
  size_t bytes = 1 + next(random) % ((size_t)1 << (3 + next(random) % 15));
  if (next(random) % 4096 == 0) bytes <<= 6;
  if (held->block) check(held, mark);
  switch (next(random) % 4) {
    case 0: held->block = realloc(held->block, bytes); break;
    case 1:
      free(held->block);
      held->block = calloc(1, bytes);
      break;
    case 2:
      free(held->block);
      if (posix_memalign((void **)&held->block, 64, bytes)) fail("no memory");
      break;
    default: free(held->block); held->block = malloc(bytes);
  }
  if (!held->block) fail("no memory");
  held->bytes = bytes;
  held->block[0] = held->block[bytes / 2] = held->block[bytes - 1] = mark;
}

static void *work(void *number) {
  struct held held[HELD] = {{NULL, 0}};
  uint64_t random = (uintptr_t)number * 0x9E3779B97F4A7C15u;
  while (!is_over) turn(&held[next(&random) % HELD], &random, (unsigned char)(uintptr_t)number);
  for (unsigned index = 0; index < HELD; index++) free(held[index].block);
  return NULL;
}

static void *work_a_little(void *unused) {
  free(malloc(100));
  free(malloc(100));
  return unused;
}

/* When it is ready the first thread only waits: if it allocated yet, it might follow a switch, and
 * then no other. */
static void read_without_malloc(void) {
  static char room[BUFSIZ];
  setvbuf(stdin, room, _IOFBF, sizeof room);
}

static void threads(unsigned count, void *(*body)(void *)) {
  read_without_malloc();
  pthread_t *made = calloc(count, sizeof *made);
  for (uintptr_t index = 0; index < count; index++)
    if (pthread_create(&made[index], NULL, body, (void *)(index + 1))) fail("no thread");
  puts("ready");
  fflush(stdout);
  while (getchar() != EOF) {
  }
  is_over = 1;
  for (unsigned index = 0; index < count; index++) pthread_join(made[index], NULL);
  free(made);
}

/* ---- sleepers -------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static unsigned round_number, answers;

static void *sleep_and_work(void *unused) {
  unsigned seen = 0;
  for (;;) {
    work_a_little(NULL);
    pthread_mutex_lock(&lock);
    answers++;
    pthread_cond_signal(&done);
    while (round_number == seen) pthread_cond_wait(&news, &lock);
    seen = round_number;
    pthread_mutex_unlock(&lock);
  }
  return unused;
}

static void sleepers(unsigned count) {
  char line[16];
  read_without_malloc();
  for (unsigned index = 0; index < count; index++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleep_and_work, NULL)) fail("no thread");
  }
  do {
    pthread_mutex_lock(&lock);
    while (answers < count) pthread_cond_wait(&done, &lock);
    answers = 0;
    pthread_mutex_unlock(&lock);
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) exit(0);
    pthread_mutex_lock(&lock);
    round_number++;
    pthread_cond_broadcast(&news);
    pthread_mutex_unlock(&lock);
  } while (1);
}

int main(int argument_count, char **arguments) {
  unsigned count = argument_count > 2 ? (unsigned)atoi(arguments[2]) : 0;
  if (argument_count < 2) return 2;
  if (strcmp(arguments[1], "steps") == 0) steps();
  if (strcmp(arguments[1], "threads") == 0) threads(count, work);
  if (strcmp(arguments[1], "sleepers") == 0) sleepers(count);
  return 0;
}
