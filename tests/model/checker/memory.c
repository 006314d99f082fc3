/* memory.c: the values of atomic objects, and the undoing of a run. */
#include <string.h>

#include "checker.h"

enum { MESSAGES_MAX = 8192, UNDO_MAX = 1 << 17 };

/* ---- undo ------------------------------------------------------------------------------------ */

static struct {
  char *address;
  uint64_t bytes;
  unsigned size;
} undo[UNDO_MAX];
static unsigned undo_count;

void remember(void *address, unsigned size) {
  if (undo_count == UNDO_MAX) violation("writes and writes", "a loop without end", 0);
  undo[undo_count].address = address;
  undo[undo_count].size = size;
  memcpy(&undo[undo_count++].bytes, address, size);
}

void undo_all(void) {
  while (undo_count) {
    undo_count--;
    memcpy(undo[undo_count].address, &undo[undo_count].bytes, undo[undo_count].size);
  }
}

/* ---- values ---------------------------------------------------------------------------------- */

struct location locations[LOCATIONS_MAX];
unsigned location_count;
static uint16_t location_of_hash[LOCATIONS_MAX * 4];
static struct message messages[MESSAGES_MAX];
static unsigned message_count;

void forget_messages(void) { message_count = 0; }

uint64_t read_memory(const void *address, unsigned size) {
  uint64_t value = 0;
  memcpy(&value, address, size);
  return value;
}

void write_memory(void *address, unsigned size, uint64_t value) {
  if (phase != OUTSIDE && !is_on_a_stack(address)) remember(address, size);
  memcpy(address, &value, size);
}

struct message *message_at(const struct location *location, unsigned index) {
  return &messages[location->messages[index]];
}
struct message *newest(const struct location *location) {
  return message_at(location, location->count - 1u);
}

struct message *add_message(struct location *location, uint64_t value) {
  if (message_count == MESSAGES_MAX || location->count == VALUES_MAX)
    violation("writes one object for ever", "a loop without end", 0);
  struct message *message = &messages[message_count];
  message->value = value;
  message->view_count = 0;
  message->step = step_count;
  memset(message->clock, 0, sizeof message->clock);
  location->messages[location->count++] = (uint16_t)message_count++;
  return message;
}

uint16_t location_of(void *address, unsigned size) {
  enum { HASHES = sizeof location_of_hash / sizeof location_of_hash[0] };
  size_t hash = ((uintptr_t)address >> 2) * 2654435761u % HASHES;
  while (location_of_hash[hash] && locations[location_of_hash[hash] - 1].address != address)
    hash = (hash + 1) % HASHES;
  if (!location_of_hash[hash]) {
    if (location_count == LOCATIONS_MAX) overflow("atomic objects");
    locations[location_count].address = address;
    location_of_hash[hash] = (uint16_t)++location_count;
  }
  struct location *location = &locations[location_of_hash[hash] - 1];
  if (location->run != run_number) {
    location->run = run_number;
    location->size = size;
    location->count = location->seq_floor = 0;
    location->last_write = 0;
    memset(location->last_read, 0, sizeof location->last_read);
    add_message(location, read_memory(address, size))->step = 0;
  }
  return (uint16_t)(location_of_hash[hash] - 1);
}

void join_clock(uint32_t *clock, const uint32_t *other) {
  for (unsigned index = 0; index < THREADS; index++)
    if (clock[index] < other[index]) clock[index] = other[index];
}

static void join_view(uint16_t *view, const uint16_t *other, unsigned count) {
  for (unsigned index = 0; index < count; index++)
    if (view[index] < other[index]) view[index] = other[index];
}

void learn(struct thread *thread, const struct message *message) {
  join_clock(thread->vector, message->clock);
  join_view(thread->view, message->view, message->view_count);
}

void tell(struct message *message, const struct thread *thread) {
  memset(message->view + message->view_count, 0,
         (location_count - message->view_count) * sizeof *message->view);
  message->view_count = (uint16_t)location_count;
  join_clock(message->clock, thread->vector);
  join_view(message->view, thread->view, location_count);
}

void pass_on(struct message *message, const struct message *before) {
  memcpy(message->view, before->view, before->view_count * sizeof *message->view);
  message->view_count = before->view_count;
  join_clock(message->clock, before->clock);
}
