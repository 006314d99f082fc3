/* hakmem-replay PLAN MODE IDLE_MS WRITTEN: does again, with threads, what a trace recorded, on the
 * malloc that is preloaded.
 *
 *   hakmem replay (launch/replaying.py) ── writes ──▶ PLAN ── mapped by ──▶ this program ── prints ──▶ figures
 *
 * Threads keep the recorded order by windows of some thousand events: one enters the next window
 * only when all have left the one before.  Within a window only the events of one block wait for
 * each other.  Window 0 makes the blocks that were live at the start, and is not measured.  All
 * tables are shared or file mappings, so anonymous memory (RssAnon) is that of the malloc. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, WHOLE_BYTES = 64 << 10, BAD_PLAN = 2, REFUSED = 3 };
enum kind { TAKE, FREE, RESIZE, FROM, KINDS };
enum mode { NO_MALLOC, AT_ONCE, IN_TIME };

/* A life has a slot for its birth, and another one for each resize: an event waits for the pointer
 * of the one before. */
struct op {
  uint64_t what; /* kind; from bit 8 log2 of the alignment, from 16 the size */
  uint32_t slot; /* the one that is filled, or, by FREE and by the FROM before a RESIZE, read */
  uint32_t window;
};

struct row {
  uint64_t first_op, op_count;
  uint32_t first_window, stays; /* 0: the thread ends after its last event */
};

struct plan {
  char magic[8];
  uint64_t op_count, slot_count;
  uint32_t thread_count, window_count;
  /* struct row rows[thread_count], by first_window, [0] the main thread's; struct op ops[op_count];
   * uint64_t starts_ns[window_count] */
};

struct worker {
  const struct op *next, *end;
  uint32_t first_window, stays;
  uint32_t from; /* the slot of the last FROM */
  uint64_t cpu_ns, waited_ns;
  pthread_t thread;
  char *scratch; /* in NO_MALLOC what is written instead of blocks */
  struct worker *next_ended;
};

static const char *OUTSIDE = "outside of its tables";
static _Atomic(char *) *slots;
static enum mode mode;
static size_t written_bytes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER, all_left = PTHREAD_COND_INITIALIZER;
static uint32_t open_window, inside; /* the threads that have not left open_window yet */
static struct worker *ended;

static void fail(int status, const char *sentence, const char *name) {
  dprintf(STDERR_FILENO, "hakmem-replay: %s %s\n", name, sentence);
  _exit(status);
}

static void *mapped(size_t bytes) {
  void *place = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (place == MAP_FAILED) fail(REFUSED, "to map", "no memory");
  return place;
}

static uint64_t now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The next number of a text.  sscanf and strtoul have names in new C libraries that the oldest
 * supported one lacks. */
static uint64_t number(const char **text) {
  uint64_t value = 0;
  while (**text == ' ') ++*text;
  while (**text >= '0' && **text <= '9') value = 10 * value + (uint64_t)(*(*text)++ - '0');
  return value;
}

static uint64_t anonymous_bytes(int statm) {
  char text[128] = "";
  const char *next = text;
  if (pread(statm, text, sizeof text - 1, 0) < 0)
    fail(REFUSED, "cannot be read", "/proc/self/statm");
  (void)number(&next); /* size */
  uint64_t resident = number(&next), shared = number(&next);
  return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void sleep_until(uint64_t ns) {
  struct timespec when = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) != 0) continue;
}

/* ---- one thread ---- */

/* The first `written_bytes` of a block: small ones are written whole; of larger ones each page is
 * touched. */
static void touch(struct worker *self, char *block, size_t size) {
  if (size > written_bytes) size = written_bytes;
  if (size <= WHOLE_BYTES) {
    memset(block, 1, size);
    return;
  }
  bool is_real = block != self->scratch;
  for (size_t i = 0; i < size; i += PAGE_BYTES) *(volatile char *)(block + (is_real ? i : 0)) = 1;
}

/* The event before may be another thread's, in this window: acquire pairs with the release that
 * run_op fills a slot with, so that it has written the block before this thread resizes or frees
 * it. */
static char *block_of(struct worker *self, uint32_t slot) {
  char *block = atomic_load_explicit(&slots[slot], memory_order_acquire);
  if (block != NULL) return block;
  uint64_t began_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
  while ((block = atomic_load_explicit(&slots[slot], memory_order_acquire)) == NULL) sched_yield();
  self->waited_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
  return block;
}

static char *made(struct worker *self, const struct op *op, size_t size) {
  unsigned log2_alignment = (unsigned)(op->what >> 8) & 63;
  char *before = (op->what & 0xff) == RESIZE ? block_of(self, self->from) : NULL;
  void *block = NULL;
  if (mode == NO_MALLOC) return self->scratch;
  if (before != NULL)
    block = realloc(before, size);
  else if (log2_alignment <= 4)
    block = malloc(size);
  else if (posix_memalign(&block, (size_t)1 << log2_alignment, size) != 0)
    block = NULL;
  if (block == NULL)
    fail(REFUSED, "a request that was served when it was recorded", "this malloc refused");
  return block;
}

static void run_op(struct worker *self, const struct op *op) {
  if ((op->what & 0xff) == FROM) {
    self->from = op->slot;
    return;
  }
  if ((op->what & 0xff) == FREE) {
    char *block = block_of(self, op->slot);
    if (mode != NO_MALLOC) free(block);
    return;
  }
  size_t size = op->what >> 16;
  char *block = made(self, op, size > 0 ? size : 1); /* realloc of 0 bytes may free */
  touch(self, block, size);
  atomic_store_explicit(&slots[op->slot], block, memory_order_release);
}

static void run_window(struct worker *self, uint32_t window) {
  uint64_t began_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
  self->waited_ns = 0;
  while (self->next < self->end && self->next->window == window) run_op(self, self->next++);
  self->cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns - self->waited_ns;
}

static void *work(void *argument) {
  struct worker *self = argument;
  while (self->next < self->end) {
    uint32_t window = self->next->window;
    pthread_mutex_lock(&lock);
    while (open_window < window) pthread_cond_wait(&opened, &lock);
    pthread_mutex_unlock(&lock);
    run_window(self, window);
    pthread_mutex_lock(&lock);
    if (self->next == self->end && !self->stays) {
      self->next_ended = ended;
      ended = self;
    }
    if (--inside == 0) pthread_cond_signal(&all_left);
    pthread_mutex_unlock(&lock);
  }
  while (self->stays) pause();
  return NULL;
}

/* ---- the main thread ---- */

static uint64_t bytes_of(const struct plan *plan) {
  return sizeof *plan + plan->window_count * sizeof(uint64_t) +
         plan->thread_count * sizeof(struct row) + plan->op_count * sizeof(struct op);
}

/* The plan, once it is known to be whole: no event leads out of its tables. */
static const struct plan *plan_of(const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  off_t end = lseek(file, 0, SEEK_END);
  if (end < 0) fail(BAD_PLAN, "cannot be read", path);
  size_t bytes = (size_t)end;
  const struct plan *plan = bytes < sizeof *plan
                                ? MAP_FAILED
                                : mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
  close(file);
  if (plan == MAP_FAILED || memcmp(plan->magic, "hkreplay", 8) != 0 || plan->op_count > bytes ||
      bytes_of(plan) != bytes)
    fail(BAD_PLAN, "is not a whole plan of hakmem replay", path);
  return plan;
}

/* Whether an event is in the tables, and after the one before it. */
static bool fits(const struct plan *plan, const struct row *row, const struct op *op,
                 const struct op *first) {
  uint32_t kind = op->what & 0xff;
  uint32_t least = op > first ? op[-1].window : row->first_window;
  return op->window >= least && op->window < plan->window_count && op->slot < plan->slot_count &&
         kind < KINDS && (kind != RESIZE || (op > first && (op[-1].what & 0xff) == FROM));
}

static const struct op *ops_of(const struct plan *plan) {
  const struct row *rows = (const void *)(plan + 1);
  return (const void *)(rows + plan->thread_count);
}

static struct worker *workers_of(const struct plan *plan, uint32_t *threads_in) {
  const struct row *rows = (const void *)(plan + 1);
  const struct op *ops = ops_of(plan);
  struct worker *workers = mapped(plan->thread_count * sizeof *workers);
  for (uint32_t i = 0; i < plan->thread_count; i++) {
    const struct op *first = ops + rows[i].first_op, *end = first + rows[i].op_count;
    bool is_in_order = i < 2 || rows[i].first_window >= rows[i - 1].first_window;
    if (rows[i].first_op + rows[i].op_count > plan->op_count || !is_in_order)
      fail(BAD_PLAN, OUTSIDE, "the plan has a thread");
    workers[i] = (struct worker){.next = first, .end = end, .stays = rows[i].stays};
    workers[i].first_window = rows[i].first_window;
    for (const struct op *op = first; op < end; op++) {
      if (!fits(plan, &rows[i], op, first)) fail(BAD_PLAN, OUTSIDE, "the plan has an event");
      if (i > 0 && (op == first || op->window != op[-1].window)) threads_in[op->window]++;
    }
  }
  return workers;
}

static uint32_t start_threads(struct worker *workers, uint32_t next, uint32_t count,
                              uint32_t window) {
  for (; next < count && workers[next].first_window == window; next++) {
    if (mode == NO_MALLOC) workers[next].scratch = mapped(WHOLE_BYTES);
    if (pthread_create(&workers[next].thread, NULL, work, &workers[next]) != 0)
      fail(REFUSED, "cannot be started", "a thread of the trace");
  }
  return next;
}

/* All threads' events of one window; threads that end there have ended. */
static void pass_window(struct worker *main_thread, uint32_t window, uint32_t others) {
  pthread_mutex_lock(&lock);
  open_window = window;
  inside = others;
  pthread_cond_broadcast(&opened);
  pthread_mutex_unlock(&lock);
  run_window(main_thread, window);
  pthread_mutex_lock(&lock);
  while (inside > 0) pthread_cond_wait(&all_left, &lock);
  struct worker *over = ended;
  ended = NULL;
  pthread_mutex_unlock(&lock);
  for (; over != NULL; over = over->next_ended) pthread_join(over->thread, NULL);
}

extern size_t hak_stats_json(char *buffer, size_t bytes) __attribute__((weak));

/* hakmem's own count of this name, where it is the malloc; else 0.  strstr is not in the list of
 * names that wheels may use. */
static uint64_t count_of(const char *name) {
  static char text[64 << 10];
  const char *at = text, *rest = name;
  if (hak_stats_json == NULL || hak_stats_json(text, sizeof text) >= sizeof text) return 0;
  for (; *at != 0 && *rest != 0; at++) rest = *at == *rest ? rest + 1 : name + (*at == *name);
  return number(&at);
}

static long faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

enum { REFILLS, REMOTE, COUNTS };
static const char *const counts[COUNTS] = {"\"refills\":", "\"remote_freed_blocks\":"};

struct figures {
  const uint64_t *curve;
  uint64_t late_ns, latest_ns; /* late_ns: of all windows */
  uint64_t counts[COUNTS];
  long faults;
};

/* The counts so far, added or taken away. */
static void note(struct figures *found, int sign) {
  found->faults += sign * faults();
  for (int i = 0; i < COUNTS; i++) found->counts[i] += (uint64_t)sign * count_of(counts[i]);
}

static void wait_for(struct figures *found, uint64_t ns) {
  sleep_until(ns);
  uint64_t late_ns = now_ns(CLOCK_MONOTONIC) - ns;
  found->late_ns += late_ns;
  if (late_ns > found->latest_ns) found->latest_ns = late_ns;
}

static void print_figures(const struct plan *plan, const struct worker *workers,
                          const struct figures *found) {
  uint64_t cpu_ns = 0, left = 0, timed = plan->window_count > 1 ? plan->window_count - 1 : 1;
  for (uint32_t i = 0; i < plan->thread_count; i++) {
    cpu_ns += workers[i].cpu_ns;
    left += (uint64_t)(workers[i].end - workers[i].next);
  }
  const uint64_t figures[] = {cpu_ns,
                              (uint64_t)found->faults,
                              found->curve[plan->window_count],
                              left,
                              found->late_ns / timed,
                              found->latest_ns,
                              found->counts[REFILLS],
                              found->counts[REMOTE]};
  for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
    dprintf(STDOUT_FILENO, "%llu\n", (unsigned long long)figures[i]);
  for (uint32_t window = 0; window < plan->window_count; window++)
    dprintf(STDOUT_FILENO, "%llu\n", (unsigned long long)found->curve[window]);
}

/* The memory of each file that is mapped now. */
static void print_smaps(void) {
  static char text[PAGE_BYTES];
  int file = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
  for (ssize_t at = 0, bytes; (bytes = pread(file, text, sizeof text, at)) > 0; at += bytes)
    dprintf(STDOUT_FILENO, "%.*s", (int)bytes, text);
}

int main(int argc, char **argv) {
  if (argc != 5)
    fail(BAD_PLAN, "is how it is called, by hakmem replay",
         "hakmem-replay PLAN MODE IDLE_MS WRITTEN");
  const struct plan *plan = plan_of(argv[1]);
  const char *mode_text = argv[2], *idle_text = argv[3], *written_text = argv[4];
  mode = (enum mode)number(&mode_text);
  written_bytes = number(&written_text);
  const uint64_t *starts_ns = (const void *)(ops_of(plan) + plan->op_count);
  uint32_t *threads_in = mapped(plan->window_count * sizeof *threads_in);
  uint64_t *curve = mapped((plan->window_count + 1) * sizeof *curve);
  slots = mapped(plan->slot_count * sizeof *slots);
  struct worker *workers = workers_of(plan, threads_in);
  int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  struct figures found = {.curve = curve};
  uint64_t began_ns = 0;
  if (mode == NO_MALLOC) workers[0].scratch = mapped(WHOLE_BYTES);
  uint32_t started = 1;
  for (uint32_t window = 0; window < plan->window_count; window++) {
    if (window == 1) {
      workers[0].cpu_ns = 0;
      note(&found, -1);
      began_ns = now_ns(CLOCK_MONOTONIC);
    }
    if (mode == IN_TIME && window > 0) wait_for(&found, began_ns + starts_ns[window]);
    started = start_threads(workers, started, plan->thread_count, window);
    pass_window(&workers[0], window, threads_in[window]);
    curve[window] = anonymous_bytes(statm);
  }
  note(&found, 1);
  if (mode != NO_MALLOC) sleep_until(now_ns(CLOCK_MONOTONIC) + number(&idle_text) * 1000000);
  curve[plan->window_count] = anonymous_bytes(statm);
  print_figures(plan, workers, &found);
  print_smaps();
  _exit(0); /* threads that lived at the trace's end do not end */
}
