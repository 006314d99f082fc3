/* src/profile/lives.c */
#include "profile/lives.h"

#include "profiles.h"

enum { THREADS = 4, NOTED = 3 * LIVES };

static struct life_log *life_log(void) { return load_relaxed(&profile_state.life_log); }

static void note(uint64_t value) {
  struct profile_sample sample = {.block_bytes = value, .requested_bytes = value};
  lives_note(&sample, (unsigned)(value % 7), value);
}

CHILD_TEST(note_what_is_asked_for) {
  start_library();
  store_relaxed(&profile_control.flags, PROFILE_ON);
  note(1);
  REQUIRE(!life_log());
  store_relaxed(&profile_control.flags, PROFILE_ON | PROFILE_LIVES);
  note(8);
  const struct profile_life *life = &life_log()->lives[0];
  REQUIRE(load_relaxed(&life_log()->taken) == 1 && load_relaxed(&life->turn) == 1);
  REQUIRE(life->sample.block_bytes == 8 && life->lived_ns == 8 && life->halvings == 1);
  REQUIRE(life->thread_id == thread_number());
}

/* Another thread may never end its writing: its place is passed over, and all others hold whole
 * lives. */
static void *note_many(void *first) {
  for (uint64_t value = 1; value <= NOTED; value++) note((uintptr_t)first + value);
  return NULL;
}

CHILD_TEST(note_by_threads) {
  pthread_t threads[THREADS];
  start_library();
  store_relaxed(&profile_control.flags, PROFILE_LIVES);
  note(8);
  store_relaxed(&life_log()->lives[5].turn, LIFE_BUSY);
  for (uintptr_t number = 0; number < THREADS; number++)
    REQUIRE(!pthread_create(&threads[number], NULL, note_many, (void *)(number * NOTED)));
  for (unsigned number = 0; number < THREADS; number++) pthread_join(threads[number], NULL);
  REQUIRE(load_relaxed(&life_log()->taken) == 1 + THREADS * NOTED);
  for (unsigned place = 0; place < LIVES; place++) {
    const struct profile_life *life = &life_log()->lives[place];
    uint64_t turn = load_relaxed(&life->turn), value = life->lived_ns;
    REQUIRE(place == 5 ? turn == LIFE_BUSY : (turn - 1) % LIVES == place);
    REQUIRE(place == 5 || (life->sample.requested_bytes == value && life->halvings == value % 7));
  }
}
