/* hakmem-walk TARGET [--blocks FILE]: walks the heaps of glibc's malloc in a process, or a core,
 * from outside.  README.md has the output.
 * hakmem-walk PID --stopped FILE: the same of a process that is stopped, in one walk.
 * hakmem-walk PID --pointers WORKER WORKERS: pointers.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output.h"
#include "pointers.h"
#include "walk.h"

/* Lists of cached chunks; a running program changes them, so what looks damaged is read again. */
static void find_caches(struct heap *heap, const struct candidates *candidates, struct marks *marks,
                        struct findings *findings) {
  caches_find(heap, candidates, marks, findings);
  for (unsigned round = 0; round < ROUNDS && findings->count && heap->target->pid; ++round) {
    struct findings again = {NULL, 0};
    sleep_ms(ROUND_MS);
    marks_clear(marks);
    caches_find(heap, candidates, marks, &again);
    findings_keep(findings, &again);
  }
}

/* Cached chunks look live where only the chain is known. */
static void name_cached(struct findings *findings, const struct marks *marks) {
  for (size_t i = 0; i < findings->count; ++i) {
    struct finding *finding = &findings->list[i];
    if (finding->before_state == IS_LIVE && mark_of(marks, finding->before) != NOT_CACHED)
      finding->before_state = IS_CACHED;
  }
}

/* A digit, as many workers as there may be. */
static unsigned digit_of(const char *word) { return (unsigned char)*word - (unsigned)'0'; }

/* A first walk finds the caches, and the second one counts. */
static void walk_twice(struct walk *walk, struct accounts *accounts, struct findings *suspicions) {
  struct heap *heap = walk->heap;
  struct candidates candidates = {NULL, 0, 0};
  struct links *links = links_new(heap, walk->findings);
  const struct wanted first = {.candidates = &candidates, .marks = accounts->marks, .links = links};
  walk_all(walk, &first);
  find_caches(heap, &candidates, accounts->marks, suspicions);
  free(candidates.chunks);
  const struct wanted second = {.accounts = accounts, .links = links, .suspicions = suspicions};
  walk_all(walk, &second);
  accounts_end(accounts);
  links_confirm(links, walk);
  free(links);
}

/* The blocks of a stopped process can be corrected after a single walk. */
static void walk_once(struct walk *walk, struct accounts *accounts, struct findings *suspicions) {
  struct candidates candidates = {NULL, 0, 0};
  const struct wanted all = {
      .candidates = &candidates, .marks = accounts->marks, .accounts = accounts};
  walk_all(walk, &all);
  find_caches(walk->heap, &candidates, accounts->marks, suspicions);
  free(candidates.chunks);
  accounts_mark(accounts, walk->heap);
  accounts_end(accounts);
}

int main(int argc, char **argv) {
  bool is_stopped = argc == 4 && strcmp(argv[2], "--stopped") == 0;
  bool has_blocks = is_stopped || (argc == 4 && strcmp(argv[2], "--blocks") == 0);
  bool has_workers = argc == 5 && strcmp(argv[2], "--pointers") == 0 && digit_of(argv[4]);
  if (argc != 2 && !has_blocks && !has_workers)
    refuse("usage: hakmem-walk PID|CORE [--blocks FILE]");
  uint64_t began_ns = now_ns();
  static struct target target;
  static struct heap heap;
  static struct marks marks;
  static struct findings findings, suspicions;
  static struct walk walk;
  static struct accounts accounts;
  target_open(&target, argv[1]);
  if (has_workers) {
    pointers_find(&target, digit_of(argv[3]), digit_of(argv[4]));
    return 0;
  }
  heap_find(&heap, &target);
  regions_find(&heap);
  mmapped_find(&heap);
  walk_init(&walk, &heap, &findings);
  marks.notes_links = caches_are_long(&heap);
  accounts_init(&accounts, &heap, &marks, has_blocks ? argv[3] : NULL);
  (is_stopped ? walk_once : walk_twice)(&walk, &accounts, &suspicions);
  for (size_t i = 0; i < suspicions.count; ++i) findings_add(&findings, &suspicions.list[i]);
  name_cached(&findings, &marks);
  for (size_t i = 0; i < heap.mmapped_count; ++i)
    heap.mmapped[i].is_cached = mark_of(&marks, heap.mmapped[i].chunk) != NOT_CACHED;
  output(&heap, accounts.sizes, &findings, began_ns);
  return findings.count ? BROKEN_HEAP : 0;
}
