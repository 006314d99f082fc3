/* Doubly freed blocks are told of, with the call stack, while other threads load and unload
 * libraries, start threads and allocate: nobody waits for ever. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "misuse/hide.h"

static _Atomic int is_over;

static void *load(void *unused) {
  while (!is_over) {
    void *library = dlopen("libBrokenLocale.so.1", RTLD_NOW);
    if (library) dlclose(library);
  }
  return unused;
}

static void *allocate(void *unused) {
  while (!is_over)
    for (size_t size = 1; size < 100000; size = size * 2 + 1) free(hide(malloc(size)));
  return unused;
}

void *misuse(void *unused);
void *misuse(void *unused) {
  for (int round = 0; round < 100; round++) {
    void *block = malloc(64);
    free(hide(block));
    free(hide(block));
  }
  return unused;
}

int main(void) {
  pthread_t others[3], wrong[2];
  pthread_create(&others[0], NULL, load, NULL);
  pthread_create(&others[1], NULL, load, NULL);
  pthread_create(&others[2], NULL, allocate, NULL);
  for (int i = 0; i < 2; i++) pthread_create(&wrong[i], NULL, misuse, NULL);
  for (int i = 0; i < 2; i++) pthread_join(wrong[i], NULL);
  is_over = 1;
  for (int i = 0; i < 3; i++) pthread_join(others[i], NULL);
  return 0;
}
