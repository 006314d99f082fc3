/* hakmem-walk TARGET [--blocks FILE]: walks the heaps of glibc's malloc in a process, or a core,
 * from outside.  README.md has the output.
 * hakmem-walk PID --pointers WORKER WORKERS: pointers.h. */
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

int main(int argc, char **argv) {
  bool has_blocks = argc == 4 && strcmp(argv[2], "--blocks") == 0;
  bool has_workers = argc == 5 && strcmp(argv[2], "--pointers") == 0 && digit_of(argv[4]);
  if (argc != 2 && !has_blocks && !has_workers)
    refuse("usage: hakmem-walk PID|CORE [--blocks FILE]");
  uint64_t began_ns = now_ns();
  static struct target target;
  static struct heap heap;
  static struct marks marks;
  static struct candidates candidates;
  static struct findings findings, suspicions;
  static struct walk walk;
  static struct accounts accounts;
  static struct links *links;
  target_open(&target, argv[1]);
  if (has_workers) {
    pointers_find(&target, digit_of(argv[3]), digit_of(argv[4]));
    return 0;
  }
  heap_find(&heap, &target);
  regions_find(&heap);
  mmapped_find(&heap);
  walk_init(&walk, &heap, &findings);
  links = links_new(&heap, &findings);
  marks.notes_links = caches_are_long(&heap);
  walk_candidates(&walk, &candidates, &marks, links);
  find_caches(&heap, &candidates, &marks, &suspicions);
  accounts_init(&accounts, &heap, &marks, has_blocks ? argv[3] : NULL);
  walk_accounts(&walk, &accounts, links, &suspicions);
  accounts_end(&accounts);
  links_confirm(links, &walk);
  for (size_t i = 0; i < suspicions.count; ++i) findings_add(&findings, &suspicions.list[i]);
  name_cached(&findings, &marks);
  for (size_t i = 0; i < heap.mmapped_count; ++i)
    heap.mmapped[i].is_cached = mark_of(&marks, heap.mmapped[i].chunk) != NOT_CACHED;
  output(&heap, accounts.sizes, &findings, began_ns);
  return findings.count ? BROKEN_HEAP : 0;
}
