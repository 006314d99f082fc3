/* src/stack/unwind_python.c: an interpreter's frames, and anything in their place. */
#include "stack/unwind_python.h"

#include <pthread.h>

#include "stack/unwind.h"
#include "unit.h"

enum { LAYERS = 3, HASHED = 1 << 2 | 1 << 3, MAX = 16 };
enum { HANDLE = 8, HOLDER = 16, INNER = 24, CODE = 0, CALLER = 8, INSTRUCTION = 16, BYTE = 29 };

static uintptr_t thread[4], record[4], codes[LAYERS][4], frames[LAYERS][4], words[MAX];
static pthread_key_t key;
static const uintptr_t type = 0x5000;

static struct python_recipe recipe(void) {
  return (struct python_recipe){
      .code_type = type,
      .thread = HANDLE | HOLDER << 16 | (uint64_t)(INNER + 1) << 32,
      .frame = CODE | CALLER << 16 | (uint64_t)INSTRUCTION << 32 | (uint64_t)BYTE << 48,
      .code = HASHED};
}

BEFORE(each) {
  if (!key) assert_int_equal(pthread_key_create(&key, NULL), 0);
  pthread_setspecific(key, thread);
  thread[1] = (uintptr_t)pthread_self();
  thread[2] = (uintptr_t)record;
  record[3] = (uintptr_t)frames[0];
  for (unsigned layer = 0; layer < LAYERS; layer++) {
    codes[layer][1] = type;
    codes[layer][2] = 100 + layer;
    codes[layer][3] = (uintptr_t)codes[layer];
    frames[layer][0] = (uintptr_t)codes[layer] | 1; /* a reference that is not counted */
    frames[layer][1] = layer + 1 < LAYERS ? (uintptr_t)frames[layer + 1] : 0;
    frames[layer][2] = (uintptr_t)codes[layer] + 20 * layer;
    frames[layer][3] = (uintptr_t)layer << 40;
  }
}

static bool is_code(uintptr_t at) { return at - (uintptr_t)codes < sizeof codes; }

static size_t walk(struct python_recipe from) { return unwind_python(&from, is_code, words, MAX); }

TEST(find_all_frames) {
  assert_int_equal(walk(recipe()), 2 * LAYERS);
  for (unsigned layer = 0; layer < LAYERS; layer++) {
    assert_int_equal(words[2 * layer], PYTHON_WORD | (uintptr_t)codes[layer]);
    assert_int_equal(words[2 * layer + 1] & UINT32_MAX, 20 * layer << 8 | layer);
    assert_true(words[2 * layer + 1] >> 63);
  }
  uintptr_t before = words[1];
  codes[0][2]++; /* another one at the same address */
  assert_int_equal(walk(recipe()), 2 * LAYERS);
  assert_true(words[1] >> 32 != before >> 32);
  struct python_recipe by_number = recipe();
  by_number.code |= PYTHON_BY_NUMBER;
  frames[0][2] = UINT64_C(7) << 32 | UINT32_MAX;
  frames[1][2] = UINT64_C(7) << 32 | 9;
  walk(by_number);
  assert_int_equal(words[1] >> 8 & 0xffffff, 0xffffff);
  assert_int_equal(words[3] >> 8 & 0xffffff, 9);
}

TEST(mark_what_is_no_function) {
  codes[1][1]++;
  assert_int_equal(walk(recipe()), 2 * (LAYERS - 1));
  assert_int_equal(words[1] & UINT8_MAX, PYTHON_NOT_CODE);
  assert_int_equal(words[2], PYTHON_WORD | (uintptr_t)codes[2]);
}

TEST(end_in_a_circle_and_at_no_memory) {
  struct python_recipe off = recipe();
  frames[2][1] = (uintptr_t)frames[0];
  assert_int_equal(walk(recipe()), MAX);
  frames[1][1] = 0xdead00000000;
  assert_int_equal(walk(recipe()), 4);
  frames[1][0] = UINT64_MAX;
  assert_int_equal(walk(recipe()), 2);
  record[3] = (uintptr_t)frames[0] + 1;
  assert_int_equal(walk(recipe()), 0);
  off.code_type = 0;
  assert_int_equal(walk(off), 0);
}

TEST(keep_to_their_own_thread) {
  uintptr_t here[4] = {[3] = (uintptr_t)frames[0]}, made_elsewhere[4] = {[2] = (uintptr_t)here};
  uintptr_t holder = (uintptr_t)made_elsewhere;
  struct python_recipe held = recipe();
  bool is_complete;
  unwind_stack(words, MAX, &is_complete);
  thread[1]++;
  assert_int_equal(walk(held), 0);
  held.holder = (uintptr_t)&holder;
  assert_int_equal(walk(held), 2 * LAYERS);
  thread[2] = (uintptr_t)here;
  assert_int_equal(walk(recipe()), 2 * LAYERS);
}

TEST(survive_any_recipe) {
  uint64_t random = 13;
  for (unsigned round = 0; round < 20000; round++) {
    struct python_recipe any = recipe();
    uint64_t *fields[] = {&any.code_type, &any.thread, &any.frame, &any.code, &any.holder};
    *fields[round % 5] = random_next(&random) >> random_next(&random) % 64;
    assert_true(walk(any) <= MAX);
  }
}
