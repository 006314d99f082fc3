/* checker.h: what the files of the checker share.
 *
 *   threads     coroutines; each stops before every atomic operation (a step), and one is chosen
 *               to go on
 *   search.c    schedules depth first, by source sets and sleep sets (P. A. Abdulla et al.,
 *               "Optimal dynamic partial order reduction", 2014): orders that differ in
 *               independent steps only are run once
 *   memory.c    each atomic object has all values it ever had in a run.  A load may return any
 *               that is not older than what the thread knows of; acquire, release and seq say
 *               what it knows (the view semantics of J. Kang et al., "A promising semantics",
 *               2017, without promises). Whatever a run writes is logged and taken back
 *   races.c     plain accesses that no acquire orders, by vector clocks
 *   steps.c     what one atomic operation does
 *   calls.c     what the instrumented sources call
 *   main.c      each scenario and each broken variant in a process of its own
 *
 * Steps are numbered from 1; the `clock` of a step says which steps of each thread come before it
 * whatever the order of independent ones, itself included. */
#ifndef CHECKER_H
#define CHECKER_H

#include <setjmp.h>
#include <ucontext.h>

#include "model.h"

enum {
  THREADS = MODEL_THREADS_MAX,
  LOCATIONS_MAX = 640,
  VALUES_MAX = 256, /* of one location in one run */
  STEPS_MAX = 4000,
  STACK_BYTES = 256 << 10,
  TLS_MAX = 512,
  WATCHED_MAX = 8, /* locations that a thread that pauses waits for */
};

/* A place in the sources; include/stdatomic.h has the same. */
struct model_site {
  const char *function, *operation, *object;
  int line;
  int state; /* enum site_state */
  const struct model_rule *rule;
};
enum site_state { SITE_NEW, SITE_KNOWN, SITE_BORING };

enum kind { OP_LOAD, OP_STORE, OP_RMW, OP_CAS, OP_PAUSE, OP_WAIT, OP_ASLEEP, OP_WAKE };
enum rmw { RMW_SET, RMW_ADD, RMW_SUB, RMW_OR, RMW_AND };

struct operation {
  enum kind kind;
  enum rmw rmw;
  bool is_seq, acquires, releases;
  unsigned size;
  unsigned location_count;
  uint16_t locations[WATCHED_MAX];
  uint16_t seen[WATCHED_MAX]; /* OP_PAUSE: which value was read; a newer one ends the pause */
  uint64_t operand, expected;
  const struct model_site *site;
};

struct message { /* a value that a location had */
  uint64_t value;
  uint32_t clock[THREADS]; /* what an acquiring reader learns */
  uint16_t view_count;
  uint32_t step;
  uint16_t view[LOCATIONS_MAX];
};

struct location {
  void *address;
  uint64_t run;
  unsigned size;
  uint16_t count, seq_floor; /* values so far; the oldest that a seq load may return */
  uint16_t messages[VALUES_MAX];
  uint32_t last_write, last_read[THREADS]; /* steps; reads since the last write */
};

struct thread {
  void (*body)(void);
  bool is_started, is_done, is_woken;
  struct operation pending;
  int sleeps_on; /* location, -1 */
  unsigned sleeps_since;
  uint32_t vector[THREADS];     /* what it knows by acquire: of plain accesses */
  uint16_t view[LOCATIONS_MAX]; /* and of values: it reads none that are older */
  uint32_t clock[THREADS];      /* steps that come before its next one in any case */
  unsigned watched_count;       /* read since the last pause */
  uint16_t watched[WATCHED_MAX], watched_value[WATCHED_MAX];
  jmp_buf where;
  ucontext_t start;
  char tls[TLS_MAX];
};

struct step {
  /* Sets of threads: that can make a step here; that have to be tried here; that were; and whose
   * turn here would lead to nothing new. */
  uint8_t enabled, backtrack, done, sleep;
  uint8_t thread;
  uint16_t choice, choices; /* of the values to be read, the newest being 0 */
  uint32_t clock[THREADS];
  struct operation operation;
  uint64_t value, result; /* for the trace */
};

/* ---- main.c ---------------------------------------------------------------------------------- */

extern const struct model_scenario *scenario;
extern const struct model_mutant *mutant;

/* The run has shown what must not be; ends the process. */
_Noreturn void violation(const char *what, const char *file, int line);
/* The scenario is too large for the checker; ends the process. */
_Noreturn void overflow(const char *what);

/* ---- search.c -------------------------------------------------------------------------------- */

extern enum phase { OUTSIDE, RUNNING, CHECKING } phase;
extern struct thread threads[THREADS + 1]; /* the last: the checker itself */
extern unsigned thread_count;
extern int current;
extern struct step steps[STEPS_MAX + 1];
extern unsigned step_count;
extern uint64_t run_number, schedules;
extern uint64_t outcome_count, outcome_sum;

/* All schedules. */
void search(void);
/* The running thread's next step is this; returns when it has been made. */
uint64_t visible(const struct operation *operation);
_Noreturn void finish_thread(void);
bool is_on_a_stack(const void *address);
bool is_thread_local(const void *address);
/* Orders the step that is being made after those that it depends on; `source` is what it has
 * read. */
void note_step(struct step *step, struct thread *thread, const struct message *source);

/* ---- steps.c --------------------------------------------------------------------------------- */

uint64_t make_step(void);
uint64_t changed(const struct operation *operation, uint64_t old);

/* ---- memory.c -------------------------------------------------------------------------------- */

extern struct location locations[LOCATIONS_MAX];
extern unsigned location_count;

void remember(void *address, unsigned size);
void undo_all(void);
uint64_t read_memory(const void *address, unsigned size);
void write_memory(void *address, unsigned size, uint64_t value);

void forget_messages(void);
uint16_t location_of(void *address, unsigned size);
struct message *message_at(const struct location *location, unsigned index);
struct message *newest(const struct location *location);
struct message *add_message(struct location *location, uint64_t value);
/* What passes between threads: a reader learns, a writer tells, a read-modify-write passes on what
 * it read (release sequences). */
void learn(struct thread *thread, const struct message *message);
void tell(struct message *message, const struct thread *thread);
void pass_on(struct message *message, const struct message *before);
void join_clock(uint32_t *clock, const uint32_t *other);

/* ---- races.c, calls.c ------------------------------------------------------------------------ */

extern struct model_site *site_now; /* the last atomic operation */
void model_at(struct model_site *site);
void plain_access(void *address, unsigned size, bool is_write);

#endif
