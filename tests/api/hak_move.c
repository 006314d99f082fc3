/* Defragmentation by the program: blocks of all sizes keep their content, are freed by any call, and
 * few are worth another move; a thread may begin and end anywhere, and twice. */
#include "api/check.h"
#include "api/sizes.h"
#include "api/stamp.h"
#include "concurrency/threads.h"
#include "hakmem/hakmem.h"

enum { BLOCKS = 20000, LARGEST = 80000, PASSES_MAX = 6 };
static void *blocks[BLOCKS];
static unsigned char answers[BLOCKS];

static size_t size_of(size_t at) {
  return at % 100 ? 1 + at * 7919 % 2000 : 1 + at * 7919 % LARGEST;
}

static void make(size_t from) {
  for (size_t at = from; at < BLOCKS; at += 2) {
    blocks[at] = MUST(malloc(size_of(at)));
    stamp_write(blocks[at], size_of(at), at);
  }
}

static void free_all(size_t from) {
  for (size_t at = from; at < BLOCKS; at += 2) {
    CHECK(stamp_holds(blocks[at], size_of(at), at));
    free(blocks[at]);
    blocks[at] = NULL;
  }
}

static size_t move_all(void) {
  size_t worth = hak_worth_moving(blocks, BLOCKS, answers), said = 0;
  CHECK(hak_move_begin() && hak_move_begin());
  for (size_t at = 0; at < BLOCKS; at++) {
    said += answers[at] != 0;
    CHECK(answers[at] <= 100 && (!answers[at] || size_of(at) <= 65536));
    if (answers[at]) {
      void *block = memcpy(MUST(malloc(size_of(at))), blocks[at], size_of(at));
      free(blocks[at]);
      blocks[at] = block;
    }
  }
  CHECK(said == worth);
  hak_move_end();
  return worth;
}

static void *move_others(void *unused) {
  for (size_t pass = 0; pass < PASSES_MAX; pass++) move_all();
  CHECK(hak_move_begin());
  return unused; /* the end of the thread ends it */
}

int main(void) {
  char *none = NULL, there;
  CHECK(hak_worth_moving(NULL, 0, NULL) == 0);
  CHECK(hak_worth_moving((void *[]){none, &there, &blocks}, 3, answers) == 0);
  hak_move_end();
  for (size_t turn = 0; turn < 3; turn++) {
    make(0);
    make(1);
    free_all(turn % 2);
    size_t first = move_all(), worth = first;
    for (size_t pass = 1; pass < PASSES_MAX; pass++) worth = move_all();
    CHECK_MSG(worth * 4 <= first, "%zu of %zu", worth, first);
    if (turn == 2) thread_join(thread_start(move_others, NULL));
    free_all(!(turn % 2));
  }
  free(MUST(malloc(100)));
  return 0;
}
