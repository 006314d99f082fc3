/* steps.c: what one atomic operation does to the thread that makes it and to memory. */
#include <string.h>

#include "checker.h"

/* What the thread has read since its last pause. */
static void watch(struct thread *thread, uint16_t location, uint16_t value) {
  unsigned index = 0;
  while (index < thread->watched_count && thread->watched[index] != location) index++;
  if (index == WATCHED_MAX) { /* the oldest is forgotten */
    memmove(thread->watched, thread->watched + 1, (WATCHED_MAX - 1) * sizeof *thread->watched);
    memmove(thread->watched_value, thread->watched_value + 1,
            (WATCHED_MAX - 1) * sizeof *thread->watched_value);
    index--;
  } else if (index == thread->watched_count) {
    thread->watched_count++;
  } else {
    return; /* the first value read counts: later ones may have been news already */
  }
  thread->watched[index] = location;
  thread->watched_value[index] = value;
}

static unsigned oldest_readable(const struct thread *thread, uint16_t index, bool is_seq) {
  const struct location *location = &locations[index];
  unsigned oldest = thread->view[index];
  return is_seq && oldest < location->seq_floor ? location->seq_floor : oldest;
}

static uint64_t make_load(struct step *step, struct thread *thread) {
  const struct operation *operation = &step->operation;
  uint16_t index = operation->locations[0];
  struct location *location = &locations[index];
  unsigned last = location->count - 1u;
  unsigned oldest = oldest_readable(thread, index, operation->is_seq);
  step->choices = (uint16_t)(scenario->in_order ? 1 : last - oldest + 1);
  unsigned chosen = last - step->choice;
  const struct message *message = message_at(location, chosen);
  thread->view[index] = (uint16_t)chosen;
  if (operation->acquires) learn(thread, message);
  watch(thread, index, (uint16_t)chosen);
  note_step(step, thread, message);
  return message->value;
}

static void make_store(struct step *step, struct thread *thread, uint64_t value,
                       const struct message *replaced) {
  const struct operation *operation = &step->operation;
  uint16_t index = operation->locations[0];
  struct location *location = &locations[index];
  note_step(step, thread, replaced);
  struct message *message = add_message(location, value);
  if (replaced) pass_on(message, replaced);
  thread->view[index] = (uint16_t)(location->count - 1);
  if (operation->releases) tell(message, thread);
  if (operation->is_seq) location->seq_floor = (uint16_t)(location->count - 1);
  write_memory(location->address, operation->size, value);
}

static uint64_t combined(const struct operation *operation, uint64_t old) {
  switch (operation->rmw) {
    case RMW_SET: return operation->operand;
    case RMW_ADD: return old + operation->operand;
    case RMW_SUB: return old - operation->operand;
    case RMW_OR: return old | operation->operand;
    case RMW_AND: return old & operation->operand;
  }
  return 0;
}

uint64_t changed(const struct operation *operation, uint64_t old) {
  unsigned bits = operation->size * 8;
  uint64_t value = combined(operation, old);
  return bits == 64 ? value : value & ((UINT64_C(1) << bits) - 1);
}

static uint64_t make_rmw(struct step *step, struct thread *thread) {
  const struct operation *operation = &step->operation;
  uint16_t index = operation->locations[0];
  struct location *location = &locations[index];
  const struct message *old = newest(location);
  uint64_t value = old->value, expected = operation->expected, desired;
  thread->view[index] = (uint16_t)(location->count - 1);
  if (operation->acquires) learn(thread, old);
  desired = changed(operation, value);
  if (operation->kind == OP_CAS) {
    if (value != expected) {
      watch(thread, index, (uint16_t)(location->count - 1));
      note_step(step, thread, old);
      return value;
    }
    step->value = desired;
  }
  make_store(step, thread, desired, old);
  watch(thread, index, (uint16_t)(location->count - 1));
  return operation->kind == OP_CAS ? expected : value;
}

static void make_pause(struct step *step, struct thread *thread) {
  const struct operation *operation = &step->operation;
  for (unsigned index = 0; index < operation->location_count; index++) {
    uint16_t location = operation->locations[index];
    thread->view[location] = (uint16_t)(locations[location].count - 1);
  }
  note_step(step, thread, NULL);
}

static void make_wake(struct step *step, struct thread *thread) {
  int chosen = -1;
  for (unsigned index = 0; index < thread_count; index++) {
    const struct thread *sleeper = &threads[index];
    if (sleeper->sleeps_on != step->operation.locations[0] || sleeper->is_woken) continue;
    if (chosen < 0 || sleeper->sleeps_since < threads[chosen].sleeps_since) chosen = (int)index;
  }
  if (chosen >= 0) threads[chosen].is_woken = true;
  note_step(step, thread, NULL);
}

static uint64_t make_wait(struct step *step, struct thread *thread) {
  const struct location *location = &locations[step->operation.locations[0]];
  bool sleeps = newest(location)->value == step->operation.expected;
  note_step(step, thread, NULL);
  if (!sleeps) return 0;
  thread->sleeps_on = step->operation.locations[0];
  thread->sleeps_since = step_count;
  thread->is_woken = false;
  return 1;
}

uint64_t make_step(void) {
  struct thread *thread = &threads[current];
  struct step *step = &steps[step_count];
  uint64_t result = 0;
  step->operation = thread->pending;
  step->value = step->operation.kind == OP_CAS ? step->operation.expected : step->operation.operand;
  step->choices = 1;
  switch (step->operation.kind) {
    case OP_LOAD: result = make_load(step, thread); break;
    case OP_STORE: make_store(step, thread, step->operation.operand, NULL); break;
    case OP_RMW:
    case OP_CAS: result = make_rmw(step, thread); break;
    case OP_PAUSE: make_pause(step, thread); break;
    case OP_WAIT: result = make_wait(step, thread); break;
    case OP_ASLEEP:
      thread->sleeps_on = -1;
      note_step(step, thread, NULL);
      break;
    case OP_WAKE: make_wake(step, thread); break;
  }
  step->result = result;
  thread->vector[current]++; /* plain accesses from here on are not what this step told */
  return result;
}
