/* src/report/report: what each message says, and what follows a misuse. */
#include "report/report.h"

#include <string.h>

#include "fake/os_fake.h"
#include "unit.h"

static const struct block_description tiny = {
    .base = 0x1000, .block_bytes = 112, .tier = "tiny", .class_number = 7, .thread_id = 42};
static const struct block_description unowned = {
    .base = 0x20000, .block_bytes = 5000, .tier = "big", .class_number = 0};

BEFORE(each) {
  os_fake_reset();
  misuse_action = MISUSE_WARN;
  misuse_may_walk = NULL;
}

static void assert_said(const char *line) {
  assert_string_equal(os_fake.written, line);
  os_fake_forget_written();
}

TEST(pointers) {
  report_invalid_pointer("free", 0xabc);
  assert_said("hakmem: invalid free of 0xabc: no block lives there (class none)\n");
  report_no_block("free", 0x1008, &tiny);
  assert_said(
      "hakmem: misaligned free of 0x1008: inside the block of 112 bytes at 0x1000"
      " (tiny class 7, of thread 42)\n");
  report_double_free("free", 0x20000, &unowned);
  assert_said(
      "hakmem: double free of 0x20000: the block of 5000 bytes is free already (big class 0)\n");
}

TEST(any_misuse) {
  report_misuse(&(struct misuse){"foreign", "realloc", 0xabc, NULL, 0, false}, "not %s's", "libc");
  assert_said("hakmem: foreign realloc of 0xabc: not libc's (class none)\n");
  report_misuse(&(struct misuse){"mismatched", "delete", 0x1000, &tiny, 0, false}, "%zu bytes",
                (size_t)7);
  assert_said("hakmem: mismatched delete of 0x1000: 7 bytes (tiny class 7, of thread 42)\n");
}

TEST(writes) {
  report_overflow("free", 0x1000, 112, true, &tiny);
  assert_said(
      "hakmem: overflow seen at free of 0x1000: written past its 112 bytes, first at offset 112"
      " (tiny class 7, of thread 42)\n");
  report_overflow("free", 0x1000, 112, false, &tiny);
  assert_said(
      "hakmem: overflow seen at free of 0x1000: written past its 112 bytes, somewhere after"
      " offset 112 (tiny class 7, of thread 42)\n");
  report_write_beside(0x1000, 0xff8, &tiny);
  assert_said(
      "hakmem: stray write seen at free of 0x1000: free memory was written to, 8 bytes before its"
      " block of 112 bytes (tiny class 7, of thread 42)\n");
  report_write_beside(0x1000, 0x1078, &tiny);
  assert_said(
      "hakmem: stray write seen at free of 0x1000: free memory was written to, 120 bytes after the"
      " start of its block of 112 bytes (tiny class 7, of thread 42)\n");
}

TEST(any_name_of_a_heap) {
  struct block_description block = tiny;
  block.heap_name = "ses\nsions\xff \xc3\xa9";
  report_double_free("free", 0x1000, &block);
  assert_said(
      "hakmem: double free of 0x1000: the block of 112 bytes is free already (tiny class 7, of heap"
      " \"ses?sions? \xc3\xa9\")\n");
}

/* One line each, and the program goes on. */
TEST(warnings) {
  report_line("%s of %zu", "one", (size_t)2);
  assert_said("hakmem: one of 2\n");
}

TEST(ignored) {
  misuse_action = MISUSE_IGNORE;
  report_double_free("free", 0x1000, &tiny);
  assert_said("");
}

static bool may_walk(void) { return true; }

TEST(a_stack_follows_where_it_may) {
  misuse_may_walk = may_walk;
  report_double_free("free", 0x1000, &tiny);
  const char *stack = strchr(os_fake.written, '\n') + 1;
  assert_memory_equal(stack, "hakmem:   free by thread ", 25);
  unsigned frames = 0;
  for (stack = strchr(stack, '\n') + 1; *stack; stack = strchr(stack, '\n') + 1, frames++) {
    assert_memory_equal(stack, "hakmem:     #", 13);
    assert_int_equal(strtoul(stack + 13, NULL, 10), frames);
  }
  assert_true(frames >= 2); /* here and main */
}

/* Has a frame of its own: something is left to do after the call. */
NOINLINE static unsigned note_here(struct call_stack *stack, uintptr_t from) {
  call_stack_note(stack, from);
  return stack->frame_count;
}

/* From any of its callers on; from the beginning when it is none. */
TEST(a_stack_from_a_caller_on) {
  struct call_stack whole, part;
  note_here(&whole, 0);
  assert_true(whole.frame_count > 3);
  for (unsigned first = 3; first < whole.frame_count; first++) {
    note_here(&part, whole.frames[first]);
    assert_int_equal(part.frames[0], whole.frames[first]);
    assert_true(part.frame_count >= whole.frame_count - first);
  }
  note_here(&part, 8);
  assert_int_equal(part.frame_count, whole.frame_count);
}
