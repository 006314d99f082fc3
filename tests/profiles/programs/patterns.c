/* Programs whose allocations a careless sampler would misjudge, and what they really do.
 *
 *   patterns NAME      on standard input: "round N" (N times the pattern), "give" (frees what
 *                      lasts), "fork" (the child goes on; its parent does when it has ended),
 *                      "end"; each is answered by a line, the truth
 *
 * First it prints where its sites are: a line "NAME BEGIN END" for each, then "ready".  The truth
 * is for each site: live blocks and bytes, and how many blocks and bytes were ever made there. */
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LASTING_MAX = 1 << 21, KIB = 1024, MIB = 1024 * KIB };

static void fail(const char *what) {
  fprintf(stderr, "patterns: %s\n", what);
  abort();
}

/* ---- sites ----------------------------------------------------------------------------------- */

enum { LASTING, TEMPORARY, THIRD, SITES };
static struct truth { atomic_long live_blocks, live_bytes, made_blocks, made_bytes; } truths[SITES];

static void count(int site, const void *block) {
  long bytes = (long)malloc_usable_size((void *)(uintptr_t)block);
  if (!block) fail("no memory");
  atomic_fetch_add(&truths[site].live_blocks, 1);
  atomic_fetch_add(&truths[site].live_bytes, bytes);
  atomic_fetch_add(&truths[site].made_blocks, 1);
  atomic_fetch_add(&truths[site].made_bytes, bytes);
}

static void drop(int site, void *block) {
  if (!block) return;
  atomic_fetch_sub(&truths[site].live_blocks, 1);
  atomic_fetch_sub(&truths[site].live_bytes, (long)malloc_usable_size(block));
  free(block);
}

/* A function in a section of its own, whose ends the linker tells. */
#define SITE_FUNCTION(name) __attribute__((noinline, section("site_" #name)))
#define SITE_ENDS(name) extern const char __start_site_##name[], __stop_site_##name[]
SITE_ENDS(lasting);
SITE_ENDS(temporary);
SITE_ENDS(third);

SITE_FUNCTION(lasting) void *make_lasting(size_t bytes) {
  void *block = malloc(bytes);
  count(LASTING, block);
  return block;
}
SITE_FUNCTION(temporary) void *make_temporary(size_t bytes) {
  void *block = malloc(bytes);
  count(TEMPORARY, block);
  return block;
}
SITE_FUNCTION(third) void *make_third(size_t bytes) {
  void *block = malloc(bytes);
  count(THIRD, block);
  return block;
}
SITE_FUNCTION(lasting) void *grow_lasting(void *block, size_t bytes) {
  block = realloc(block, bytes);
  count(LASTING, block);
  return block;
}
SITE_FUNCTION(temporary) void *grow_temporary(void *block, size_t bytes) {
  block = realloc(block, bytes);
  count(TEMPORARY, block);
  return block;
}

/* ---- what lasts until it is given back ------------------------------------------------------- */

static struct lasting {
  void *block;
  int site;
} lasting[LASTING_MAX];
static size_t lasting_count;

static void keep(int site, void *block) {
  if (lasting_count == LASTING_MAX) fail("too many blocks last");
  lasting[lasting_count++] = (struct lasting){block, site};
}

static void give_all(void) {
  while (lasting_count) {
    struct lasting *last = &lasting[--lasting_count];
    drop(last->site, last->block);
  }
}

static uint64_t random_state = 7;
static size_t random_below(size_t bound) {
  random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (size_t)(random_state >> 33) % bound;
}

/* ---- the patterns ---------------------------------------------------------------------------- */

/* A block that lasts and one that does not, of one class, in three orders. */
static void temporary_first(size_t times) {
  for (; times; times--) {
    drop(TEMPORARY, make_temporary(64));
    keep(LASTING, make_lasting(64));
  }
}

static void lasting_first(size_t times) {
  for (; times; times--) {
    keep(LASTING, make_lasting(64));
    drop(TEMPORARY, make_temporary(64));
  }
}

static void held_between(size_t times) {
  for (; times; times--) {
    void *held = make_temporary(64);
    keep(LASTING, make_lasting(64));
    drop(TEMPORARY, held);
  }
}

/* What a realloc makes lives in place of what it was given; where that stays what it is, nothing
 * was made. */
static void chain(size_t first, size_t last, int is_lasting) {
  int site = is_lasting ? LASTING : TEMPORARY;
  void *block = is_lasting ? make_lasting(first) : make_temporary(first);
  for (size_t bytes = first + first / 2; bytes < last; bytes += bytes / 2) {
    long before = (long)malloc_usable_size(block);
    if ((size_t)before >= bytes) continue;
    atomic_fetch_sub(&truths[site].live_blocks, 1);
    atomic_fetch_sub(&truths[site].live_bytes, before);
    block = is_lasting ? grow_lasting(block, bytes) : grow_temporary(block, bytes);
  }
  if (is_lasting)
    keep(site, block);
  else
    drop(site, block);
}

static void small_chains(size_t times) {
  for (; times; times--) chain(16, (size_t)64 << random_below(9), times % 4 == 0);
}
static void large_chains(size_t times) {
  for (; times; times--) chain(24 * KIB, (size_t)(64 * KIB) << random_below(6), times % 8 == 0);
}

/* R is 4096. */
static void around_the_period(size_t times) {
  static const size_t sizes[] = {512, 2048, 4000, 4096, 4200, 8192, 32768};
  for (; times; times--) {
    size_t bytes = sizes[random_below(sizeof sizes / sizeof *sizes)];
    drop(TEMPORARY, make_temporary(sizes[random_below(sizeof sizes / sizeof *sizes)]));
    if (times % 4 == 0 && bytes <= 4200) keep(LASTING, make_lasting(bytes));
    if (times % 64 == 0) keep(THIRD, make_third(bytes));
  }
}

/* R is 1024, as 16 blocks are: who samples each 1024th byte samples one site, or another. */
static void resonance(size_t times) {
  for (; times; times--) {
    for (unsigned block = 0; block < 14; block++) drop(TEMPORARY, make_temporary(64));
    drop(THIRD, make_third(64));
    keep(LASTING, make_lasting(64));
  }
}

/* As many bytes of 16 as of a mebibyte. */
static void tiny_beside_huge(size_t times) {
  for (; times; times--) {
    for (unsigned block = 0; block < MIB / 16; block++)
      if (block % 4)
        drop(TEMPORARY, make_temporary(16));
      else
        keep(LASTING, make_lasting(16));
    drop(THIRD, make_third(MIB));
  }
}

/* Quiet, then much at once, by another site; R is changed between the rounds. */
static void bursts(size_t times) {
  size_t quiet = times;
  for (; quiet; quiet--) drop(TEMPORARY, make_temporary(200));
  for (size_t block = 0; block < times / 2; block++) keep(LASTING, make_lasting(200));
  for (size_t block = 0; block < times / 20; block++) keep(THIRD, make_third(2000));
}

/* ---- threads --------------------------------------------------------------------------------- */

static pthread_t start(void *(*body)(void *), void *argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, body, argument)) fail("no thread");
  return thread;
}

/* Blocks on their way to a thread that only frees. */
enum { RING = 1024 };
static void *_Atomic ring[RING];

static void *free_only(void *times) {
  for (size_t turn = 0; turn < (uintptr_t)times; turn++) {
    void *block;
    while (!(block = atomic_exchange(&ring[turn % RING], NULL))) sched_yield();
    drop(TEMPORARY, block);
  }
  return NULL;
}

static void *give_all_here(void *unused) {
  give_all();
  return unused;
}

static void freed_by_others(size_t times) {
  pthread_t other = start(free_only, (void *)(uintptr_t)times);
  for (size_t turn = 0; turn < times; turn++) {
    void *block = make_temporary(64);
    while (atomic_load(&ring[turn % RING])) sched_yield();
    atomic_store(&ring[turn % RING], block);
    keep(LASTING, make_lasting(64));
  }
  pthread_join(other, NULL);
}

/* Less than R each, and then they end. */
static void *live_shortly(void *unused) {
  keep(LASTING, make_lasting(200));
  for (unsigned block = 0; block < 10; block++) drop(TEMPORARY, make_temporary(200));
  keep(THIRD, make_third(200));
  return unused;
}
static void threads_that_end(size_t times) {
  for (; times; times--) pthread_join(start(live_shortly, NULL), NULL);
}

static void forks(size_t times) { temporary_first(times); }

/* ---- the program ----------------------------------------------------------------------------- */

static const struct pattern {
  const char *name;
  void (*run)(size_t times);
} patterns[] = {
    {"temporary first", temporary_first},
    {"lasting first", lasting_first},
    {"held between", held_between},
    {"small chains", small_chains},
    {"large chains", large_chains},
    {"around the period", around_the_period},
    {"resonance", resonance},
    {"tiny beside huge", tiny_beside_huge},
    {"bursts", bursts},
    {"freed by others", freed_by_others},
    {"threads that end", threads_that_end},
    {"forks", forks},
};

static const struct pattern *pattern_of(const char *name) {
  for (size_t at = 0; at < sizeof patterns / sizeof *patterns; at++)
    if (strcmp(patterns[at].name, name) == 0) return &patterns[at];
  fail("no such pattern");
  return NULL;
}

static void tell_truth(void) {
  printf("%d", (int)getpid());
  for (int site = 0; site < SITES; site++) {
    const struct truth *truth = &truths[site];
    printf(" %ld %ld %ld %ld", atomic_load(&truth->live_blocks), atomic_load(&truth->live_bytes),
           atomic_load(&truth->made_blocks), atomic_load(&truth->made_bytes));
  }
  puts("");
  fflush(stdout);
}

/* True in a child, or when it has ended. */
static void fork_and_wait(void) {
  pid_t child = fork();
  if (child > 0 && waitpid(child, NULL, 0) != child) fail("no child");
}

static void obey(const struct pattern *pattern, const char *line) {
  size_t times;
  if (sscanf(line, "round %zu", &times) == 1) pattern->run(times);
  if (strncmp(line, "fork", 4) == 0) fork_and_wait();
  if (strncmp(line, "give", 4) == 0 && pattern->run == freed_by_others)
    pthread_join(start(give_all_here, NULL), NULL);
  else if (strncmp(line, "give", 4) == 0)
    give_all();
}

int main(int argument_count, char **arguments) {
  static char line[256];
  if (argument_count != 2) return 2;
  const struct pattern *pattern = pattern_of(arguments[1]);
  printf("lasting %p %p\n", (const void *)__start_site_lasting, (const void *)__stop_site_lasting);
  printf("temporary %p %p\n", (const void *)__start_site_temporary,
         (const void *)__stop_site_temporary);
  printf("third %p %p\n", (const void *)__start_site_third, (const void *)__stop_site_third);
  puts("ready");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) && strncmp(line, "end", 3) != 0) {
    obey(pattern, line);
    tell_truth();
  }
  return 0;
}
