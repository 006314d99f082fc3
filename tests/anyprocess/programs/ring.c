/* ring: four threads pass 40 blocks on for ever, in nodes that are allocated for it and freed.
 * Nothing is lost at any moment, but each block's only pointer always moves. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 4, BLOCKS = 40, BLOCK_BYTES = 600 };

struct node {
  struct node *next;
  char *block;
};

static struct queue {
  struct node *first;
  pthread_mutex_t lock;
} queues[THREADS];

static void put(struct queue *queue, char *block) {
  struct node *node = malloc(sizeof *node);
  node->block = block;
  pthread_mutex_lock(&queue->lock);
  node->next = queue->first;
  queue->first = node;
  pthread_mutex_unlock(&queue->lock);
}

static void *pass_on(void *word) {
  struct queue *queue = word, *next = queue + 1 < queues + THREADS ? queue + 1 : queues;
  for (;;) {
    pthread_mutex_lock(&queue->lock);
    struct node *node = queue->first;
    if (node) queue->first = node->next;
    pthread_mutex_unlock(&queue->lock);
    if (node) {
      char *block = node->block;
      free(node);
      ++block[BLOCK_BYTES - 1];
      put(next, block);
    }
    usleep(20);
  }
  return NULL;
}

int main(void) {
  pthread_t thread;
  for (int i = 0; i < THREADS; ++i) pthread_mutex_init(&queues[i].lock, NULL);
  for (int i = 0; i < BLOCKS; ++i) put(&queues[i % THREADS], calloc(1, BLOCK_BYTES));
  for (int i = 0; i < THREADS; ++i) pthread_create(&thread, NULL, pass_on, &queues[i]);
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
