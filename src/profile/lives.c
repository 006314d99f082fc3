#include "profile/lives.h"

#include "os/lock.h"

static struct life_log *log_of_process(void) {
  /* acquire: the zeroes in it; pairs with profile_make_piece. */
  struct life_log *log = load_acquire(&profile_state.life_log);
  return log ? log : profile_make_piece(TABLE_LIVES, &profile_state.life_log, NULL, sizeof *log);
}

void lives_note(const struct profile_sample *sample, unsigned halvings, uint64_t lived_ns) {
  if (!(load_relaxed(&profile_control.flags) & PROFILE_LIVES)) return;
  struct life_log *log = log_of_process();
  if (!log) {
    fetch_add_relaxed(&profile_state.lost_samples, 1);
    return;
  }
  uint64_t number = fetch_add_relaxed(&log->taken, 1);
  struct profile_life *life = &log->lives[number % LIVES];
  uint64_t turn = load_relaxed(&life->turn);
  /* acquire: the life that the place's last holder wrote; pairs with the release below. */
  if (turn == LIFE_BUSY || !cas_strong_acq_rel(&life->turn, &turn, LIFE_BUSY)) return;
  life->sample = *sample;
  life->lived_ns = lived_ns;
  life->thread_id = thread_number();
  life->halvings = halvings;
  store_release(&life->turn, number + 1); /* the life, for the tool */
}
