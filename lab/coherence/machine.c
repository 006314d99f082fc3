/* machine.c: see coherence.h. */
#undef _FORTIFY_SOURCE /* a checked longjmp refuses to go to another stack */
#include <link.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "coherence.h"

enum {
  STACK_BYTES = 256 << 10,
  TLS_MAX = 1024,
  LINES_MAX = 1 << 23,
  SITES_MAX = 1 << 14,
  SLACK_NS = 20,
  HOLD_NS = 20,
  WAIT_NS = 10000,
  NO_CORE = -1
};
enum { WORDS = CORES_MAX / 64 };

unsigned core_count;
static unsigned
    wanted; /* of each core: calls until all are warm; then operations, of which a half more are not measured */
static uint64_t operations, warm_at, started_at;
static bool is_measuring;

/* ---- cores ----------------------------------------------------------------------------------- */

static struct core {
  unsigned calls; /* of malloc and free, until the first half is over */
  uint32_t thread_id;
  bool is_started;
  jmp_buf where;
  ucontext_t start;
  char tls[TLS_MAX];
} cores[CORES_MAX];
static uint64_t clocks[CORES_MAX];
static unsigned current;
static uint64_t switch_after; /* the running core's clock may be ahead of the others by this */
static char *stacks, *tls_block, fresh_tls[TLS_MAX];
static size_t tls_bytes;
static bool is_running;
static const struct load *load;

unsigned running_core(void) { return current; }
uint64_t clock_now(void) { return clocks[current]; }
uint32_t thread_id(void) { return cores[current].thread_id; }

static void run_core(void) {
  load->body(current);
  abort();
}

static unsigned lowest_core(void) {
  unsigned lowest = 0;
  uint64_t next = UINT64_MAX - SLACK_NS;
  for (unsigned i = 1; i < core_count; i++) {
    if (clocks[i] >= next) continue;
    next = clocks[i];
    if (next < clocks[lowest]) next = clocks[lowest], lowest = i;
  }
  switch_after = next + SLACK_NS;
  return lowest;
}

static void resume(void) {
  struct core *core = &cores[current];
  if (core->is_started) _longjmp(core->where, 1);
  core->is_started = true;
  setcontext(&core->start);
}

static void switch_to_lowest(void) {
  unsigned before = current;
  current = lowest_core();
  if (current == before) return;
  memcpy(cores[before].tls, tls_block, tls_bytes);
  memcpy(tls_block, cores[current].tls, tls_bytes);
  if (!_setjmp(cores[before].where)) resume();
}

void pass_time(uint64_t ns) {
  if (!is_running) return;
  clocks[current] += ns;
  if (clocks[current] > switch_after) switch_to_lowest();
}

void coherence_pause(void) { pass_time(COST_PAUSE); }

void begin_thread(void) {
  static uint32_t last_id;
  cores[current].thread_id = ++last_id;
  memcpy(tls_block, fresh_tls, tls_bytes);
}

static int find_tls(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  for (unsigned i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_TLS)
      tls_block = info->dlpi_tls_data, tls_bytes = info->dlpi_phdr[i].p_memsz;
  return 1; /* the program itself comes first */
}

/* ---- lines ----------------------------------------------------------------------------------- */

static struct line {
  uintptr_t number;  /* address / LINE_BYTES */
  const void *block; /* payload: the block that was touched last */
  uint64_t holders[WORDS], writers[WORDS];
  uint64_t busy_until, granted, busy, writes, transfers[2]; /* ns; in a socket, across */
  const void *writer;  /* the place that took it last, to write */
  int16_t owner, last; /* the core that may write it, or NO_CORE; that got it last */
  uint8_t purpose;
  bool is_read_next; /* the last that waits is a read */
} * lines;

static struct site {
  const void *place;
  uint64_t transfers;
} sites[SITES_MAX];

static uint64_t totals[PURPOSES][2], payload_of_another_block;

static struct line *line_of(uintptr_t number) {
  size_t hash = number * UINT64_C(0x9E3779B97F4A7C15) >> 41 & (LINES_MAX - 1);
  for (unsigned tried = 0; tried < LINES_MAX / 2; tried++, hash = (hash + 1) & (LINES_MAX - 1)) {
    if (lines[hash].number == number) return &lines[hash];
    if (lines[hash].number) continue;
    lines[hash].number = number;
    lines[hash].owner = NO_CORE;
    return &lines[hash];
  }
  abort();
}

static void count_site(const void *place) {
  size_t hash = (uintptr_t)place * UINT64_C(0x9E3779B97F4A7C15) >> 50;
  while (sites[hash].place && sites[hash].place != place) hash = (hash + 1) % SITES_MAX;
  sites[hash].place = place;
  sites[hash].transfers++;
}

/* Whether other cores hold the line: in a socket other than this core's, in this one. */
static bool find_others(const struct line *line, bool *is_far, bool *is_near) {
  *is_far = *is_near = false;
  for (unsigned word = 0; word < WORDS; word++)
    for (uint64_t bits = line->holders[word]; bits; bits &= bits - 1) {
      unsigned core = word * 64 + (unsigned)__builtin_ctzll(bits);
      if (core != current)
        *(core / CORES_IN_SOCKET == current / CORES_IN_SOCKET ? is_near : is_far) = true;
    }
  return *is_far || *is_near;
}

/* One transfer of a line comes after the other, in the order of the requests; reads that wait
 * together get it together. A core keeps a line for a moment: its write just after its read goes
 * before the others. */
static void wait_for_turn(struct line *line, bool is_write) {
  uint64_t now = clocks[current], begin = line->busy_until > now ? line->busy_until : now;
  if (line->last == (int)current && now <= line->granted + HOLD_NS) return;
  if (is_write || !line->is_read_next || begin == now) {
    line->busy_until = begin + COST_IN_SOCKET;
    line->is_read_next = !is_write;
  } else {
    begin -= COST_IN_SOCKET;
  }
  if (begin > now) pass_time(begin - now);
}

static void transfer(struct line *line, bool is_far, const void *block, bool is_write,
                     const void *place) {
  uint64_t cost = is_far ? COST_CROSS_SOCKET : COST_IN_SOCKET;
  line->granted = clocks[current] += cost;
  line->last = (int16_t)current;
  if (line->busy_until < line->granted) line->busy_until = line->granted;
  if (is_write) line->writer = place;
  if (!is_measuring) return;
  line->transfers[is_far]++;
  if (is_write || line->owner != NO_CORE) line->busy += cost;
  totals[line->purpose][is_far]++;
  payload_of_another_block += line->purpose == OF_PAYLOAD && line->block != block;
  if (line->purpose == OF_ALLOCATOR) count_site(place);
}

static bool has_right(const struct line *line, bool is_write) {
  return line->owner == (int)current ||
         (!is_write && line->holders[current / 64] >> current % 64 & 1);
}

static void take_line(struct line *line, const void *block, bool is_write, const void *place) {
  bool is_far, is_near;
  if (find_others(line, &is_far, &is_near)) wait_for_turn(line, is_write);
  if (has_right(line, is_write)) return;
  bool is_shared = find_others(line, &is_far, &is_near);
  if (is_shared)
    transfer(line, is_write ? is_far : !is_near, block, is_write, place);
  else
    clocks[current] += COST_MEMORY;
  if (is_write) memset(line->holders, 0, sizeof line->holders);
  line->owner = is_write || !is_shared ? (int16_t)current : NO_CORE;
  line->holders[current / 64] |= UINT64_C(1) << current % 64;
}

static void access_line(struct line *line, const void *block, bool is_write, const void *place) {
  line->purpose = block ? OF_PAYLOAD : OF_ALLOCATOR;
  if (has_right(line, is_write))
    clocks[current] += COST_HIT;
  else
    take_line(line, block, is_write, place);
  line->block = block;
  if (!is_write || !is_measuring) return;
  line->writes++;
  line->writers[current / 64] |= UINT64_C(1) << current % 64;
}

void access_memory(const void *address, size_t bytes, bool is_write, const void *block,
                   const void *place) {
  uintptr_t first = (uintptr_t)address / LINE_BYTES,
            last = ((uintptr_t)address + bytes - 1) / LINE_BYTES;
  if (!is_running || (size_t)((const char *)address - tls_block) < tls_bytes ||
      (size_t)((const char *)address - stacks) < (size_t)CORES_MAX * STACK_BYTES)
    return;
  /* Before the access, which follows at once: no other core comes between. */
  pass_time(0);
  for (; first <= last; first++) access_line(line_of(first), block, is_write, place);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void print_run(void) {
  is_running = false;
  printf("run\t%lu\t%lu\t%lu\t%lu\t%lu\t%lu\t%lu\t%lu\n", operations, warm_at,
         clock_now() - started_at, totals[0][0], totals[0][1], totals[1][0], totals[1][1],
         payload_of_another_block);
  for (struct line *line = lines; line < lines + LINES_MAX; line++) {
    unsigned writers = 0;
    for (unsigned word = 0; word < WORDS; word++)
      writers += (unsigned)__builtin_popcountll(line->writers[word]);
    if (line->purpose == OF_ALLOCATOR &&
        (line->transfers[0] + line->transfers[1] || line->writes) && writers > 1)
      printf("line\t%lx\t%lu\t%lu\t%lu\t%lu\t%u\t%d\t%lx\n", line->number * LINE_BYTES,
             line->transfers[0], line->transfers[1], line->busy, line->writes, writers,
             is_of_a_thread(line->number * LINE_BYTES), (uintptr_t)line->writer);
  }
  for (struct site *site = sites; site < sites + SITES_MAX; site++)
    if (site->place) printf("site\t%lx\t%lu\n", (uintptr_t)site->place, site->transfers);
}

static void begin_to_measure(void) {
  for (struct line *line = lines; line < lines + LINES_MAX; line++) {
    if (!line->number) continue;
    line->busy = line->writes = line->transfers[0] = line->transfers[1] = 0;
    memset(line->writers, 0, sizeof line->writers);
  }
  started_at = clock_now();
  is_measuring = true;
}

static unsigned warm_cores;

/* Threads that nothing else holds back wait for each other: those that are the last to start would
 * make the others run on for long. */
void count_call(void) {
  unsigned *calls = &cores[current].calls;
  if (warm_cores == core_count || ++*calls < wanted) return;
  warm_cores += *calls == wanted;
  if (warm_cores == core_count) warm_at = clock_now();
  while (load->runs_freely && warm_cores < core_count) pass_time(WAIT_NS);
}

void count_operation(void) {
  if (warm_cores < core_count) return;
  uint64_t of_all = ++operations, each = (uint64_t)wanted * core_count;
  if (of_all == each / 2) begin_to_measure();
  if (of_all < each + each / 2) return;
  operations = each;
  print_run();
  fflush(stdout);
  _Exit(0);
}

int main(int count, char **arguments) {
  for (load = loads; load->name && (count < 4 || strcmp(load->name, arguments[1]) != 0); load++) {
  }
  core_count = count < 4 ? 0 : (unsigned)atoi(arguments[2]);
  if (!load->name || !core_count || core_count > CORES_MAX || atoi(arguments[3]) < 1) {
    fprintf(stderr,
            "usage: coherence LOAD THREADS OPERATIONS (of each thread); at most %d threads; loads:",
            CORES_MAX);
    for (load = loads; load->name; load++) fprintf(stderr, " %s", load->name);
    fprintf(stderr, "\n");
    return 2;
  }
  wanted = (unsigned)atoi(arguments[3]);
  dl_iterate_phdr(find_tls, NULL);
  if (tls_bytes > TLS_MAX) abort();
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  stacks = mmap(NULL, (size_t)CORES_MAX * STACK_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
  lines = mmap(NULL, LINES_MAX * sizeof *lines, PROT_READ | PROT_WRITE, flags, -1, 0);
  memcpy(fresh_tls, tls_block, tls_bytes);
  for (current = core_count; current--;) {
    struct core *core = &cores[current];
    clocks[current] = current * COST_NEXT_THREAD;
    begin_thread();
    memcpy(core->tls, fresh_tls, tls_bytes);
    getcontext(&core->start);
    core->start.uc_stack.ss_sp = stacks + (size_t)current * STACK_BYTES;
    core->start.uc_stack.ss_size = STACK_BYTES;
    makecontext(&core->start, run_core, 0);
  }
  current = 0;
  heap_start();
  loads_start(core_count);
  memcpy(tls_block, fresh_tls, tls_bytes);
  is_running = true;
  resume();
}
