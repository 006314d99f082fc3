/* shadow THREADS BLOCKS [foreign|blocked|busy|small|shuffled]: has a heap of every kind and knows
 * the truth about it.  Its break is moved by others, too (foreign), cannot be moved (blocked), its
 * threads go on (busy), or all blocks are small, and freed in no order (shuffled).  Commands
 * on standard input, a line of JSON for each: "i" malloc's own figures; "t" malloc_trim(0), and resident
 * memory before and after. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct mallinfo2 mallinfo2(void) __attribute__((weak)); /* since 2.33 */

static unsigned thread_count, block_count;
static pthread_barrier_t ready;
static const char *mode = "";

static int is(const char *name) { return strcmp(mode, name) == 0; }

static void *fill(void *number) {
  unsigned seed = (unsigned)(uintptr_t)number * 7919 + 1;
  char **blocks = malloc(block_count * sizeof *blocks);
  if (blocks == NULL) abort();
  for (unsigned i = 0; i < block_count; ++i) {
    seed = seed * 1664525 + 1013904223;
    unsigned kind = seed >> 8 & 255;
    size_t size = kind < 230 ? seed >> 20 & 255 : kind < 250 ? seed >> 16 : seed >> 12 & 262143;
    if (is("small") || is("shuffled")) size &= 255;
    if (number == NULL && is("foreign") && i % 1000 == 500) sbrk(1000 + i);
    blocks[i] = memset(malloc(size), 1, size);
  }
  for (unsigned i = 0; i < block_count; ++i) {
    seed = seed * 1664525 + 1013904223;
    unsigned place = is("shuffled") ? (unsigned)((uint64_t)i * 1000003 % block_count) : i;
    if ((seed >> 16) % 100 < 40 || i / 1000 % 4 == 1) free(blocks[place]);
  }
  if (number == NULL) return NULL;
  pthread_barrier_wait(&ready);
  while (!is("busy")) pause();
  for (unsigned i = 0; i < block_count; ++i) blocks[i] = NULL;
  for (;;) {
    seed = seed * 1664525 + 1013904223;
    unsigned place = (seed >> 8) % block_count, kind = seed >> 24;
    size_t size = (kind < 230 ? seed >> 20 & 255 : kind < 250 ? seed >> 18 : seed >> 14) + 16;
    free(blocks[place]);
    blocks[place] = kind & 1 ? NULL : memset(malloc(size), 1, size);
  }
}

static long resident_kib(void) {
  char text[4096] = "";
  int file = open("/proc/self/status", O_RDONLY);
  if (read(file, text, sizeof text - 1) < 0) abort();
  close(file);
  return atol(strstr(text, "RssAnon:") + 8);
}

static int info(char *line, size_t room) {
  if (mallinfo2 == NULL) {
    struct mallinfo old = mallinfo();
    return snprintf(line, room,
                    "{\"used\": %d, \"free\": %d, \"top\": %d, \"fast\": %d, \"mmapped\": %d}\n",
                    old.uordblks, old.fordblks, old.keepcost, old.fsmblks, old.hblkhd);
  }
  struct mallinfo2 now = mallinfo2();
  return snprintf(line, room,
                  "{\"used\": %zu, \"free\": %zu, \"top\": %zu, \"fast\": %zu, \"mmapped\": %zu}\n",
                  now.uordblks, now.fordblks, now.keepcost, now.fsmblks, now.hblkhd);
}

int main(int argc, char **argv) {
  static void *mappings[24];
  char command, line[256];
  if (argc < 3) return 2;
  thread_count = (unsigned)atoi(argv[1]), block_count = (unsigned)atoi(argv[2]);
  if (argc > 3) mode = argv[3];
  if (is("blocked")) {
    void *end = (void *)(((uintptr_t)sbrk(0) + 4095 + 200000) & ~(uintptr_t)4095);
    if (mmap(end, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != end) return 4;
  }
  pthread_barrier_init(&ready, NULL, thread_count + 1);
  fill(NULL);
  for (unsigned i = 0; i < thread_count; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, fill, (void *)(uintptr_t)(i + 1));
  }
  pthread_barrier_wait(&ready);
  for (unsigned i = 0; i < 20; ++i)
    mappings[i] = malloc(140000 + i * 20000); /* the kernel merges some */
  for (unsigned i = 0; i < 4; ++i)
    if (posix_memalign(&mappings[20 + i], (size_t)64 << 5 * i, 500000)) return 3;
  free(mappings[7]);
  while (read(STDIN_FILENO, &command, 1) == 1) {
    int length = 0;
    if (command == 'i') length = info(line, sizeof line);
    if (command == 't') {
      long before = resident_kib();
      malloc_trim(0);
      length = snprintf(line, sizeof line, "{\"before\": %ld, \"after\": %ld}\n", before,
                        resident_kib());
    }
    if (write(STDOUT_FILENO, line, (size_t)length) != length) return 1;
  }
  return 0;
}
