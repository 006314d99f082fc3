/* races.c: plain accesses of two threads, one of them a write, that nothing orders. */
#include <stdio.h>
#include <string.h>

#include "checker.h"

enum { SHADOW_CELLS = 1 << 16 };

static struct cell {
  uintptr_t address;
  uint64_t run;
  uint32_t read[THREADS], write;
  uint8_t writer;
} cells[SHADOW_CELLS];

static struct cell *cell_of(uintptr_t address) {
  size_t hash = (address * UINT64_C(0x9E3779B97F4A7C15)) >> 48;
  for (unsigned probe = 0; probe < SHADOW_CELLS; probe++) {
    struct cell *cell = &cells[(hash + probe) % SHADOW_CELLS];
    if (cell->run == run_number && cell->address != address) continue;
    if (cell->run != run_number) {
      memset(cell, 0, sizeof *cell);
      cell->address = address;
      cell->run = run_number;
    }
    return cell;
  }
  overflow("plain objects");
}

static _Noreturn void fail_race(const char *verb, const void *address, const char *did,
                                unsigned other) {
  static char what[200];
  snprintf(what, sizeof what, "thread %d %s %p, which thread %u %s: a race, after", current, verb,
           address, other, did);
  violation(what, site_now ? site_now->function : "?", site_now ? site_now->line : 0);
}

void plain_access(void *address, unsigned size, bool is_write) {
  if (phase == OUTSIDE || is_on_a_stack(address)) return;
  if (is_write) remember(address, size);
  if (phase != RUNNING || current == THREADS) return;
  if (is_thread_local(address)) return;
  struct thread *thread = &threads[current];
  struct cell *cell = cell_of((uintptr_t)address);
  if (cell->write > thread->vector[cell->writer])
    fail_race(is_write ? "writes" : "reads", address, "wrote", cell->writer);
  if (!is_write) {
    cell->read[current] = thread->vector[current];
    return;
  }
  for (unsigned other = 0; other < thread_count; other++)
    if (cell->read[other] > thread->vector[other]) fail_race("writes", address, "read", other);
  cell->write = thread->vector[current];
  cell->writer = (uint8_t)current;
}
