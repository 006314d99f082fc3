#include "stack/unwind_python.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/registers.h"
#include "os/os.h"
#include "stack/unwind.h"
#include "stack/word.h"

enum { WORD = sizeof(uintptr_t), KEYS_MAX = 64, PAGES = 32, TAG_BITS = 7, OFFSET_BITS = 16 };
enum { PAGE_BYTES_MIN = 4096 };
/* A thread's handle is its pointer, or lies below it, where the C library keeps its record of the
 * thread there. */
enum { HANDLE_BYTES_MAX = 8192 };
enum { TABLE_SIZE = 16, TABLE_HASH = 24 }; /* of an object of bytes */
enum { HASH_SHIFT = 33, HASH_PLACE = 32, INSTRUCTION_PLACE = 8, INSTRUCTION_MAX = (1 << 24) - 1 };

/* Pages that this walk has found readable: the kernel is asked once for each. */
struct reader {
  const struct python_recipe *recipe;
  bool (*is_known)(uintptr_t address);
  uintptr_t pages[PAGES];
};

static bool read_word(struct reader *reader, uintptr_t address, uintptr_t *word) {
  uintptr_t page = round_down(address, PAGE_BYTES_MIN);
  uintptr_t *known = &reader->pages[page / PAGE_BYTES_MIN % PAGES];
  if (address % WORD || !page) return false;
  if (*known != page && !reader->is_known(address) && !unwind_knows(address) &&
      !os_can_read(address))
    return false;
  *known = page;
  *word = word_at(address);
  return true;
}

static uintptr_t offset_of(uint64_t offsets, unsigned which) {
  return offsets >> which * OFFSET_BITS & ((1 << OFFSET_BITS) - 1);
}

/* The frame of a state of this thread: one with its handle, or, made by another thread, with a
 * record on its stack. */
static bool read_frame(struct reader *reader, uintptr_t thread, bool is_own, uintptr_t *frame) {
  uint64_t offsets = reader->recipe->thread;
  uintptr_t handle, inner = offset_of(offsets, 2);
  if (!read_word(reader, thread + offset_of(offsets, 0), &handle)) return false;
  if (!read_word(reader, thread + offset_of(offsets, 1), frame)) return false;
  if (is_own ? thread_pointer() - handle >= HANDLE_BYTES_MAX : !inner || !unwind_knows(*frame))
    return false;
  return !inner || read_word(reader, *frame + inner - 1, frame);
}

/* The interpreter keeps each thread's state in a key of the C library. Which one it is, the state
 * itself shows. A thread has a state for each interpreter: until 3.11 the key keeps the first one,
 * and only the lock's holder shows which one runs. */
static bool find_frame(struct reader *reader, uintptr_t *frame) {
  static ATOMIC(unsigned) last_key;
  unsigned first = load_relaxed(&last_key); /* relaxed: where to look first, no more */
  uintptr_t inner = offset_of(reader->recipe->thread, 2), holder = reader->recipe->holder, thread;
  if (holder && read_word(reader, holder, &thread) &&
      (read_frame(reader, thread, true, frame) || read_frame(reader, thread, false, frame)))
    return true;
  for (unsigned step = 0; step < (inner ? 2 : 1) * KEYS_MAX; step++) {
    unsigned key = (first + step) % KEYS_MAX;
    if (!read_frame(reader, os_thread_value(key), step < KEYS_MAX, frame)) continue;
    if (key != first) store_relaxed(&last_key, key);
    return true;
  }
  return false;
}

static bool hash_word(struct reader *reader, uintptr_t address, uintptr_t *word, uint64_t *hash) {
  if (!read_word(reader, address, word)) return false;
  *hash = mix_bits(*hash ^ *word);
  return true;
}

/* False where there is none. A code object compiled in the place of another may consist of the same
 * addresses. The table of lines, the last of the words, tells them apart: its size and, in compiled
 * code, its hash stand in it. */
static bool hash_code(struct reader *reader, uintptr_t code, uint64_t *hash) {
  const struct python_recipe *recipe = reader->recipe;
  uintptr_t word = 0, other;
  if (!read_word(reader, code + WORD, &other) || other != recipe->code_type) return false;
  *hash = code;
  for (uint32_t left = (uint32_t)recipe->code; left; left &= left - 1)
    if (!hash_word(reader, code + lowest_bit(left) * WORD, &word, hash)) return false;
  return hash_word(reader, word + TABLE_SIZE, &other, hash) &&
         hash_word(reader, word + TABLE_HASH, &other, hash);
}

static uint64_t instruction_of(const struct python_recipe *recipe, uintptr_t code, uintptr_t word) {
  uint64_t place = recipe->code & PYTHON_BY_NUMBER ? (uint32_t)word : word - code;
  return place < INSTRUCTION_MAX ? place : INSTRUCTION_MAX;
}

/* The byte of a frame; 0 where none is to be kept. */
static bool read_byte(struct reader *reader, uintptr_t frame, uintptr_t offset, uintptr_t *byte) {
  *byte = 0;
  if (!offset) return true;
  bool is_read = read_word(reader, round_down(frame + offset, WORD), byte);
  *byte = *byte >> offset % WORD * 8 & UINT8_MAX;
  return is_read;
}

NOINLINE size_t unwind_python(const struct python_recipe *recipe, bool (*is_known)(uintptr_t),
                              uintptr_t *words, size_t max) {
  struct reader reader = {.recipe = recipe, .is_known = is_known};
  uintptr_t frame, code, instruction, byte;
  uint64_t hash, offsets = recipe->frame;
  if (!recipe->code_type || !find_frame(&reader, &frame)) return 0;
  size_t count = 0;
  for (size_t steps = 0; frame && steps < max && count + PYTHON_FRAME_WORDS <= max; steps++) {
    if (!read_word(&reader, frame + offset_of(offsets, 0), &code) ||
        !read_word(&reader, frame + offset_of(offsets, 2), &instruction) ||
        !read_byte(&reader, frame, offset_of(offsets, 3), &byte))
      break;
    code &= ~(uintptr_t)TAG_BITS; /* CPython 3.14 marks references that it does not count */
    if (hash_code(&reader, code, &hash)) {
      words[count++] = PYTHON_WORD | code;
      words[count++] = PYTHON_WORD | hash >> HASH_SHIFT << HASH_PLACE |
                       instruction_of(recipe, code, instruction) << INSTRUCTION_PLACE | byte;
    } else if (count) {
      words[count - 1] |= PYTHON_NOT_CODE;
    }
    if (!read_word(&reader, frame + offset_of(offsets, 1), &frame)) break;
  }
  return count;
}
