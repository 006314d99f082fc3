// twice HOW BYTES: a block is freed twice with no other free of its class in between.  Ends by _exit, so that what is
// found is found at once; says on standard output when the block was handed out twice.
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "misuse/hide.h"

extern "C" {
void free_sized(void *, std::size_t) __attribute__((weak));
void free_aligned_sized(void *, std::size_t, std::size_t) __attribute__((weak));
void hak_free(void *) __attribute__((weak));
}

namespace {

std::size_t bytes;
using free_function = void (*)(void *);

// ---- the ways to free -------------------------------------------------------------------------------------

void by_free(void *block) { free(block); }
void by_realloc(void *block) { (void)!realloc(block, 0); }
void by_delete(void *block) { ::operator delete(block); }
void by_delete_array(void *block) { ::operator delete[](block); }
void by_nothrow_delete(void *block) { ::operator delete(block, std::nothrow); }
void by_sized_delete(void *block) { ::operator delete(block, bytes); }
void by_sized_delete_array(void *block) { ::operator delete[](block, bytes); }
void by_aligned_delete(void *block) { ::operator delete (block, std::align_val_t{16}); }
void by_sized_aligned_delete(void *block) { ::operator delete (block, bytes, std::align_val_t{1}); }
void by_free_sized(void *block) { free_sized ? free_sized(block, bytes) : free(block); }
void by_free_aligned_sized(void *block) {
  free_aligned_sized ? free_aligned_sized(block, 1, bytes) : free(block);
}
void by_hak_free(void *block) { hak_free ? hak_free(block) : free(block); }

void twice(free_function release, free_function again) {
  void *block = malloc(bytes);
  release(hide(block));
  again(hide(block));
}

// ---- other places than the top of the own magazine --------------------------------------------------------

enum { MANY = 1800 };
void *others[MANY];

void twice_after(unsigned count) {
  void *block = malloc(bytes);
  for (unsigned i = 0; i < count; i++) others[i] = malloc(bytes);
  for (unsigned i = 0; i < count; i++) free(others[i]);
  free(hide(block));
  free(hide(block));
}

void *free_blocks_and_twice(void *block) {
  for (unsigned i = 0; i < MANY && others[i]; i++) free(others[i]);
  free(hide(block));
  free(hide(block));
  _exit(0); /* before the end of the thread finds it */
}

/* The first of the others go home one by one, later ones fill a magazine. */
void twice_by_another_thread(unsigned count) {
  void *block = malloc(bytes);
  for (unsigned i = 0; i < count; i++) others[i] = malloc(bytes);
  pthread_t thread;
  pthread_create(&thread, nullptr, free_blocks_and_twice, block);
  pthread_join(thread, nullptr);
}

pthread_key_t key;

/* In the last round of destructors, when the heap is gone. */
void free_twice_late(void *block) {
  static int round;
  if (++round < 4)
    pthread_setspecific(key, block);
  else
    free_blocks_and_twice(block);
}

void *end_with(void *block) {
  free(hide(malloc(bytes)));
  pthread_setspecific(key, block);
  return nullptr;
}

void twice_without_heap() {
  pthread_t thread;
  pthread_key_create(&key, free_twice_late);
  pthread_create(&thread, nullptr, end_with, malloc(bytes));
  pthread_join(thread, nullptr);
}

/* The thread's caches fall idle, and a slow path of free finds them so: which of the many frees
 * that is, is not known from here. */
void twice_when_caches_are_emptied(unsigned count) {
  void *block = malloc(bytes);
  for (unsigned i = 0; i < count; i++) others[i] = malloc(bytes);
  usleep(30000);
  for (unsigned i = 0; i < count; i++) free(others[i]);
  usleep(30000);
  free(hide(block));
  free(hide(block));
}

// ---- with something in between ------------------------------------------------------------------------------

void with_another_class_between() {
  void *block = malloc(bytes), *other = malloc(bytes * 3 + 100);
  free(hide(block));
  free(other);
  free(hide(block));
}

/* The thread's first calls need no heap; a Large block does. */
void *free_twice_around_a_heap(void *) {
  void *block = malloc(bytes);
  free(hide(block));
  (void)!hide(malloc(200000));
  free(hide(block));
  _exit(0);
}

void with_a_heap_between() {
  pthread_t thread;
  pthread_create(&thread, nullptr, free_twice_around_a_heap, nullptr);
  pthread_join(thread, nullptr);
}

void with_churn_between() {
  void *block = malloc(bytes);
  free(hide(block));
  for (int i = 0; i < 1024; i++) free(hide(malloc(bytes)));
  free(hide(block));
}

/* Somebody else has got it: the free by its old holder goes unnoticed, that of its new one does
 * not. */
void of_its_new_holder() {
  void *block = malloc(bytes);
  free(hide(block));
  void *same = malloc(bytes);
  free(hide(block));
  free(hide(same));
}

void realloc_of_freed() {
  void *block = malloc(bytes);
  free(hide(block));
  (void)!realloc(hide(block), bytes + 1);
}

void usable_size_of_freed() {
  void *block = malloc(bytes);
  free(hide(block));
  (void)!malloc_usable_size(hide(block));
}

struct way {
  const char *name;
  free_function release, again;
};
const way ways[] = {
    {"free", by_free, by_free},
    {"realloc", by_realloc, by_realloc},
    {"free_realloc", by_free, by_realloc},
    {"delete", by_delete, by_delete},
    {"delete_array", by_delete_array, by_delete_array},
    {"nothrow_delete", by_nothrow_delete, by_nothrow_delete},
    {"aligned_delete", by_aligned_delete, by_aligned_delete},
    {"sized_delete", by_sized_delete, by_sized_delete},
    {"sized_delete_array", by_sized_delete_array, by_sized_delete_array},
    {"sized_aligned_delete", by_sized_aligned_delete, by_sized_aligned_delete},
    {"delete_sized_delete", by_delete, by_sized_delete},
    {"free_sized", by_free_sized, by_free_sized},
    {"free_aligned_sized", by_free_aligned_sized, by_free_aligned_sized},
    {"hak_free", by_hak_free, by_hak_free},
};

bool run(const char *how, unsigned count) {
  for (const way &each : ways)
    if (!strcmp(how, each.name)) return twice(each.release, each.again), true;
  if (!strcmp(how, "after")) return twice_after(count), true;
  if (!strcmp(how, "by_another_thread")) return twice_by_another_thread(count), true;
  if (!strcmp(how, "without_heap")) return twice_without_heap(), true;
  if (!strcmp(how, "when_caches_are_emptied")) return twice_when_caches_are_emptied(count), true;
  if (!strcmp(how, "a_heap_between")) return with_a_heap_between(), true;
  if (!strcmp(how, "another_class_between")) return with_another_class_between(), true;
  if (!strcmp(how, "churn_between")) return with_churn_between(), true;
  if (!strcmp(how, "of_its_new_holder")) return of_its_new_holder(), true;
  if (!strcmp(how, "realloc_of_freed")) return realloc_of_freed(), true;
  if (!strcmp(how, "usable_size_of_freed")) return usable_size_of_freed(), true;
  return false;
}

bool is_handed_out_twice() {
  void *blocks[MANY];
  for (unsigned i = 0; i < MANY; i++) {
    blocks[i] = malloc(bytes);
    for (unsigned j = 0; j < i; j++)
      if (blocks[i] == blocks[j]) return true;
  }
  return false;
}

}  // namespace

int main(int count, char **arguments) {
  if (count < 3) return 2;
  bytes = std::strtoul(arguments[2], nullptr, 0);
  if (!run(arguments[1], count > 3 ? (unsigned)std::strtoul(arguments[3], nullptr, 0) : 0))
    return 2;
  if (bytes < 100000 && is_handed_out_twice()) (void)!write(1, "handed out twice\n", 17);
  _exit(0);
}
