/* calls.c: the functions that the sources call, because they are compiled with -fsanitize=thread
 * and with include/stdatomic.h: every plain access and every atomic operation, and where it
 * stands. */
#include <stdatomic.h>
#include <string.h>

#include "checker.h"

struct model_site *site_now;
static struct model_site unknown_site = {"?", "?", "?", 0, SITE_KNOWN, NULL};

/* ---- rules ----------------------------------------------------------------------------------- */

static bool rule_matches(const struct model_rule *rule, const struct model_site *site) {
  return strcmp(rule->function, site->function) == 0 &&
         strcmp(rule->operation, site->operation) == 0 &&
         (!rule->object || strstr(site->object, rule->object));
}

/* A counter decides nothing, and would make all threads depend on each other. */
static bool is_boring(const struct model_site *site) {
  return strstr(site->object, "counters->value[") || strstr(site->object, "totals.") ||
         strcmp(site->object, "peak") == 0; /* base/counters.h: count_peak */
}

static void find_rule(struct model_site *site) {
  site->state = is_boring(site) ? SITE_BORING : SITE_KNOWN;
  for (const struct model_rule *rule = scenario->always; rule && rule->function; rule++)
    if (rule_matches(rule, site)) site->rule = rule;
  if (!mutant) return;
  for (const struct model_rule *rule = mutant->rules;
       rule < mutant->rules + MODEL_RULES_MAX && rule->function; rule++)
    if (rule_matches(rule, site)) site->rule = rule;
}

void model_at(struct model_site *site) {
  if (site->state == SITE_NEW && scenario) find_rule(site);
  site_now = site;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Outside of runs, and for counters. */
static uint64_t direct(const struct operation *operation, void *address) {
  uint64_t old = read_memory(address, operation->size);
  if (operation->kind == OP_LOAD) return old;
  if (operation->kind != OP_CAS || old == operation->expected)
    write_memory(address, operation->size, changed(operation, old));
  return old;
}

static void obey(const struct model_rule *rule, struct operation *operation) {
  switch (rule->action) {
    case MODEL_WEAKEN: operation->is_seq = operation->acquires = operation->releases = false; break;
    case MODEL_WRITE: operation->operand = rule->value; break;
    case MODEL_SPLIT:
    case MODEL_NOTHING: break;
  }
}

static uint64_t split(struct operation *operation) {
  struct operation part = *operation;
  part.kind = OP_LOAD;
  uint64_t old = visible(&part);
  if (operation->kind == OP_CAS && old != operation->expected) return old;
  part.kind = OP_STORE;
  part.operand = changed(operation, old);
  visible(&part);
  return old;
}

/* A SHOWN member (base/atomic.h) that is written: its writer's accesses are plain. */
static bool is_shown(const struct operation *operation) {
  return operation->kind == OP_STORE && strstr(operation->site->object, "_shown");
}

static uint64_t operate(struct operation operation, void *address, int order) {
  struct model_site *site = site_now ? site_now : &unknown_site;
  if (phase != RUNNING || site->state == SITE_BORING || is_on_a_stack(address))
    return direct(&operation, address);
  const struct model_rule *rule = site->rule;
  if (rule && rule->action == MODEL_NOTHING) return rule->value;
  operation.site = site;
  if (is_shown(&operation)) plain_access(address, operation.size, true);
  operation.is_seq = order == memory_order_seq_cst;
  bool is_both = operation.is_seq || order == memory_order_acq_rel;
  operation.acquires = operation.kind != OP_STORE && (is_both || order == memory_order_acquire);
  operation.releases = operation.kind != OP_LOAD && (is_both || order == memory_order_release);
  operation.location_count = 1;
  operation.locations[0] = location_of(address, operation.size);
  if (rule) obey(rule, &operation);
  if (rule && rule->action == MODEL_SPLIT) return split(&operation);
  return visible(&operation);
}

void model_pause(void) {
  if (phase != RUNNING) return;
  struct thread *thread = &threads[current];
  struct operation operation = {.kind = OP_PAUSE, .site = site_now};
  if (!thread->watched_count) return;
  operation.location_count = thread->watched_count;
  memcpy(operation.locations, thread->watched, sizeof operation.locations);
  memcpy(operation.seen, thread->watched_value, sizeof operation.seen);
  thread->watched_count = 0;
  visible(&operation);
}

static struct operation on_word(enum kind kind, void *word) {
  return (struct operation){
      .kind = kind, .site = site_now, .location_count = 1, .locations = {location_of(word, 4)}};
}

bool model_wait(void *word, uint32_t expected) {
  struct operation operation = on_word(OP_WAIT, word);
  operation.expected = expected;
  if (!visible(&operation)) return false;
  operation.kind = OP_ASLEEP;
  visible(&operation);
  return true;
}

void model_wake(void *word) {
  if (phase != RUNNING) return;
  struct operation operation = on_word(OP_WAKE, word);
  visible(&operation);
}

void model_end_thread(void) { finish_thread(); }

int model_self(void) { return phase == RUNNING ? current : -1; }

/* ---- the names that the compiler knows ------------------------------------------------------- */

void __tsan_init(void);
void __tsan_init(void) {}
void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller) { (void)caller; }
void __tsan_func_exit(void);
void __tsan_func_exit(void) {}
void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order) { (void)order; }
void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order) {
  (void)order;
  overflow("fences: the model knows none");
}

#define PLAIN(size)                                                                       \
  void __tsan_read##size(void *address);                                                  \
  void __tsan_read##size(void *address) { plain_access(address, size, false); }           \
  void __tsan_write##size(void *address);                                                 \
  void __tsan_write##size(void *address) { plain_access(address, size, true); }           \
  void __tsan_unaligned_read##size(void *address);                                        \
  void __tsan_unaligned_read##size(void *address) { plain_access(address, size, false); } \
  void __tsan_unaligned_write##size(void *address);                                       \
  void __tsan_unaligned_write##size(void *address) { plain_access(address, size, true); } \
  void __tsan_volatile_read##size(void *address);                                         \
  void __tsan_volatile_read##size(void *address) { plain_access(address, size, false); }  \
  void __tsan_volatile_write##size(void *address);                                        \
  void __tsan_volatile_write##size(void *address) { plain_access(address, size, true); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)

static void plain_range(char *address, size_t size, bool is_write) {
  for (; size >= 8; size -= 8, address += 8) plain_access(address, 8, is_write);
  for (; size; size--, address++) plain_access(address, 1, is_write);
}
void __tsan_read_range(void *address, size_t size);
void __tsan_read_range(void *address, size_t size) { plain_range(address, size, false); }
void __tsan_write_range(void *address, size_t size);
void __tsan_write_range(void *address, size_t size) { plain_range(address, size, true); }
void __tsan_read16(void *address);
void __tsan_read16(void *address) { plain_range(address, 16, false); }
void __tsan_write16(void *address);
void __tsan_write16(void *address) { plain_range(address, 16, true); }

#define ATOMIC_RMW(bits, name, how)                                                                \
  uint##bits##_t __tsan_atomic##bits##_##name(void *address, uint##bits##_t value, int order);     \
  uint##bits##_t __tsan_atomic##bits##_##name(void *address, uint##bits##_t value, int order) {    \
    struct operation operation = {.kind = OP_RMW, .rmw = how, .size = bits / 8, .operand = value}; \
    return (uint##bits##_t)operate(operation, address, order);                                     \
  }
#define ATOMIC_CAS(bits, name)                                                            \
  int __tsan_atomic##bits##_##name(void *address, void *expected, uint##bits##_t desired, \
                                   int order, int failure);                               \
  int __tsan_atomic##bits##_##name(void *address, void *expected, uint##bits##_t desired, \
                                   int order, int failure) {                              \
    (void)failure;                                                                        \
    struct operation operation = {.kind = OP_CAS,                                         \
                                  .size = bits / 8,                                       \
                                  .operand = desired,                                     \
                                  .expected = read_memory(expected, bits / 8)};           \
    uint64_t found = operate(operation, address, order);                                  \
    if (found == operation.expected) return 1;                                            \
    write_memory(expected, bits / 8, found);                                              \
    return 0;                                                                             \
  }
#define ATOMIC(bits)                                                                     \
  uint##bits##_t __tsan_atomic##bits##_load(const void *address, int order);             \
  uint##bits##_t __tsan_atomic##bits##_load(const void *address, int order) {            \
    struct operation operation = {.kind = OP_LOAD, .size = bits / 8};                    \
    return (uint##bits##_t)operate(operation, (void *)(uintptr_t)address, order);        \
  }                                                                                      \
  void __tsan_atomic##bits##_store(void *address, uint##bits##_t value, int order);      \
  void __tsan_atomic##bits##_store(void *address, uint##bits##_t value, int order) {     \
    struct operation operation = {.kind = OP_STORE, .size = bits / 8, .operand = value}; \
    operate(operation, address, order);                                                  \
  }                                                                                      \
  ATOMIC_RMW(bits, exchange, RMW_SET)                                                    \
  ATOMIC_RMW(bits, fetch_add, RMW_ADD)                                                   \
  ATOMIC_RMW(bits, fetch_sub, RMW_SUB)                                                   \
  ATOMIC_RMW(bits, fetch_or, RMW_OR)                                                     \
  ATOMIC_RMW(bits, fetch_and, RMW_AND)                                                   \
  ATOMIC_CAS(bits, compare_exchange_strong)                                              \
  ATOMIC_CAS(bits, compare_exchange_weak)
ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)
