/* lost: blocks that the program can still reach, each kind by other means, and blocks that it
 * cannot, each kind of a size of its own.  Prints "NAME SIZE COUNT" of the lost ones, then
 * "ready". */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

struct node {
  struct node *next, *previous;
  char text[]; /* up to the size that was asked for */
};

static void *made(size_t bytes) {
  void *block = malloc(bytes);
  if (!block) abort();
  return memset(block, 0, bytes);
}

void *volatile sink; /* so that the compiler removes nothing */

static struct node *list_of(size_t bytes, int count) {
  struct node *head = NULL;
  for (int i = 0; i < count; i++) {
    struct node *node = made(bytes);
    node->next = head;
    if (head) head->previous = node;
    head = node;
  }
  return head;
}

/* ---- reachable ---- */

struct node *volatile global;           /* a long list */
char *volatile inside;                  /* points into the middle of a block */
volatile uintptr_t tagged;              /* with a flag in its lowest bit */
void **volatile table;                  /* a Big block of pointers */
_Thread_local void *volatile of_thread; /* thread-local storage */
static pthread_barrier_t barrier;
void *volatile *volatile mapped; /* in a mapping of the program's own */

static void *thread(void *unused) {
  void *volatile on_stack = made(400);
  of_thread = made(440);
  pthread_barrier_wait(&barrier);
  for (;;) pause();
  return (void *)on_stack;
  (void)unused;
}

/* Only the kernel has the pointer. */
static void leave_with_kernel(void) {
  int queue = epoll_create1(0), event = eventfd(0, 0);
  struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = made(500)};
  if (queue < 0 || event < 0 || epoll_ctl(queue, EPOLL_CTL_ADD, event, &wanted)) abort();
}

__attribute__((noinline)) static void make_reachable(void) {
  global = list_of(56, 100000);
  inside = (char *)made(600) + 300;
  tagged = (uintptr_t)made(700) | 1;
  table = made(2 << 20);
  for (int i = 0; i < 1000; i++) table[i * 7] = made(800);
  mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) abort();
  mapped[7] = made(900);
  leave_with_kernel();
  pthread_t id;
  pthread_barrier_init(&barrier, NULL, 2);
  if (pthread_create(&id, NULL, thread, NULL)) abort();
  pthread_barrier_wait(&barrier);
}

/* ---- lost ---- */

enum { SINGLES = 500, LIST = 300, RINGS = 200, MIDS = 30, LARGES = 24, BIGS = 20, HELD = 50 };

__attribute__((noinline)) static void lose(void) {
  /* Its lower end stays as it is: what a stack held once keeps nothing. */
  void *volatile deep[8192];
  for (int i = 0; i < SINGLES; i++) sink = deep[i] = made(96);
  for (int i = 0; i < 10; i++) sink = list_of(160, LIST / 10);
  for (int i = 0; i < RINGS; i++) {
    struct node *one = made(224), *other = made(224);
    one->next = one->previous = other;
    other->next = other->previous = one;
    sink = one;
  }
  for (int i = 0; i < MIDS; i++) sink = made(5000);
  for (int i = 0; i < LARGES; i++) sink = made(100000);
  for (int i = 0; i < BIGS; i++) {
    char *big = malloc(3 << 20);
    if (!big) abort();
    big[0] = 1;
    sink = big;
  }
  void **holder = made(HELD * sizeof(void *));
  for (int i = 0; i < HELD; i++) holder[i] = made(320);
  free(holder);
  sink = NULL;
}

/* Nothing of the above stays in a vector register. */
static void wipe_registers(void) {
#ifdef __x86_64__
  __asm__ volatile(
      "pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1\n pxor %%xmm2, %%xmm2\n pxor %%xmm3, %%xmm3\n"
      "pxor %%xmm4, %%xmm4\n pxor %%xmm5, %%xmm5\n pxor %%xmm6, %%xmm6\n pxor %%xmm7, %%xmm7" ::
          : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
#endif
}

int main(void) {
  make_reachable();
  lose();
  wipe_registers();
  printf(
      "single 96 %d\nlist 160 %d\nring 224 %d\nmid 5120 %d\nlarge 100000 %d\nbig 0 %d\nheld 320 "
      "%d\nready\n",
      SINGLES, LIST, 2 * RINGS, MIDS, LARGES, BIGS, HELD);
  fflush(stdout);
  for (;;) pause();
}
