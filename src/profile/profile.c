#include "profile/profile.h"

#include "base/counters.h"
#include "map/metadata.h"
#include "os/os.h"

IN_FILE_DATA struct profile_control profile_control = {.flags = 0};
RARE_DATA struct profile_state profile_state;

RARE_DATA static ATOMIC(void *) spare_pieces[TABLE_COUNT];
RARE_DATA static ATOMIC(uint64_t) sample_bytes; /* of profile_state.table_bytes */

enum { EIGHTHS = 8, EIGHTHS_OF_SAMPLES = 5 };

static bool count_bytes(ATOMIC(uint64_t) *used, size_t bytes, unsigned eighths) {
  uint64_t held = load_relaxed(&totals.committed_bytes);
  uint64_t most = (PROFILE_TABLE_BYTES + held / PROFILE_TABLE_DIVISOR) / EIGHTHS * eighths;
  if (fetch_add_relaxed(used, bytes) + bytes <= most) return true;
  fetch_sub_relaxed(used, bytes);
  return false;
}

/* After a refusal none is asked for a while: a sample alone tries hundreds of places. */
enum { REFUSED_MS = 1000 };
RARE_DATA static ATOMIC(uint64_t) refused_until_ms;

static void *take_piece(size_t bytes) {
  uint64_t now_ms = os_now_coarse_ms();
  void *piece = now_ms < load_relaxed(&refused_until_ms) ? NULL : metadata_allocate(bytes);
  if (!piece) store_relaxed(&refused_until_ms, now_ms + REFUSED_MS);
  return piece;
}

static void *take_counted(enum profile_table table, size_t bytes) {
  bool is_sample = table == TABLE_SAMPLES;
  void *piece = NULL;
  if (is_sample && !count_bytes(&sample_bytes, bytes, EIGHTHS_OF_SAMPLES)) return NULL;
  if (count_bytes(&profile_state.table_bytes, bytes, EIGHTHS) && !(piece = take_piece(bytes)))
    fetch_sub_relaxed(&profile_state.table_bytes, bytes);
  if (is_sample && !piece) fetch_sub_relaxed(&sample_bytes, bytes);
  return piece;
}

bool profile_tables_are_below(unsigned eighths) {
  uint64_t all = load_relaxed(&profile_state.table_bytes), of_samples = load_relaxed(&sample_bytes);
  return all < PROFILE_TABLE_BYTES / EIGHTHS * eighths ||
         all - of_samples < PROFILE_TABLE_BYTES / EIGHTHS / 2 * (eighths - 2);
}

void *profile_make_piece(enum profile_table table, ATOMIC(void *) *place, void *before,
                         size_t bytes) {
  /* acquire: orders nothing; a piece is zeroed since it was made. */
  void *made =
      load_relaxed(&spare_pieces[table]) ? exchange_acquire(&spare_pieces[table], NULL) : NULL;
  if (!made && !(made = take_counted(table, bytes))) return NULL;
  /* release: the zeroes in it; pairs with the acquire loads of the places. */
  if (cas_strong_acq_rel(place, &before, made)) return made;
  store_relaxed(&spare_pieces[table], made); /* a second spare piece is lost */
  return before;
}
