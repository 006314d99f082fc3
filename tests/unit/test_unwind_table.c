/* src/stack/unwind_table and what it feeds: records that compilers write, and any bytes in their
 * place. */
#include <string.h>
#include <sys/mman.h>

#include "stack/unwind_table.h"
#include "unit.h"

/* A module of two functions: a header with a sorted table, a common record, two records.  Offsets
 * are from its start. */
enum {
  HEADER = 0,
  COMMON = 64,
  FIRST = 96,
  SECOND = 160,
  BYTES = 4096,
  CODE = 1024,
  CODE_BYTES = 64
};

#if defined(__aarch64__)
enum { SP = 31, FP = 29, PC = 30 };
#else
enum { SP = 7, FP = 6, PC = 16 };
#endif

static unsigned char *image; /* a page that ends where nothing may be read */
static struct os_module module;

BEFORE(all) {
  size_t page = os_page_bytes();
  unsigned char *pages =
      mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(pages, MAP_FAILED);
  assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
  image = pages + page - BYTES;
}

static void put(size_t at, const void *bytes, size_t count) { memcpy(image + at, bytes, count); }

static void put_word(size_t at, uint32_t word) { put(at, &word, sizeof word); }

static void put_record(size_t at, size_t function, const unsigned char *program, size_t count) {
  put_word(at, 40);
  put_word(at + 4, (uint32_t)(at + 4 - COMMON));
  put_word(at + 8, (uint32_t)(function - (at + 8)));
  put_word(at + 12, CODE_BYTES);
  put(at + 17, program, count); /* after 0 bytes of augmentation */
}

static void make_module(void) {
  static const unsigned char header[] = {1, 0x1b, 0x03, 0x3b};
  /* version 1, "zR", units 1 and -8, return address; addresses relative, 4 bytes; end = sp + 8,
   * return address below it */
  static const unsigned char common[] = {1, 'z',  'R',  0,  1, 0x78,      PC,
                                         1, 0x1b, 0x0c, SP, 8, 0x80 | PC, 1};
  /* after 1: push fp; after 4: fp is the frame pointer; after 20: as at 1, remembered */
  static const unsigned char first[] = {0x41, 0x0a, 0x0e, 16,   0x80 | FP, 2,
                                        0x43, 0x0d, FP,   0x50, 0x0b};
  /* the outermost */
  static const unsigned char second[] = {0x07, PC};
  memset(image, 0, BYTES);
  put(HEADER, header, sizeof header);
  put_word(HEADER + 4, COMMON - 4);
  put_word(HEADER + 8, 2);
  put_word(HEADER + 12, CODE), put_word(HEADER + 16, FIRST);
  put_word(HEADER + 20, CODE + CODE_BYTES), put_word(HEADER + 24, SECOND);
  put_word(COMMON, 28);
  put(COMMON + 8, common, sizeof common);
  put_record(FIRST, CODE, first, sizeof first);
  put_record(SECOND, CODE + CODE_BYTES, second, sizeof second);
  uintptr_t begin = (uintptr_t)image;
  module = (struct os_module){
      .unwind_header = begin, .tables_begin = begin, .tables_end = begin + BYTES};
}

static bool rule_at(size_t code, struct unwind_rule *rule) {
  uintptr_t instruction = (uintptr_t)image + code;
  uintptr_t place = unwind_table_search(&module, instruction);
  struct unwind_record record;
  return place && unwind_table_read(&module, place, instruction, &record) &&
         unwind_program_run(&record, instruction, rule);
}

TEST(search) {
  uintptr_t begin = (uintptr_t)image;
  make_module();
  assert_int_equal(unwind_table_search(&module, begin + CODE - 1), 0);
  assert_int_equal(unwind_table_search(&module, begin + CODE), begin + FIRST);
  assert_int_equal(unwind_table_search(&module, begin + CODE + CODE_BYTES - 1), begin + FIRST);
  assert_int_equal(unwind_table_search(&module, begin + CODE + CODE_BYTES), begin + SECOND);
  assert_true(unwind_table_has_start(&module, begin + FIRST, begin + CODE));
  assert_false(unwind_table_has_start(&module, begin + FIRST, begin + CODE + 1));
  struct unwind_rule rule;
  assert_true(rule_at(CODE + 2 * CODE_BYTES - 1, &rule));
  assert_false(rule_at(CODE + 2 * CODE_BYTES, &rule)); /* beyond the last function */
  image[HEADER + 3] = 0xff;                            /* without a table */
  assert_int_equal(unwind_table_search(&module, begin + CODE), 0);
}

static void expect(size_t code, unsigned end_register, int32_t end_offset,
                   bool saves_frame_pointer) {
  struct unwind_rule rule;
  assert_true(rule_at(code, &rule));
  assert_int_equal(rule.end_register, end_register);
  assert_int_equal(rule.end_offset, end_offset);
  assert_int_equal(rule.place[REGISTER_RETURN], -1);
  unsigned saved = 1U << REGISTER_RETURN | (saves_frame_pointer ? 1U << REGISTER_FP : 0);
  assert_int_equal(rule.saved, saved);
  if (saves_frame_pointer) assert_int_equal(rule.place[REGISTER_FP], -2);
}

TEST(program) {
  struct unwind_rule rule;
  make_module();
  expect(CODE, REGISTER_SP, 8, false);
  expect(CODE + 1, REGISTER_SP, 16, true);
  expect(CODE + 3, REGISTER_SP, 16, true);
  expect(CODE + 4, REGISTER_FP, 16, true);
  expect(CODE + 19, REGISTER_FP, 16, true);
  expect(CODE + 20, REGISTER_SP, 8, false);
  assert_true(rule_at(CODE + CODE_BYTES, &rule));
  assert_true(rule.is_outermost);
}

/* Another byte anywhere in a record or its common one is another check. */
TEST(check) {
  make_module();
  uintptr_t place = (uintptr_t)image + FIRST;
  uint32_t check = unwind_table_check(&module, place);
  assert_int_not_equal(check, 0);
  for (size_t at = COMMON; at < FIRST + 44; at++) {
    image[at] ^= 1;
    assert_int_not_equal(unwind_table_check(&module, place), check);
    image[at] ^= 1;
  }
  assert_int_equal(unwind_table_check(&module, place), check);
  assert_int_equal(unwind_table_check(&module, module.tables_end), 0);
  assert_int_equal(unwind_table_check(&module, module.tables_begin - 1), 0);
}

/* Any bytes: something is said or not, and nothing is read beyond the module, which ends with its
 * page. */
TEST(any_bytes) {
  uint64_t random = 1;
  unsigned long found = 0;
  for (unsigned round = 0; round < 200000; round++) {
    struct unwind_rule rule;
    make_module();
    for (unsigned change = 0; change < 1 + round % 8; change++)
      image[random_next(&random) % (SECOND + 44)] = (unsigned char)(random_next(&random) >> 32);
    size_t shift = round % 4 ? 0 : BYTES - SECOND - 44; /* to the very end */
    if (shift) memmove(image + shift, image, SECOND + 44);
    module.unwind_header = (uintptr_t)image + shift;
    found += rule_at(shift + CODE + round % (2 * CODE_BYTES), &rule);
  }
  assert_true(found > 1000); /* most changes are harmless */
}
